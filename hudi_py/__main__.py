"""``python -m hudi_py``, and ``spark-submit …/hudi_py/__main__.py``."""

import sys
from pathlib import Path

if not __package__:  # as a script, which is what spark-submit takes: our modules must not shadow others of their names
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from hudi_py.inspection.cli import main

if __name__ == "__main__":
    main()
