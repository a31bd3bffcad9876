"""Foreign text at the door."""

from __future__ import annotations

import os
import shutil
import subprocess
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
def test_signs_whose_width_terminals_disagree_about(text: str, expected: str) -> None:
    assert safe(text) == expected
    # Some terminals add up the widths of all characters, others know what belongs together.
    assert cell_len(safe(text)) == sum(map(wcwidth, safe(text)))


SIGNS_OF_ARABIC_AND_SYRIAC = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD}  # fmt: skip
"""Signs for numbers and abbreviations, which Unicode counts as format though they are seen."""


def test_no_sign_of_unicode_stays_that_controls_or_hides() -> None:
    obeyed = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    for code in range(0x110000):
        if unicodedata.category(chr(code)) in obeyed and code != 0x0A:
            left = {sign for sign in safe(f"a{chr(code)}b") if unicodedata.category(sign) in obeyed}
            assert left <= {"\n"} or code in SIGNS_OF_ARABIC_AND_SYRIAC, hex(code)
            assert "\n" not in one_line(f"a{chr(code)}b")


@pytest.mark.parametrize("text", ["=1+1", "+x", "-x", "@SUM(1)", "-1+cmd|' /C calc'!A0", "=", "--"])
def test_no_spreadsheet_runs_a_cell(text: str) -> None:
    assert cell(text) == f"'{text}"


@pytest.mark.parametrize("text", ["", "loss", "-1", "+2.5", "-1e-6", "-inf", "a=1", "'=1", "1-2"])
def test_what_is_no_formula_stays_as_it_is(text: str) -> None:
    assert cell(text) == text


def test_a_shell_reads_pasted_words_as_they_were_and_no_terminal_obeys_them() -> None:
    names = [
        b"plain",
        b"a b$c'd",
        b"\x1b]52;c;ZQ==\x07'\\\n1",
        "\u202eabc\u200b".encode(),
        b"\xff\x9b2J",
    ]
    words = shell_words(os.fsdecode(name) for name in names)
    assert words.isprintable()
    assert words.startswith("plain 'a b$c'")
    if shell := shutil.which("bash"):
        said = subprocess.run(
            [shell, "-c", f"printf '%s\\0' {words}"], capture_output=True, check=True
        )
        assert said.stdout.split(b"\0")[:-1] == names
