"""What ships: the wheel and the source archive hold the schemas, and an editable install finds them."""

import shutil
import subprocess
import sys
import tarfile
import zipfile

import pytest

from support.repository import ROOT

pytestmark = pytest.mark.slow

DUMMY = "DummyOfTheTest.avsc"
BUILD = "import sys; from setuptools import build_meta as b; print(getattr(b, 'build_' + sys.argv[1])(sys.argv[2]))"


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A copy of what is needed for building, with one schema of ours in it."""
    folder = tmp_path_factory.mktemp("a checkout")
    skip = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for name in ("hudi_py", "avro_schemas"):
        shutil.copytree(ROOT / name, folder / name, ignore=skip)
    for name in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    (folder / "avro_schemas" / DUMMY).write_text('{"type": "record", "name": "Dummy", "fields": []}')
    return folder


def build(kind, checkout, target):
    """Build with the setuptools at hand, offline; returns the path of the file."""
    command = [sys.executable, "-c", BUILD, kind, str(target)]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return target / done.stdout.splitlines()[-1]


def expected():
    """Files that an installation needs besides the modules, which are checked by the list in setup.cfg."""
    schemas = {f"hudi_py/avro_schemas/{path.name}" for path in (ROOT / "avro_schemas").glob("*.avsc")}
    others = {"hudi_py/py.typed", "hudi_py/spark/log4j2.properties", "hudi_py/config/hudi_options.tsv"}
    page = {f"hudi_py/inspection/page/{path.name}" for path in (ROOT / "hudi_py" / "inspection" / "page").iterdir()}
    return {f"hudi_py/avro_schemas/{DUMMY}", *others, *schemas, *page}


def test_wheel_holds_schemas_and_types_and_works_without_the_checkout(checkout, tmp_path):
    """Unpacked, it finds its schemas as package data."""
    with zipfile.ZipFile(build("wheel", checkout, tmp_path)) as wheel:
        names = set(wheel.namelist())
        wheel.extractall(tmp_path / "site")
    assert set() == expected() - names
    assert [] == [name for name in names if name.startswith(("tests/", "tools/", "avro_schemas/"))]
    assert found_from(tmp_path / "site", cwd=tmp_path)


def test_source_archive_can_build_the_same_wheel(checkout, tmp_path):
    """Distributions build from it, so nothing may be missing there."""
    with tarfile.open(build("sdist", checkout, tmp_path)) as archive:
        safely = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # absent from early 3.10 and 3.11
        archive.extractall(tmp_path / "unpacked", **safely)
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    with zipfile.ZipFile(build("wheel", unpacked, tmp_path)) as wheel:
        assert set() == expected() - set(wheel.namelist())


def test_editable_install_finds_the_schemas_in_the_checkout(checkout, tmp_path):
    """The finder maps the package inside to the folder beside."""
    with zipfile.ZipFile(build("editable", checkout, tmp_path)) as wheel:
        wheel.extractall(tmp_path / "site")
    assert found_from(tmp_path / "site", cwd=tmp_path)


def found_from(site, cwd):
    """Whether a fresh Python with *site* as its only site folder sees the schema."""
    code = (
        f"import site; site.addsitedir({str(site)!r})\n"
        "import importlib.resources as r\n"
        f"print(r.files('hudi_py.avro_schemas').joinpath({DUMMY!r}).is_file())"
    )
    command = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:] = {stdlib()!r}\n{code}"]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip() == "True"


def stdlib():
    """Folders of the standard library: this environment's own installation of us must not help."""
    return [path for path in sys.path if path and "site-packages" not in path and str(ROOT) not in path]
