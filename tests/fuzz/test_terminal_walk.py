"""A short walk through the installed app on a real pty; `terminal_walk.py` beside this walks on."""

from __future__ import annotations

import pytest
from fuzz.terminal_walk import walked


@pytest.mark.pty
@pytest.mark.parametrize(
    ("seed", "steps"),
    [(0, 40), *(pytest.param(at, 300, marks=pytest.mark.thorough) for at in (1, 2))],
)
def test_nothing_on_a_terminal_breaks_the_app(seed: int, steps: int) -> None:
    taken, wrong = walked(seed, steps)
    assert not wrong, f"terminal_walk.py --seed {seed} --steps {steps}: {wrong}"
    assert taken
