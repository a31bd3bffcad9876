"""W&B runs that are cut, damaged or hostile: what can be read is read, and nothing wrong is said."""

from __future__ import annotations

import json

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from log_reading import drain
from property_examples import examples
from wandb_reading import said, source
from wandb_writing import history, stats, written

from verl_tui.records import Unreadable
from verl_tui.sources.formats import record_log

# -- damage ----------------------------------------------------------------------------------------

STEPS = 1200


def many(count: int = STEPS) -> list[bytes]:
    """Return records of some blocks: the value of each metric is its step, so that a wrong step
    would show.
    """
    records = []
    for step in range(count):
        records.append(
            history(step, {"a": str(step), "b": f"{step}.0", "_timestamp": "1.5"})
        )
        records.append(stats(step, {"cpu": str(step), "gpu.0.gpu": str(step)}))
        if step % 400 == 7:
            records.append(
                history(step, {"long": str(step), "text": json.dumps("x" * 50_000)})
            )
    return records


MANY = written(many())


def damaged(flip: int) -> bytes:
    """Return a short log of which a byte is changed so."""
    data = bytearray(written(many(30)))
    data[100] ^= flip
    return bytes(data)


@given(
    places=st.lists(
        st.tuples(st.integers(0, len(MANY) - 1), st.integers(1, 255)),
        min_size=1,
        max_size=6,
    )
)
@settings(
    max_examples=examples(0.8),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_damage_costs_records_but_never_changes_one(tmp_path, places):
    data = bytearray(MANY)
    for place, flip in places:
        data[place] ^= flip
    records = drain(source(tmp_path, bytes(data)))
    for key, steps in said(records).items():
        for step, found in steps.items():
            assert set(found) == {f"{step}.0"}, key
    kept = said(records).get("a", {})
    assert len(kept) >= STEPS - 300 * len(places), "the next block is read again"
    told = any(isinstance(record, Unreadable) for record in records)
    last = len(MANY) - len(MANY) % record_log.BLOCK
    assert told or len(kept) == STEPS or any(place >= last for place, _ in places), (
        "what is lost is told"
    )


def test_what_is_damaged_is_reported_with_its_place(tmp_path):
    data = bytearray(MANY)
    data[record_log.BLOCK + 100] ^= 1
    data[5 * record_log.BLOCK : 6 * record_log.BLOCK] = bytes(record_log.BLOCK)
    told = [
        record
        for record in drain(source(tmp_path, bytes(data)))
        if isinstance(record, Unreadable)
    ]
    assert [record.reason.split(" at ")[0] for record in told] == [
        "a damaged chunk",
        "a damaged chunk",
    ]
    assert told[0].reason.endswith(f"at byte {record_log.BLOCK:,}")
