"""
Make ``tests/fixtures/hfile/*.hfile`` with the HBase inside Hudi 0.15.0: HFiles with several levels of index.

Real metadata tables get more than one level only from some thousand blocks on, so HBase is told to start a new index
block after a few entries. Usage: ``python tools/make_hfiles.py tests/fixtures/hfile``
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from real_hudi.bundle import find_bundle
from real_hudi.session import start_spark

_FILES = {  # name: entries, compression, size of a data block, size of an index block
    "1level-gzip-crc32c": (300, "GZ", 1024, 1 << 17),
    "2levels-gzip": (1200, "GZ", 1024, 2048),
    "3levels-none": (600, "NONE", 1024, 128),
}


def write_hfile(spark: Any, path: Path, count: int, compression: str, block: int, index_block: int) -> None:
    """Have HBase write one file."""
    jvm = spark._jvm  # noqa: SLF001 - the only way to the JVM
    hbase = jvm.org.apache.hudi.org.apache.hadoop.hbase
    conf = jvm.org.apache.hadoop.conf.Configuration()
    conf.setInt("hfile.index.block.max.size", index_block)
    conf.setInt("hfile.index.block.min.entries", 3)
    algorithm = getattr(hbase.io.compress, "Compression$Algorithm").valueOf(compression)
    context = (
        hbase.io.hfile.HFileContextBuilder()
        .withBlockSize(block)
        .withCompression(algorithm)
        .withCellComparator(jvm.org.apache.hudi.io.storage.HoodieHBaseKVComparator())
        .build()
    )
    target = jvm.org.apache.hadoop.fs.Path(str(path))
    system = jvm.org.apache.hadoop.fs.RawLocalFileSystem()
    system.initialize(jvm.java.net.URI("file:///"), conf)
    factory = hbase.io.hfile.HFile.getWriterFactory(conf, hbase.io.hfile.CacheConfig(conf))
    writer = factory.withPath(system, target).withFileContext(context).create()
    for number in range(count):
        key, value = b"key%06d" % number, b"value %d " % number * (number % 7 + 1)
        writer.append(hbase.KeyValue(bytearray(key), None, None, bytearray(value)))
    writer.close()


def main(folder: Path) -> None:
    """Write all files into *folder*."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        spark = start_spark(find_bundle("0.15.0"), Path(scratch))
        for name, shape in _FILES.items():
            path = folder / f"{name}.hfile"
            path.unlink(missing_ok=True)
            write_hfile(spark, path.resolve(), *shape)
            print(path, path.stat().st_size)
        spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
