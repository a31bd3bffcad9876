"""The phase in which a run failed, by the functions that its traceback names.

A traceback lists calls from the outermost inwards. The first one whose name says what the trainer
does tells most: what generates within a validation fails in the validation.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.patterns import pattern
from verl_tui.records import Phase
from verl_tui.text import one_line
from verl_tui.toml_tables import toml_table

if TYPE_CHECKING:
    import re
    from collections.abc import Sequence

WORDS = ('File "', "ray::", "_wg.", "rollout_manager.")
"""Every line that names a call contains one of these."""
_FRAME = pattern(
    rb'^\s*File "(?P<path>[^"]{1,400})", line (?P<line>\d{1,9}), in (?P<name>\w+|<module>)'
)
_OF_OTHERS = pattern(rb"[/-]packages/|/lib/python\d|<")
"""Files that users did not write."""
_REMOTE = pattern(
    rb"\bray::(?:\w+\.)?(?:(?:actor_rollout_ref|actor_rollout|rollout|actor|critic|ref)_)?"
    rb"(?P<name>\w+)\("
)
"""Ray's name for a call of another process; verl puts the worker's roles before the function."""
_GROUP = pattern(rb"^\s[^#\"']*(?:_wg|rollout_manager)\.(?P<name>\w+)\(")
"""verl's call of a group of workers, as the source line below a frame has it."""

_INSTALLED = b"site-packages"
"""Parts of a path above this are the user's folders, not the library."""


class _Form(NamedTuple):
    """A phase by the functions that show it, with the forms of their names and files."""

    words: str
    functions: re.Pattern[bytes]
    files: re.Pattern[bytes]
    outer: bool
    """True if they call functions of other phases, which tell more."""


@cache
def _forms() -> Sequence[_Form]:
    table = toml_table(__file__, "phases.toml")
    return [
        _Form(
            entry["words"],
            pattern(entry["functions"].encode()),
            pattern(
                entry.get("files", "").replace("{trainers}", table["trainers"]).encode()
            ),
            entry.get("outer", False),
        )
        for entry in table["phase"]
    ]


class PhaseReader:
    """Reads the lines of one traceback at a time."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Forget the traceback before."""
        self.phase: Phase | None = None
        """The phase of the run, None if no function shows it."""
        self._is_certain = False
        """False while an inner call may tell more."""
        self.frame = ""
        """The innermost call outside installed packages: `score() in reward.py:31`."""

    def read(self, part: bytes) -> None:
        """Note a line of the traceback."""
        frame = _FRAME.match(part)
        if frame is not None:
            self._note(frame["path"].rpartition(_INSTALLED)[2], frame["name"])
            if not _OF_OTHERS.search(frame["path"]):
                place = _place(frame["path"], frame["name"]).removeprefix(
                    "<module>() in "
                )
                self.frame = f"{place}:{int(frame['line'])}"
        elif (call := _GROUP.match(part)) is not None:
            self._note(b"", call["name"])
        else:
            for call in _REMOTE.finditer(part):
                self._note(b"", call["name"])

    def _note(self, path: bytes, name: bytes) -> None:
        """Note a call, by its file, where it is known, and its function."""
        if self._is_certain:
            return
        for form in _forms():
            if form.functions.fullmatch(name) and form.files.search(path):
                self.phase = Phase(form.words, _place(path, name))
                self._is_certain = not form.outer
                return


def _place(path: bytes, name: bytes) -> str:
    """Name a function and its file, without folders."""
    file = path.rpartition(b"/")[2]
    where = b"%s() in %s" % (name, file) if file else b"%s()" % name
    return one_line(where.decode("utf-8", "replace"), 80)
