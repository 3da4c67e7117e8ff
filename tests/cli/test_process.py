"""The command as a process: what it imports, prints, refuses, and leaves when the world is against it."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hudi_py.errors import ConflictError
from support import fixtures

HEAVY = {"pyspark", "py4j", "pandas", "numpy", "fsspec", "pyarrow", "rich", "structlog"}
ROOT = Path(__file__).resolve().parents[2]


def hudi_py(*arguments, prefix=(), cwd=None, stdout=subprocess.PIPE, **environment):
    """Run ``python -m hudi_py`` as users do; returns the finished process."""
    command = [*prefix, sys.executable, "-m", "hudi_py", *map(str, arguments)]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "TZ": "UTC", "PYTHONDONTWRITEBYTECODE": "1", **environment}
    encoding = environment.get("PYTHONIOENCODING", "utf-8")
    pipes = {"stdout": stdout, "stderr": subprocess.PIPE}
    return subprocess.run(command, **pipes, encoding=encoding, env=env, cwd=cwd, timeout=60)


def assert_clear(process, code, *words):
    """One or two lines on standard error, no traceback, nothing on standard output."""
    assert process.returncode == code, process.stderr
    assert process.stdout in ("", None)
    lines = process.stderr.splitlines()
    assert 1 <= len(lines) <= 2, process.stderr
    assert "Traceback" not in process.stderr
    for word in words:
        assert word in process.stderr


@pytest.mark.slow
def test_errors_are_clear_and_exit_codes_those_of_the_contract(table, tmp_path):
    """1 failed, 2 wrong usage, 5 no table or not supported; --debug shows the traceback."""
    path = table("cow_cleaned-1.1.1")
    assert_clear(hudi_py("timeline", tmp_path / "none"), 5, "is not a Hudi table", "none")
    assert_clear(hudi_py("read", path, "--as-of", "20000101000000000"), 1, "earliest readable instant")
    assert_clear(hudi_py("instant", path, "20200101000000000"), 2, "20200101000000000")
    assert_clear(hudi_py("read", path, "--as-of", "x"), 2, "ISO 8601")
    assert hudi_py("timeline").returncode == 2
    assert "Traceback" in hudi_py("timeline", tmp_path / "none", "--debug").stderr
    properties = path / ".hoodie/hoodie.properties"
    properties.write_text(properties.read_text().replace("table.version=9", "table.version=10"))
    assert_clear(hudi_py("timeline", path), 5, "version 10", "upgrade")


def test_streams_closed_before_the_start_change_no_exit_code(table):
    """``>&-`` in a script: Python has None in their place."""
    for redirection, code in ((">&-", 0), (">&- 2>&-", 0)):
        script = ["sh", "-c", f'exec "$@" {redirection}', "sh"]
        assert hudi_py("timeline", table("cow_cleaned-1.1.1"), prefix=script).returncode == code
    assert hudi_py("timeline", "/none", prefix=["sh", "-c", 'exec "$@" 2>&-', "sh"]).returncode == 5


def test_version_is_told_installed_or_not(tmp_path):
    """From a checkout too, where no package says it."""
    assert hudi_py("--version", cwd=tmp_path).stdout.startswith("hudi-py, ")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["clean"], ["Missing argument 'TABLE'", "hudi-py clean --help"]),
        (["savepoint", "create"], ["TABLE", "hudi-py savepoint create --help"]),
        (["clean", "t", "--commits-retained", "0"], ["0 is not at least 1"]),
        (["clean", "t", "--commits-retained"], ["requires an argument"]),
        (["timeline", "t", "--nope"], ["--nope"]),
        (["timeline", "t", "u"], ["u"]),
        (["nope"], ["nope"]),
    ],
)
def test_wrong_usage_is_one_line_too(run, arguments, words):
    """Exit code 2, what is wrong, and where the help is; asked for nothing, the program shows its help."""
    result = run(*arguments)
    assert (result.code, result.out) == (2, "")
    (line,) = result.err.splitlines()
    assert line.startswith("hudi-py: ")
    for word in words:
        assert word in line
    assert "Commands:" in run().err + run().out


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_any_partition_value_can_be_shown_on_any_terminal(table, encoding):
    """What an encoding lacks is escaped, so that JSON stays one document; a file name that is no text too."""
    path = table("cow_nomdt-1.1.1")
    partition = "日本é𝄞"
    shutil.copytree(path / "r0", path / partition)
    (path / "r1" / os.fsdecode(b"not \xff text.parquet")).write_bytes(b"PAR1")
    process = hudi_py("files", path, "--json", PYTHONIOENCODING=encoding)
    assert process.returncode == 0, process.stderr
    assert partition in json.loads(process.stdout)["partitions"]
    others = [["files"], ["explain", "r1"], ["explain", "r1", "--json"], ["check", "--json"]]
    for command in others if encoding == "ascii" else others[1:2]:  # what ascii can show, all can
        process = hudi_py(command[0], path, *command[1:], PYTHONIOENCODING=encoding)
        assert process.returncode in {0, 3}, process.stderr
        assert process.stdout


def test_another_writer_is_exit_code_4_and_the_unexpected_one_line(run, table, monkeypatch):
    """Nothing that happens inside is shown as a traceback."""
    path = table("cow_nomdt-1.1.1")

    def fails(error):
        def service(*_, **__):
            raise error

        monkeypatch.setattr("hudi_py.table_services.TableServices.clean", service)
        return run("clean", path)

    lost = fails(ConflictError("somebody was faster"))
    assert (lost.code, lost.out, lost.err) == (4, "", "hudi-py: somebody was faster; try again\n")
    strange = fails(KeyError("a\nb"))
    assert (strange.code, strange.out) == (1, "")
    assert strange.err == "hudi-py: unexpected KeyError: 'a\\nb'; --debug shows where\n"


@pytest.mark.slow
@pytest.mark.parametrize("command", [("timeline",), ("files",), ("clean", "--dry-run")])
def test_reader_that_goes_away_is_no_error(table, command):
    """``hudi-py ... | head -1``: quiet, whatever the size of the output."""
    path = table("cow_many-1.1.1")
    reader, writer = os.pipe()
    os.close(reader)
    process = hudi_py(command[0], path, *command[1:], "--json", stdout=writer)
    os.close(writer)
    assert process.stderr == ""
    assert process.returncode == 0


@pytest.mark.slow
def test_text_is_plain_without_a_terminal(table):
    """No escape sequences when piped, with or without NO_COLOR; any locale."""
    path = table("cow_mixed-1.1.1")
    for environment in ({}, {"NO_COLOR": "1"}, {"LC_ALL": "C"}, {"TERM": "xterm-256color"}):
        process = hudi_py("files", path, **environment)
        assert process.returncode == 0, process.stderr
        assert "\x1b" not in process.stdout
        assert process.stderr == ""


@pytest.mark.slow
def test_secrets_are_never_printed(table):
    """Neither in errors nor with --debug."""
    secret = "HUSH-4711-HUSH"
    path = table("cow_nomdt-1.1.1")
    attempts = [
        ("timeline", path / "none", "--storage-option", f"secret={secret}"),
        ("timeline", path / "none", "--storage-option", f"secret={secret}", "--debug"),
        ("timeline", path, "--storage-option", secret),
        ("timeline", path, "--conf", secret),
        ("timeline", path, "--storage-option", f"secret={secret}", "--storage-option", f"secret={secret}2"),
        ("timeline", "nonsense://x/y", "--storage-option", f"secret={secret}"),
    ]
    for arguments in attempts:
        process = hudi_py(*arguments)
        assert process.returncode != 0
        assert secret not in process.stdout + process.stderr, arguments


def test_a_timeline_is_shown_without_services_and_other_commands(table):
    """Of the library only what reads instants, and of the commands only those of its own module."""
    code = (
        "import contextlib, io, sys\nfrom hudi_py.inspection.cli import main\n"
        "with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()) as said:\n"
        f"    main({['timeline', str(table('cow_many-1.1.1'))]!r})\n"
        "assert 'COMPLETED' in said.getvalue()\n"
        "print(*(name for name in sys.modules if name.startswith('hudi_py')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=with_checkout())
    loaded = done.stdout.split()
    assert [name for name in loaded if name.endswith(("_command", "_commands"))] == [
        "hudi_py.inspection.timeline_commands"
    ]
    unused = ("services", "snapshot", "fsview", "mdt", "rows", "writing", "local", "spark")
    assert not [name for name in loaded if name.split(".")[1:2] and name.split(".")[1] in unused]


@pytest.mark.parametrize("command", ["timeline", "files", "clean"])
def test_looking_at_a_table_imports_little(table, command):
    """No Spark, no pandas, nothing for remote storage, no Arrow, no rich: the answer comes at once."""
    path = table("cow_many-1.1.1")
    options = ["--dry-run", "--json"] if command == "clean" else ["--json"]
    code = (
        "import contextlib, io, sys\nfrom hudi_py.inspection.cli import main\n"
        "with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):\n"
        f"    main({[command, str(path), *options]!r})\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=with_checkout())
    assert done.returncode == 0, done.stderr
    assert not set(done.stdout.split()) & {
        "pyspark",
        "py4j",
        "pandas",
        "numpy",
        "fsspec",
        "pyarrow",
        "rich",
        "structlog",
    }


def parquet_files(path):
    return {file.name for file in path.rglob("*.parquet") if ".hoodie" not in file.parts}


@pytest.mark.slow
def test_without_permission_nothing_is_lost_and_it_works_afterwards(tmp_path):
    """A user who may only read: a clear error; a folder that refuses: the clean stays pending."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("only root can become somebody who may not")
    base = Path("/tmp") / f"hudi_py-{os.getpid()}"  # pytest's own folder is closed to others
    base.mkdir(mode=0o755)
    try:
        path = fixtures.unpack("cow_nomdt-1.1.1", base)
        subprocess.run(["chmod", "-R", "a+rX", str(base)], check=True)
        nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        probe = subprocess.run([*nobody, sys.executable, "-c", "import hudi_py"], env={"PYTHONPATH": str(ROOT)})
        if probe.returncode:
            pytest.skip("nobody cannot read this Python or this checkout")
        before = parquet_files(path)
        assert hudi_py("clean", path, "--commits-retained", 1, "--dry-run", prefix=nobody).returncode == 0
        assert_clear(hudi_py("clean", path, "--commits-retained", 1, prefix=nobody), 1, "Permission denied", str(path))
        assert parquet_files(path) == before
        # may write instants, may not delete data
        subprocess.run(["chown", "-R", "65534:65534", str(path / ".hoodie")], check=True)
        refused = hudi_py("clean", path, "--commits-retained", 1, prefix=nobody)
        assert_clear(refused, 1, "files could be deleted", "inflight")
        assert parquet_files(path) == before
        assert hudi_py("clean", path, "--json").returncode == 0
        assert parquet_files(path) < before
        assert hudi_py("clean", path).stdout.startswith("nothing to do")
    finally:
        shutil.rmtree(base)


@pytest.mark.slow
def test_full_disk_loses_nothing_and_works_afterwards(small_disk):
    """The error says so; with space again the same command succeeds."""
    disk = small_disk(32 * 1024)
    path = fixtures.unpack("cow_nomdt-1.1.1", disk)
    before = parquet_files(path)
    with contextlib.suppress(OSError), (disk / "filler").open("wb", buffering=0) as filler:
        while filler.write(b"x" * 4096):
            pass
    assert_clear(hudi_py("clean", path, "--commits-retained", 1), 1, "disk is full")
    assert parquet_files(path) == before
    assert hudi_py("timeline", path).returncode == 0
    (disk / "filler").unlink()
    assert hudi_py("clean", path, "--commits-retained", 1).returncode == 0
    assert parquet_files(path) < before


def with_checkout():
    """Environment of a process that imports the checkout."""
    return {**os.environ, "PYTHONPATH": str(ROOT)}
