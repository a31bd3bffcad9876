"""Functions that a reader can hold: radon counts every way through one, also those in conditions and
comprehensions, which ruff's C901 leaves out.
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


def too_complex(source: str) -> Iterator[tuple[str, int]]:
    for one in cc_visit(source):
        if isinstance(one, Function) and one.complexity > MOST:
            yield one.fullname, one.complexity


def test_a_function_with_many_conditions_is_found() -> None:
    source = "def f(a):\n    return " + " or ".join(["a"] * 11)
    assert list(too_complex(source)) == [("f", 11)]


def test_no_function_has_more_than_ten_ways_through_it() -> None:
    found = {
        f"{path.relative_to(PACKAGE)}: {name}": ways
        for path in sorted(PACKAGE.rglob("*.py"))
        for name, ways in too_complex(path.read_text(encoding="utf-8"))
    }
    assert not found
