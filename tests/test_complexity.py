"""Functions and lines that a reader can hold: radon counts every way through a function, also those
in conditions and comprehensions, which ruff's C901 leaves out; ruff's E501 lets comments for tools
and long words pass.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from radon.complexity import cc_visit
from radon.visitors import Function

import verl_tui

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = Path(verl_tui.__file__).parent
MOST = 10
WIDEST = 100


def too_complex(source: str) -> Iterator[tuple[str, int]]:
    for one in cc_visit(source):
        if isinstance(one, Function) and one.complexity > MOST:
            yield one.fullname, one.complexity


def test_a_function_with_many_conditions_is_found():
    source = "def f(a):\n    return " + " or ".join(["a"] * 11)
    assert list(too_complex(source)) == [("f", 11)]


def test_no_function_has_more_than_ten_ways_through_it():
    found = {
        f"{path.relative_to(PACKAGE)}: {name}": ways
        for path in sorted(PACKAGE.rglob("*.py"))
        for name, ways in too_complex(path.read_text(encoding="utf-8"))
    }
    assert not found


def test_no_line_is_wider_than_a_hundred_columns():
    found = {
        f"{path.relative_to(PACKAGE)}:{number}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for number, line in enumerate(
            path.read_text(encoding="utf-8").splitlines(), start=1
        )
        if len(line) > WIDEST
    }
    assert not found
