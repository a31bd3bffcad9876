"""Terminals that show little: few glyphs, few colours, none."""

from __future__ import annotations

import pytest

from verl_tui.tui.ascii import few_glyphs


@pytest.mark.parametrize(
    ("term", "few"),
    [
        ("linux", True),
        ("linux-16color", True),
        ("vt100", True),
        ("vt220-w", True),
        ("ansi", True),
        ("cons25", True),
        ("xterm", False),
        ("xterm-256color", False),
        ("screen", False),
        ("tmux-256color", False),
        ("vte-256color", False),
        ("rxvt-unicode", False),
        ("", False),
    ],
)
def test_consoles_have_few_glyphs(term: str, few: bool) -> None:
    assert few_glyphs(term) is few
