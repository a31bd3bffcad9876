"""Rows in little room."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from verl_tui.rendering.text.printable import cut

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
