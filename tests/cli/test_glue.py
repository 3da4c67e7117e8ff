"""Tables of a database of AWS Glue: those of Apache Hudi, each once, asked of a server that speaks Glue."""

from __future__ import annotations

import json

import pytest

from hudi_py.errors import ConfigError, StorageError
from hudi_py.inspection import glue_tables
from hudi_py.inspection.glue_tables import tables_in_glue
from hudi_py.inspection.table_lists import tables_of

pytestmark = pytest.mark.s3
PARQUET = "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat"
HUDI = "org.apache.hudi.hadoop.HoodieParquetInputFormat"


@pytest.fixture(autouse=True)
def catalog(s3_options, monkeypatch):
    """Where boto3 looks for the catalog."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_GLUE", s3_options["endpoint_url"])


@pytest.fixture(scope="module")
def options(s3_options):
    """Options for a catalog with a database of tables of several kinds."""
    boto3 = pytest.importorskip("boto3")
    pytest.importorskip("pyparsing", reason="needs moto[glue]")
    given = s3_options
    glue = boto3.session.Session().client(
        "glue", endpoint_url=given["endpoint_url"], region_name=given["region"],
        aws_access_key_id=given["key"], aws_secret_access_key=given["secret"],
    )  # fmt: skip
    glue.create_database(DatabaseInput={"Name": "lake"})
    glue.create_database(DatabaseInput={"Name": "nothing"})

    def create(name, location, form=PARQUET, provider=None):
        parameters = {} if provider is None else {"spark.sql.sources.provider": provider}
        descriptor = {"Location": location, "InputFormat": form, "Columns": []}
        table = {"Name": name, "StorageDescriptor": descriptor, "Parameters": parameters}
        glue.create_table(DatabaseName="lake", TableInput=table)

    create("trips_ro", "s3a://contract/trips/", HUDI)
    create("trips_rt", "s3a://contract/trips", "org.apache.hudi.hadoop.realtime.HoodieParquetRealtimeInputFormat")
    create("rides", "s3://contract/rides", provider="hudi")
    create("plain", "s3://contract/plain")
    create("other", "s3://contract/other", provider="iceberg")
    return given


@pytest.mark.parametrize("size", [1, 100])
def test_hudi_tables_of_a_database_are_found(options, monkeypatch, size):
    """By what Hudi's own synchronization writes; the two tables of a merge-on-read table are one location."""
    monkeypatch.setattr(glue_tables, "PAGE_SIZE", size)
    assert sorted(tables_of("glue://lake", options)) == ["s3://contract/rides", "s3://contract/trips"]
    assert tables_of("glue://lake/trips_*", options) == ("s3://contract/trips",)


def test_what_is_not_there_is_named(options, monkeypatch):
    """A database that is unknown or empty, a source without a name, a catalog that does not answer."""
    for source in ("glue://none", "glue://nothing", "glue://", "glue://lake/none_*"):
        with pytest.raises(ConfigError, match=source):
            tables_of(source, options)
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/none")
    with pytest.raises(ConfigError, match="region"):
        tables_of("glue://lake", {name: value for name, value in options.items() if name != "region"})
    monkeypatch.setenv("AWS_ENDPOINT_URL_GLUE", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    with pytest.raises(StorageError, match="glue://lake"):
        list(tables_in_glue("glue://lake", options))


def test_a_command_runs_over_them(run, options):
    """Each has its line; one that is in the catalog and not in the store is an error of its own."""
    storage = [part for name, value in options.items() for part in ("--storage-option", f"{name}={value}")]
    result = run("timeline", "--tables", "glue://lake/rides", "--json", *storage)
    assert result.code == 6
    [line] = [json.loads(each) for each in result.out.splitlines()]
    assert (line["table"], line["exit_code"]) == ("s3://contract/rides", 5)
