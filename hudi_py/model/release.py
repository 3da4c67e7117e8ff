"""The version of this release, as a constant: an executor may have the code without the package's metadata."""

from typing import Final

RELEASE: Final = "0.1.0"
