"""Rows of tables as real Hudi reads them: snapshots, earlier times, base files alone."""

import re

import pytest

import hudi_py
from hudi_py.errors import HudiError, RefusedError
from hudi_py.rows.read import plain_rows
from support import fixtures

WITH_ROWS = fixtures.row_fixture_names("")
OTHERS = tuple(name for name in fixtures.fixture_names() if name.startswith("mor_"))


def ours(table, **how):
    return [row for batch in table.rows(with_meta=True, **how) for row in plain_rows(batch)]


def check(name, table, reads):
    questions = {"snapshot": ({}, reads["snapshot"])}
    if "read_optimized" in reads:
        questions["read optimized"] = ({"read_optimized": True}, reads["read_optimized"])
    questions |= {f"as of {time}": ({"as_of": time}, answer) for time, answer in reads.get("as_of", {}).items()}
    for question, (how, answer) in questions.items():
        if "error" in answer:
            with pytest.raises(HudiError, match="cannot be read as of"):
                ours(table, **how)
            continue
        try:
            rows = ours(table, **how)
        except RefusedError as error:  # Hudi reads what a clean has left of that time, often nothing
            assert re.search(r"clean .*deleted", str(error)), question
            assert name.startswith("mor_clean"), question
            continue
        assert (len(rows), fixtures.row_hash(rows)) == (answer["rows"], answer["hash"]), f"{name}, {question}"
        with_meta = fixtures.row_hash(rows, keep=fixtures.HASHED_META)
        assert with_meta == answer.get("hash_with_meta", with_meta), f"{name}, {question}"


@pytest.mark.parametrize("name", WITH_ROWS)
def test_rows_are_those_that_hudi_reads(name, tmp_path):
    """Each release's own rules for its own tables; what it refuses is refused."""
    check(name, hudi_py.open_table(fixtures.unpack_rows(name, tmp_path)), fixtures.expected_rows(name))


@pytest.mark.parametrize("name", OTHERS)
def test_rows_beside_table_services_are_those_that_hudi_reads(name, tmp_path):
    """Pending and completed compactions, cleans, rollbacks and failed writes."""
    check(name, hudi_py.open_table(fixtures.unpack(name, tmp_path)), fixtures.expected(name)["expected"]["reads"])
