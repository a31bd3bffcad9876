"""What the tests look for when they look for text that is cut."""

from __future__ import annotations

import pytest
from cut_text import cut_words

KNOWN = frozenset(("reward", "of", "data", "trainer", "rollout", "dir", "step"))


@pytest.mark.parametrize(
    ("rows", "cut"),
    [
        (["reward of step", ""], []),
        (["reward of st", ""], ["st"]),
        (["reward of st…", "…ward ~ep"], []),
        (["reward of st│", "ep goes", ""], ["st", "ep", "goes"]),
        (["trainer.rollout_dat", "a_dir of a step"], []),
        (["trainer.rollout_da", "ta_dir", ""], []),
        (["OK 12 TR", ""], []),
        (["it goes on below: st"], ["it", "goes", "on", "below"]),
    ],
)
def test_words_that_nobody_has_written(rows: list[str], cut: list[str]) -> None:
    assert [problem.split("'")[1] for problem in cut_words(rows, KNOWN)] == cut
