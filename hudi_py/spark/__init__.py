"""Everything that imports pyspark: sessions, the write client, reading, and the engine that runs tasks on executors."""
