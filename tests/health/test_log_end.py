"""The end of a long log tells of health before all of it has been read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from verl_tui.config import Config
from verl_tui.monitor import Monitor, load
from verl_tui.sources import ends
from verl_tui.sources.discovery.found import FoundFile
from verl_tui.sources.formats import filelogger

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

NOW = 1_700_000_000.0
LONG = 2**20
"""Bytes from which on a log counts as long here, so that writing one takes no time."""
_WIDE = 6000
"""Bytes of a step, about those of a hundred metrics."""


def _long_log(path: Path) -> Path:
    """Write a log whose gradients are broken at its end, and whose reward fell long before."""
    steps = 2 * LONG // _WIDE
    with path.open("w") as file:
        for step in range(1, steps):
            values = {
                "critic/score/mean": 0.5 if step < steps // 2 else 0.1,
                "actor/grad_norm": 1.0 if step < steps - 5 else float("nan"),
                "note": "x" * _WIDE,
            }
            file.write(json.dumps({"step": step, "data": values}) + "\n")
    return path


def test_a_preview_finds_what_is_at_the_end_and_says_not_since_when(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _long_log(tmp_path / "run.jsonl")
    monitor = Monitor(Config())
    monkeypatch.setattr(ends, "LONG", LONG)
    file = (FoundFile(path, filelogger), 0)
    for found in ends.previews({"run": [file]}):
        monitor.apply(found, NOW)
    early = monitor.verdicts["run"]
    assert [(one.id, one.since_step) for one in early.findings] == [
        ("not-finite", None)
    ]
    assert not early.not_judged, "what a part does not tell is no reason"

    (whole,) = load([str(path)], Config(), NOW).verdicts.values()
    assert {one.id for one in early.findings} < {one.id for one in whole.findings}
