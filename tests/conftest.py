"""Lets tests import ``tests.fixtures`` and the package from a bare checkout, whatever the working directory."""

import sys
from pathlib import Path

ROOT = str(Path(__file__).parent.parent)
if ROOT not in sys.path:
    sys.path.insert(0, ROOT)
