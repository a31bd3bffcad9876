"""JSON that is nested deeper than recursion can follow costs its own record, and is counted."""

from __future__ import annotations

import json

import pytest
from log_reading import read_run

DEPTHS = (190, 900, 1020, 5000)


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


def row(number: int) -> str:
    return json.dumps({"input": "a", "output": f"b{number}", "score": 1.0, "step": 1})


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_dump_is_read_beyond_its_deep_rows(tmp_path, depth):
    directory = tmp_path / "rollouts"
    directory.mkdir()
    rows = [
        row(0),
        f'{{"input":"a","output":"b","score":0.0,"step":1,"extra":{nested(depth)}}}',
        f'{{"input":{nested(depth)},"output":"b","score":0.0,"step":1}}',
        row(1),
    ]
    (directory / "1.jsonl").write_text("\n".join(rows) + "\n")
    (tmp_path / "metrics.jsonl").write_text(
        '{"step":1,"data":{"critic/score/mean":1}}\n'
    )
    run = read_run(tmp_path)
    source = next(
        state for state in run.sources.values() if "dump" in state.status.format
    )
    assert source.status.problem is None
    assert source.status.records + source.status.unreadable == 4
    assert source.status.records == (4 if depth < 200 else 2)
