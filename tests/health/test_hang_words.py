"""What `hang.toml` says is of states and stages that there are."""

from __future__ import annotations

from verl_tui.health.diagnoses import hang
from verl_tui.runs.views.state import State
from verl_tui.sources.formats.console.events import TABLE
from verl_tui.toml_tables import toml_table

WORDS = toml_table(hang.__file__, "hang.toml")


def test_reasons_are_of_known_states() -> None:
    states = {state.value for state in State}
    assert WORDS["elsewhere"].keys() <= states | {"unattended"}


def test_starts_are_told_apart_by_stages_that_consoles_print() -> None:
    *special, usual = WORDS["start"]
    assert usual["stages"] == [""]
    stages = [one["match"] for one in TABLE["event"] if one["kind"] == "stage"]
    forms = " ".join(stages).replace("\\", "")
    for start in special:
        assert start["seconds"] > usual["seconds"]
        assert all(stage in forms for stage in start["stages"])
