"""``python -m hudi_py``, and ``spark-submit …/hudi_py/__main__.py``."""

import sys
from pathlib import Path

if not __package__:
    # Run as a script, as spark-submit does. Python then puts our folder on the path, where our modules would shadow
    # others of the same name; put the folder above it in its place.
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from hudi_py.inspection.cli import main

if __name__ == "__main__":
    main()
