"""Changes of code that tests are to notice; `mutants.py` beside this tries many."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("coverage", reason="the tests of a line are read from its data")

from fuzz.mutants import Mutant, mutants


@pytest.mark.parametrize(
    ("code", "changed"),
    [
        ("é = a <= b", ["é = a < b"]),
        ("x = a not in b and (c)", ["x = a not in b or (c)", "x = a in b and (c)"]),
        ("if not x: y = a - b", ["if  x: y = a - b", "if not x: y = a + b"]),
        ("x = 1 * 30", ["x = 1 / 30", "x = 2 * 30", "x = 1 * 60"]),
        ("x = 'a < b', 2.5", ["x = 'a < b', 5.0"]),
        ("x = a is (not b)", ["x = a is ( b)", "x = a is not (not b)"]),
    ],
)
def test_changes_are_of_one_place_each(code: str, changed: list[str]) -> None:
    source = code.encode()
    found = [one.changed(source).decode() for one in mutants(Path("x.py"), source)]
    assert sorted(found) == sorted(changed)


def test_a_change_is_reported_with_its_place() -> None:
    source = b"a = 1\nb = a == 2\n"
    in_words = Mutant(Path("x.py"), 2, 11, 14, "!=").in_words(source)
    assert in_words == "x.py:2: == -> != in: b = a == 2"
