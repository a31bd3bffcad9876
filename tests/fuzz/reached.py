"""Which ways the readers' code has been gone."""

from __future__ import annotations

import sys
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType, TracebackType

Way = tuple[str, str, int, int]
"""A file, a function in it, a line and the one that came next, 0 before the first."""
_WHERE = "/verl_tui/sources/"


class Reached:
    """Notes the ways from line to line that are gone in a `with` block."""

    def __init__(self) -> None:
        self.ways: set[Way] = set()

    def __enter__(self) -> Reached:
        sys.settrace(self._enter)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        sys.settrace(None)

    def _enter(self, frame: FrameType, event: str, argument: object) -> Any:
        code = frame.f_code
        if _WHERE not in code.co_filename or code.co_name == "<module>":
            return None
        file = code.co_filename.rpartition(_WHERE)[2]
        name, ways, before = code.co_name, self.ways, 0

        def go(frame: FrameType, event: str, argument: object) -> Any:
            nonlocal before
            if event == "line":
                ways.add((file, name, before, frame.f_lineno))
                before = frame.f_lineno
            return go

        return go


def words() -> list[bytes]:
    """Return the texts that the readers' code holds and may look for: what a fuzzer never guesses."""
    found: set[bytes] = set()
    for name, module in sorted(sys.modules.items()):
        if (
            name.startswith("verl_tui.sources")
            and (file := module.__file__) is not None
        ):
            code = compile(
                Path(file).read_text(encoding="utf-8"), file, "exec", optimize=2
            )
            found.update(_texts(code))
    return sorted(found)


def _texts(code: CodeType) -> Iterator[bytes]:
    for constant in code.co_consts:
        yield from _texts_of(constant)


def _texts_of(constant: object) -> Iterator[bytes]:
    if isinstance(constant, CodeType):
        yield from _texts(constant)
    elif isinstance(constant, (tuple, frozenset)):
        for one in constant:
            yield from _texts_of(one)
    elif isinstance(constant, (str, bytes)):
        data = (
            constant.encode("utf-8", "surrogatepass")
            if isinstance(constant, str)
            else constant
        )
        if 1 < len(data) <= 40:
            yield data
