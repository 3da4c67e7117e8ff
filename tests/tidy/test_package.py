"""What ships: the wheel and the source archive hold the schemas and the tag's version, and are well described."""

import importlib.util
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
    for name in ("setup.cfg", "setup.py", "pyproject.toml", "MANIFEST.in", "README.md", "LICENSE", "CHANGELOG.md"):
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


def git(checkout, *words):
    """Run git there, as nobody in particular."""
    name = ("-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *name, *words], cwd=checkout, check=True, capture_output=True)


def described(archive):
    """The metadata of a wheel or source archive; raises where an index would refuse it."""
    metadata = pytest.importorskip("packaging.metadata")
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            [name] = [each for each in wheel.namelist() if each.endswith(".dist-info/METADATA")]
            return metadata.Metadata.from_email(wheel.read(name), validate=True)
    with tarfile.open(archive) as sources:
        [member] = [
            each for each in sources.getmembers() if each.name.count("/") == 1 and each.name.endswith("/PKG-INFO")
        ]
        return metadata.Metadata.from_email(sources.extractfile(member).read(), validate=True)


def test_versions_come_from_tags(checkout, tmp_path):
    """At a tag, in its source archive and in the wheel of that; the checkout stays as it is."""
    tagged = tmp_path / "tagged"
    shutil.copytree(checkout, tagged, ignore=shutil.ignore_patterns("build", "*.egg-info"))
    git(tagged, "init", "-q")
    git(tagged, "add", ".")
    git(tagged, "commit", "-q", "-m", "all")
    git(tagged, "tag", "v7.8.9")
    before = (tagged / "hudi_py" / "model" / "release.py").read_text()
    source = build("sdist", tagged, tmp_path)
    safely = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
    with tarfile.open(source) as archive:
        archive.extractall(tmp_path / "unpacked", **safely)
    wheel = build("wheel", tmp_path / "unpacked" / "hudi_py-7.8.9", tmp_path)
    for archive in (source, wheel):
        found = described(archive)
        assert str(found.version) == "7.8.9"
        assert found.description_content_type == "text/markdown"
        assert found.description.startswith("# hudi_py")
        assert "Apache-2.0" in (found.license, found.license_expression)
    with zipfile.ZipFile(wheel) as packed:
        assert 'RELEASE: Final = "7.8.9"' in packed.read("hudi_py/model/release.py").decode()
    assert (tagged / "hudi_py" / "model" / "release.py").read_text() == before


def version_of(checkout):
    """What setup.py says there."""
    spec = importlib.util.spec_from_file_location("setup_of_the_test", ROOT / "setup.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.version(checkout)


@pytest.mark.parametrize(
    ("tag", "at", "later"),
    [("v0.2.0", "0.2.0", "0.2.1.dev1+g"), ("v1.0rc1", "1.0rc1", "1.0rc2.dev1+g"), ("odd", None, None)],
)
def test_a_commit_after_a_tag_is_later_than_it_and_earlier_than_the_next(tmp_path, tag, at, later):
    """By the order of versions; without a tag, or without a repository, the version is that of the code."""
    version = pytest.importorskip("packaging.version").Version
    release = tmp_path / "hudi_py" / "model" / "release.py"
    release.parent.mkdir(parents=True)
    release.write_text('RELEASE: Final = "0.1.0"\n')
    assert version_of(tmp_path) == "0.1.0"
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "first")
    assert version_of(tmp_path) == "0.1.0"
    git(tmp_path, "tag", tag)
    assert version_of(tmp_path) == (at or "0.1.0")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "second")
    found = version_of(tmp_path)
    if at is None:
        assert found == "0.1.0"
    else:
        assert found.startswith(later)
        assert version(at) < version(found)
        release.write_text('RELEASE: Final = "0.1.0"  # changed\n')
        assert version_of(tmp_path) == f"{found}.dirty"


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
