"""
Gives the package its version: that of the tag it is built from. Everything else is in setup.cfg.

A checkout at the tag ``v0.2.0`` is 0.2.0; three commits later it is 0.2.1.dev3 with the commit behind a plus sign. A
source archive keeps the version that it was made with. Without any of these it is that of ``hudi_py/model/release.py``,
which a built package has its version in as well: a Spark executor may have the code without the package's metadata.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).resolve().parent
RELEASE = "hudi_py/model/release.py"
_CONSTANT = re.compile(r'^RELEASE: Final = "([^"]+)"$', re.MULTILINE)
_DESCRIBED = re.compile(r"v((?:\d+\.)*)(\d+)((?:a|b|rc)\d+)?-(\d+)-g([0-9a-f]+)(-dirty)?")


def version(folder: Path = HERE) -> str:
    """Version of a checkout or of an unpacked source archive."""
    archived = folder / "PKG-INFO"
    if archived.is_file():
        found = re.search(r"^Version: (\S+)$", archived.read_text(encoding="utf-8"), re.MULTILINE)
        if found is not None:
            return found[1]
    return _of_tag(folder) or _constant(folder)


def _constant(folder: Path) -> str:
    found = _CONSTANT.search((folder / RELEASE).read_text(encoding="utf-8"))
    assert found is not None
    return found[1]


def _of_tag(folder: Path) -> str | None:
    # Only of the checkout itself: a folder inside of another repository is none of its tags.
    if not (folder / ".git").exists():
        return None
    command = ["git", "describe", "--tags", "--long", "--dirty", "--match", "v[0-9]*"]
    try:
        said = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None  # no git, or no tag in what was cloned
    found = _DESCRIBED.fullmatch(said.strip())
    if found is None:
        return None
    first, last, stage, distance, commit, dirty = found.groups("")
    if distance == "0" and not dirty:
        return first + last + stage
    # On the way to the next one: later than this tag, earlier than the next.
    if stage:
        letters = stage.rstrip("0123456789")
        following = f"{first}{last}{letters}{int(stage.removeprefix(letters)) + 1}"
    else:
        following = f"{first}{int(last) + 1}"
    return f"{following}.dev{distance}+g{commit}{'.dirty' if dirty else ''}"


class BuildPy(build_py):
    """Writes the version into the built package; the checkout stays as it is."""

    def run(self) -> None:
        """Build, then write it."""
        super().run()
        if self.editable_mode:
            return
        built = Path(self.build_lib) / RELEASE
        text = _CONSTANT.sub(f'RELEASE: Final = "{self.distribution.get_version()}"', built.read_text(encoding="utf-8"))
        # A new file: what was copied may be a link to the checkout's.
        built.unlink()
        built.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    setup(version=version(), cmdclass={"build_py": BuildPy})
