"""However a file is cut into pieces on its way, it says the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from log_reading import feed_in_pieces, values
from test_console_prefixes import COLLECTED, LEADS, kept
from test_console_prefixes import TRL as TRL_LINES
from test_console_wrapped import captured, verl
from test_trainers import FORMS, printed
from test_wandb_damage import damaged

from verl_tui.sources.formats import filelogger, rollouts, tutorial, wandb
from verl_tui.sources.formats.console import reader as console
from verl_tui.sources.formats.tables import sample_records

if TYPE_CHECKING:
    from verl_tui.runs.run import Run

DATA = Path(__file__).parents[1] / "data"
SAMPLES = "".join(
    json.dumps({"input": f"q{at}", "output": f"it is {at % 3} then", "score": at % 3 / 2, "step": 1 + at // 5}) + "\n"
    for at in range(30)
)  # fmt: skip
FILES: dict[str, tuple[Any, str, bytes]] = {
    **{
        name: (console, name, (DATA / name).read_bytes())
        for name in ("console_v01.log", "console_v04.log", "console_v09.log", "console_sft.log")
    },
    **{name: (filelogger, name, (DATA / name).read_bytes()) for name in ("filelogger_v06.jsonl", "filelogger_v07.jsonl")},
    **{name: (rollouts, "7.jsonl", (DATA / name).read_bytes()) for name in ("rollout_v1.jsonl", "rollout_v06.jsonl")},
    "tutorial": (tutorial, "tutorial.jsonl", (DATA / "tutorial.jsonl").read_bytes()),
    "samples": (sample_records, "eval.jsonl", SAMPLES.encode()),
    **{way: (console, "train.log", kept(TRL_LINES, {**LEADS, **COLLECTED}[way]).encode()) for way in ("Docker", "compose")},
    **{f"{width} columns": (console, "train.log", captured(verl(3), width).encode()) for width in (60, 133)},
    **{name: (console, "train.log", printed(form)) for name, (form, *_) in FORMS.items()},
    "W&B": (wandb, "run-x.wandb", damaged(0)),
    "W&B, damaged": (wandb, "run-x.wandb", damaged(1)),
}  # fmt: skip
"""What it is -> its format, what it may be called, and its bytes."""
WHOLE: dict[str, tuple[object, ...]] = {}
"""What it is -> all that is said of it uncut."""


def said(run: Run) -> tuple[object, ...]:
    """Return all that a run knows."""
    return (
        {key: repr(values(run, key)) for key in run.keys},
        [repr(run.samples.kept(place)) for place in run.samples.places],
        (run.settings, run.unreadable, run.step, run.total_steps, run.outcome),
    )


@pytest.mark.parametrize("name", FILES)
@given(cuts=st.lists(st.integers(0, 10**6), max_size=12))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_cut_gives_the_same_run(name, cuts, tmp_path):
    format_, file, data = FILES[name]
    path = tmp_path / file
    if name not in WHOLE:
        whole, _ = feed_in_pieces(path, format_, data, [], to_the_end=True)
        assert whole.keys or format_ is rollouts, "a dump by itself has no figures"
        WHOLE[name] = said(whole)
    pieces, _ = feed_in_pieces(path, format_, data, cuts, to_the_end=True)
    assert said(pieces) == WHOLE[name]
