"""Tests see what users see, or what a class offers: none reaches into the private parts of another.
Those of Textual that tests need are in `tests/tui/terminal`.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

TESTS = Path(__file__).parent
ELSEWHERE = (
    TESTS / "tui" / "terminal",
    # the parser of expressions has no public name any more
    TESTS / "fuzz" / "pumped.py",
    # runs within real trainers, which offer less than is needed there
    TESTS / "producers",
)
NAMED = re.compile(r"(?:.*\.)?_[A-Za-z]\w*")
"""A private name, or a path that ends in one."""
HINT = re.compile(
    r"(?<!\bself)(?<!\bcls)\._[A-Za-z]|['\"]_[A-Za-z]|import .*\b_|^ +_\w+,$",
    re.MULTILINE,
)
"""Stands in every file that uses a private part; most others need not be parsed."""
PUBLIC = {"_asdict", "_exit", "_fields", "_make", "_replace"}
"""Names that the standard library documents: of `os` and of named tuples."""
BY_NAME = {"delattr", "getattr", "hasattr", "setattr"}


def private(name: object) -> bool:
    return (
        isinstance(name, str)
        and NAMED.fullmatch(name) is not None
        and name not in PUBLIC
    )


def own(value: ast.expr) -> bool:
    return isinstance(value, ast.Name) and value.id in ("self", "cls")


def reached(node: ast.AST) -> Iterator[object]:
    """Yield the names by which a piece of code reaches into something else."""
    match node:
        case ast.Attribute(value=value, attr=name) if not own(value):
            yield name
        case ast.ImportFrom(module=module, names=names):
            yield from (module, *(one.name for one in names))
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if (
            name in BY_NAME
        ):
            yield from (one.value for one in node.args if isinstance(one, ast.Constant))


def private_parts(code: str) -> list[str]:
    """Return the private names of others that a piece of code uses, each with its line."""
    if not HINT.search(code):
        return []
    return [
        f"{node.lineno}: {name}"  # type: ignore[attr-defined]
        for node in ast.walk(ast.parse(code))
        for name in reached(node)
        if private(name)
    ]


def test_no_test_reaches_into_private_parts():
    files = [
        path
        for path in sorted(TESTS.rglob("*.py"))
        if not any(path.is_relative_to(folder) for folder in ELSEWHERE)
    ]
    assert len(files) > 200, "they are not found any more"
    found = {
        str(path.relative_to(TESTS)): parts
        for path in files
        if (parts := private_parts(path.read_text(encoding="utf-8")))
    }
    assert not found


def test_private_parts_are_found_however_they_are_reached():
    for code in (
        "app._paused",
        "super()._notify()",
        "from verl_tui.tui.export import _write",
        "from verl_tui.tui.export import (\n    _write,\n)",
        "from textual._context import active_app",
        "monkeypatch.setattr(worker, '_PAUSE', 0)",
        "monkeypatch.setattr('verl_tui.tui.export._BUDGET', 0)",
        "getattr(screen, '_drawn', None)",
    ):
        assert private_parts(code), code
    for code in (
        "self._parts",
        "point._replace(step=1)",
        "run.__class__",
        "from verl_tui.__main__ import run",
        "monkeypatch.setattr(worker, 'PAUSE', 0)",
    ):
        assert not private_parts(code), code
