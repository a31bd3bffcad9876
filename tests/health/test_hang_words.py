"""What `words.toml` says of hangs is of states and stages that there are."""

from __future__ import annotations

from verl_tui.health.diagnoses.diagnosis import WORDS
from verl_tui.runs.views.state import State
from verl_tui.sources.formats.console.events import TABLE

HANG = WORDS["hang"]


def test_reasons_are_of_known_states() -> None:
    states = {state.value for state in State}
    assert HANG["elsewhere"].keys() <= states | {"unattended"}


def test_starts_are_told_apart_by_stages_that_consoles_print() -> None:
    *special, usual = HANG["start"]
    assert usual["stages"] == [""]
    stages = [one["match"] for one in TABLE["event"] if one["kind"] == "stage"]
    forms = " ".join(stages).replace("\\", "")
    for start in special:
        assert start["seconds"] > usual["seconds"]
        assert all(stage in forms for stage in start["stages"])
