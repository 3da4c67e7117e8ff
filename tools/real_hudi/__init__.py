"""
Real Apache Hudi as a child process, for interop tests and benchmarks.

One process holds one Hudi version, so `RealHudi` starts one child per version; the child runs Spark with the bundle of
that version and answers JSON lines. Nothing here is imported by ``hudi_py``, and nothing here imports it.
"""

from __future__ import annotations

from real_hudi.bundle import TABLE_VERSION, VERSIONS, Unavailable, find_bundle
from real_hudi.canonical import canonical_rows, canonical_value
from real_hudi.client import RealHudi, RealHudiError

__all__ = [
    "TABLE_VERSION",
    "VERSIONS",
    "RealHudi",
    "RealHudiError",
    "Unavailable",
    "canonical_rows",
    "canonical_value",
    "find_bundle",
]
