"""Textual's private parts are used in one package only."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import textual

import verl_tui.tui

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(verl_tui.tui.__file__).parent
PUBLIC = frozenset({"_replace", "_asdict", "_fields"})
"""Of named tuples, in spite of the underscore."""
EXTENDED = ("app", "dom", "message_pump", "screen", "scroll_view", "widget")
"""Modules with the classes that ours are kinds of."""


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in PUBLIC


def attributes(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield whose attributes are used, and their names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            yield ast.unparse(node.value), node.attr


@cache
def of_textual() -> frozenset[str]:
    """Return the private names of Textual's own apps, screens and widgets."""
    folder, names = Path(textual.__file__).parent, set[str]()
    for name in EXTENDED:
        tree = ast.parse((folder / f"{name}.py").read_text(encoding="utf-8"))
        names |= {found for owner, found in attributes(tree) if owner == "self"}
        functions = (
            n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)
        )
        names |= {function.name for function in functions if is_private(function.name)}
    return frozenset(names)


def uses(tree: ast.AST) -> Iterator[str]:
    """Yield the private parts of Textual that a module uses."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("textual._"):
            yield node.module or ""
        if isinstance(node, ast.ClassDef):
            defined = (one.name for one in node.body if isinstance(one, ast.FunctionDef))
            yield from (name for name in defined if name in of_textual())
    yield from (f"{owner}.{name}" for owner, name in attributes(tree) if name in of_textual())


def test_no_private_part_of_textual_is_used_outside_its_package() -> None:
    found = {
        f"{path.relative_to(ROOT)}: {use}"
        for path in ROOT.rglob("*.py")
        if path.parent.name != "terminal"
        for use in uses(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert not found


def test_what_is_private_is_found() -> None:
    source = (
        "from textual._compositor import X\nclass A(App):\n    def _display(self): self._driver"
    )
    assert set(uses(ast.parse(source))) == {"textual._compositor", "_display", "self._driver"}
