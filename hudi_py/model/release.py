"""Which release this is; executors compare it where no metadata of an installation travels along."""

from typing import Final

RELEASE: Final = "0.1.0"
