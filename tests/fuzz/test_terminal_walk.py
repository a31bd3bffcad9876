"""Walks through the installed app on a real pty, a short one unless the environment asks for more (see
`seeds.py`).
"""

from __future__ import annotations

import pytest
from fuzz.seeds import seeds, steps
from fuzz.terminal_walk import walked


@pytest.mark.pty
@pytest.mark.parametrize("seed", seeds(1))
def test_nothing_on_a_terminal_breaks_the_app(seed):
    taken, wrong = walked(seed, steps(20))
    assert not wrong, f"VERL_TUI_SEEDS={seed}:{seed + 1}: {wrong}"
    assert taken
