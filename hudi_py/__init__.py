"""hudi_py: Apache Hudi tables from Python."""
