"""
Avro schemas of Apache Hudi's metadata files; ``hudi_py.avro_schemas`` once installed.

Each file holds the schema text exactly as Hudi writes it into file headers, so never reformat one. ``<record>.avsc`` is
the generation of Hudi 1.x, ``<record>.v6.avsc`` and ``<record>.v8.avsc`` what older table versions carry.
"""
