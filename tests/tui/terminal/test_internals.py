"""Textual's private parts are used in one package only."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import textual

import verl_tui.tui

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(verl_tui.tui.__file__).parent
TESTS = Path(__file__).parents[2]
PUBLIC = frozenset({"_replace", "_asdict", "_fields", "_exit"})
"""Of named tuples and `os`, in spite of the underscore."""
EXTENDED = ("app", "dom", "message_pump", "screen", "scroll_view", "widget")
"""Modules with the classes that ours are kinds of."""


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in PUBLIC


def is_private_module(name: str) -> bool:
    return name.startswith("textual.") and "._" in name


def attributes(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield whose attributes are used, and their names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            yield ast.unparse(node.value), node.attr


@cache
def of_textual() -> frozenset[str]:
    """Return the private names of Textual's own apps, screens and widgets."""
    folder = Path(textual.__file__).parent
    names = set[str]()
    for name in EXTENDED:
        tree = ast.parse((folder / f"{name}.py").read_text(encoding="utf-8"))
        names |= {found for owner, found in attributes(tree) if owner == "self"}
        functions = (
            n
            for n in ast.walk(tree)
            if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)
        )
        names |= {function.name for function in functions if is_private(function.name)}
    return frozenset(names)


def uses(tree: ast.AST) -> Iterator[str]:
    """Yield the private parts of Textual that a module uses."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and is_private_module(node.module or ""):
            yield node.module or ""
        if isinstance(node, ast.Constant) and is_private_module(str(node.value)):
            yield str(node.value)
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(
            ("getattr", "setattr")
        ):
            names = (
                str(one.value) for one in node.args if isinstance(one, ast.Constant)
            )
            yield from (name for name in names if name in of_textual())
        if isinstance(node, ast.ClassDef):
            defined = (
                one.name for one in node.body if isinstance(one, ast.FunctionDef)
            )
            yield from (name for name in defined if name in of_textual())
    yield from (
        f"{owner}.{name}" for owner, name in attributes(tree) if name in of_textual()
    )


@pytest.mark.parametrize("root", [ROOT, TESTS], ids=["the app", "tests"])
def test_no_private_part_of_textual_is_used_outside_its_package(root):
    found = {
        f"{path.relative_to(root)}: {use}"
        for path in root.rglob("*.py")
        if path.parent.name != "terminal"
        if "textual" in (source := path.read_text(encoding="utf-8"))
        for use in uses(ast.parse(source))
    }
    assert not found
