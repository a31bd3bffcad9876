"""What has changed in a run since the user looked at it last, in one sentence or in none."""

from __future__ import annotations

import json

import pytest
from run_views import NOW, make_run, make_view

from verl_tui.health.finding import Verdict
from verl_tui.rendering.session.preferences import StateFile
from verl_tui.rendering.session.run_order import id_of
from verl_tui.rendering.session.visits import AWAY, Visit, Visits, since

BEFORE = Visit("a", 0.0, 100, ("kl-high 90", "plateau 80"), 0.41)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, ""),
        ({"reward": 0.5}, ""),  # a later reading of the same step
        ({"step": 340, "reward": 0.58}, "+240 steps, reward 0.41 → 0.58"),
        ({"step": 101, "reward": 0.4101}, "+1 step"),
        ({"step": 101, "reward": None}, "+1 step"),
        ({"step": 12, "reward": 0.1}, "back at step 12, reward 0.41 → 0.1"),
        ({"findings": (*BEFORE.findings, "crash 100")}, "1 new finding"),
        ({"findings": ("kl-high 90",)}, "1 finding over"),
        ({"findings": ("kl-high 95", "x 1")}, "2 new findings, 2 findings over"),
        (
            {"step": 110, "findings": ("kl-high 90", "crash 110"), "reward": 0.3},
            "+10 steps, reward 0.41 → 0.3, 1 new finding, 1 finding over",
        ),
    ],
)
def test_what_has_changed(change, said):
    now = BEFORE._replace(time=4800.0, **change)
    words = since(BEFORE, now)
    assert words.startswith("since ") == bool(said)
    assert words.partition(": ")[2] == said


def test_it_is_said_at_the_start_and_after_a_long_time_without_a_key(tmp_path):
    path = tmp_path / "state.json"

    def at(steps, seconds):
        run = make_run(steps=steps)
        return make_view(run, verdicts={run.name: Verdict()}, now=NOW + seconds)

    first = Visits(StateFile(path))
    assert first.words(at(10, 0), key=False) == "", "it is not known yet"
    assert first.words(at(12, AWAY - 1), key=True) == "", "the user was there"
    assert "+3 steps" in first.words(at(15, 2 * AWAY), key=True)
    assert first.words(at(15, 9 * AWAY), key=True) == "", "nothing has changed"
    assert first.words(at(25, 10 * AWAY), key=False) == "", "nobody may be there"
    first.keep()
    again = Visits(StateFile(path))
    assert "+5 steps" in again.words(at(20, 9 * AWAY + 1), key=False)
    assert again.words(at(21, 9 * AWAY + 2), key=False) == "", "once"


@pytest.mark.parametrize(
    "look",
    ["nonsense", "[1]", "{}", '["x", 1]', "[]", "[" * 100_000, '["RUN"]', '["RUN", "noon", "5"]',
     '["RUN", null, null, null]', '["RUN", 1, 5, 3]', '["RUN", 1, 5, [[1]]]', '["RUN", 1, 5, [], "x"]'],
)  # fmt: skip
def test_a_damaged_look_costs_nothing_but_itself(tmp_path, look):
    path, run = tmp_path / "state.json", make_run(steps=20)
    sound = json.dumps(Visit(id_of(run), NOW, 15))
    path.write_text(
        json.dumps({"looks": [look.replace("RUN", id_of(run)), sound]}),
        encoding="utf-8",
    )
    view = make_view(run, verdicts={run.name: Verdict()}, now=NOW)
    assert "+5 steps" in Visits(StateFile(path)).words(view, key=False)
