"""Avro schemas of Apache Hudi's metadata files; ``hudi_py.avro_schemas`` once installed."""
