"""Foreign text at the door."""

from __future__ import annotations

import os
import unicodedata

import pytest
from rich.cells import cell_len
from wcwidth import wcwidth

from verl_tui.text import cell, one_line, safe, shell_words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("well done 👍🏽", "well done 👍"),
        ("🏽", ""),
        ("🇩🇪 and 🇯🇵", "DE and JP"),
        ("👩\u200d👧", "👩👧"),
        ("☀\ufe0f", "☀"),
    ],
)
def test_signs_whose_width_terminals_disagree_about(text, expected):
    assert safe(text) == expected
    # Some terminals add up the widths of all characters, others know what belongs together.
    assert cell_len(safe(text)) == sum(map(wcwidth, safe(text)))


@pytest.mark.parametrize(
    "signs",
    [
        "\x00\x08\t\x0b\x1f\x7f\x80\x9f\xad\u034f\u061c\u180e\u200b\u200f\u2028\u202e\u2060\u206f",
        "\ud800\udfff\ufe00\ufe0f\ufeff\ufff9\ufffb\U00013430\U0001343f\U0001bca0\U0001bca3",
        "\U0001d173\U0001d17a\U0001f1e6\U0001f1ff\U0001f3fb\U0001f3ff\U000e0000\U000e007f",
        "\U000e0100\U000e01ef",
    ],
)
def test_signs_are_replaced_wherever_they_stand(signs):
    for sign in signs:
        for around in ("", "a", "é—“、，😀"):
            assert sign not in safe(f"{around}{sign}{around}"), hex(ord(sign))


@pytest.mark.parametrize(
    "text", ["", "a\nb", "é—“”’…、，。😀𝑥→≤\xa0\u2010\u2027\u2030\ufffd"]
)
def test_what_a_terminal_can_show_stays_as_it_is(text):
    assert safe(text) == text


SIGNS_OF_ARABIC_AND_SYRIAC = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD}  # fmt: skip
"""Signs for numbers and abbreviations, which Unicode counts as format though they are seen."""


def test_no_sign_of_unicode_stays_that_controls_or_hides():
    obeyed = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    for code in range(0x110000):
        if unicodedata.category(chr(code)) in obeyed and code != 0x0A:
            shown = safe(f"a{chr(code)}b")
            left = {sign for sign in shown if unicodedata.category(sign) in obeyed}
            assert left <= {"\n"} or code in SIGNS_OF_ARABIC_AND_SYRIAC, hex(code)
            assert "\n" not in one_line(f"a{chr(code)}b")


@pytest.mark.parametrize(
    "text", ["=1+1", "+x", "-x", "@SUM(1)", "-1+cmd|' /C calc'!A0", "=", "--"]
)
def test_no_spreadsheet_runs_a_cell(text):
    assert cell(text) == f"'{text}"


@pytest.mark.parametrize(
    "text", ["", "loss", "-1", "+2.5", "-1e-6", "-inf", "a=1", "'=1", "1-2"]
)
def test_what_is_no_formula_stays_as_it_is(text):
    assert cell(text) == text


def test_no_terminal_obeys_pasted_words():
    names = [b"plain", b"a b$c'd", b"\x1b]52;c;ZQ==\x07'\\\n1"]
    names += ["\u202eabc\u200b".encode(), b"\xff\x9b2J"]
    words = shell_words(os.fsdecode(name) for name in names)
    assert words.isprintable()
    assert words.startswith("plain 'a b$c'")
