"""The harness and the models by themselves: real Hudi reads back what it wrote. No code of ours takes part."""

import pytest
from real_hudi import RealHudiError

from support.interop_model import DEEP, Model, numbers

pytestmark = pytest.mark.oracle


def test_model_holds_for_real_hudi(peer, tmp_path):
    """A dict of rows predicts what real Hudi reads after its own upserts, deletes and cleans, for all types."""
    table, model = tmp_path / "t", Model(DEEP)
    create = DEEP.create(peer.table_version) | {"hoodie.metadata.enable": "false"}
    peer.write(table, model.upsert(DEEP.batch(range(7), 1)), "upsert", create)
    second = peer.write(table, model.upsert(DEEP.batch(numbers(1, 7, 4), 2)))
    then = model.rows()
    peer.write(table, model.delete(DEEP.batch([0, 1], 3)), "delete")

    assert model.rows() == peer.read(table)
    assert then == peer.read(table, as_of=second["requested_time"])
    cleaned = peer.clean(table, {"hoodie.cleaner.commits.retained": 1})
    assert cleaned["deleted_files"], cleaned
    assert model.rows() == peer.read(table)
    with pytest.raises(RealHudiError) as caught:
        peer.plan_clean(table, policy="KEEP_EVERYTHING")
    assert caught.value.kind.startswith("java.lang."), caught.value
