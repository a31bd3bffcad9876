"""Rows in little room."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from verl_tui.rendering.text.printable import cut, wrapped

if TYPE_CHECKING:
    from verl_tui.rendering.text.piece import Pieces

ROW: Pieces = [("name", "label"), ("  ", ""), ("汉字", "value"), ("   ", "")]


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (20, "name  汉字   "),
        (10, "name  汉字"),
        (9, "name  汉…"),
        (8, "name   …"),
        (3, "na…"),
        (1, "…"),
        (0, ""),
    ],
)
def test_a_row_that_loses_words_says_so(cells: int, expected: str) -> None:
    row = cut(ROW, cells, "…")
    assert "".join(text for text, _ in row).rstrip() == expected.rstrip()


def test_the_mark_looks_like_what_it_ends() -> None:
    assert cut(ROW, 9, "~")[-1] == ("~", "value")
    assert "".join(text for text, _ in cut(ROW, 9)) == "name  汉 "


@pytest.mark.parametrize("duration", ["2h 44m ago", "3d 4h", "12d ago", "20s ago"])
def test_a_duration_stays_in_one_row(duration: str) -> None:
    text = f"the last record came {duration}, which is long"
    for cells in range(20, 60):
        lines = wrapped(text, cells)
        assert any(duration in line for line in lines), cells
        assert " ".join(lines) == text
        assert max(map(len, lines)) <= cells


def test_a_duration_breaks_where_nothing_else_fits() -> None:
    assert wrapped("2h 44m ago", 4) == ("2h", "44m", "ago")
