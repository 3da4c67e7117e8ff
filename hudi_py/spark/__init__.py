"""The only importer of pyspark: sessions, and the engine that runs tasks on executors. Nothing else depends on it."""
