"""Terminals that show little: few glyphs, few colours, none."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from verl_tui.rendering.text.ascii_table import few_glyphs, in_ascii
from verl_tui.words import percent_done


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
def test_consoles_have_few_glyphs(term, few):
    assert few_glyphs(term) is few


def test_every_sign_of_our_own_sentences_has_a_likeness_as_wide_as_itself():
    said = "no step for 40 min (≈ 3 × 2–4), “a” ≥ b → c … √(m(1−m)) ±1 ✓ ✗"
    shown = in_ascii(said)
    assert shown.isascii()
    assert "?" not in shown
    assert len(shown) == cell_len(said)


@pytest.mark.parametrize(
    ("share", "words"),
    [(0.0, "0%"), (0.165, "16%"), (209 / 210, "99%"), (0.29, "29%"), (1.2, "100%")],
)
def test_no_run_is_done_before_its_end(share, words):
    assert percent_done(share) == words
