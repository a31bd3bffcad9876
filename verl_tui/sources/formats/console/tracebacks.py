"""The tracebacks of a console, and the phase in which a run failed by the functions that they name.

A traceback lists calls from the outermost inwards. The first one whose name says what the trainer
does tells most: what generates within a validation fails in the validation.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from verl_tui.patterns import pattern
from verl_tui.records import Phase
from verl_tui.sources.formats.console.events import form_of
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
    rb"\bray::(?P<actor>\w{1,60}\b\.)?"
    rb"(?:(?:actor_rollout_ref|actor_rollout|rollout|actor|critic|ref)_)?"
    rb"(?P<name>\w+)\((?:\) \((?P<place>pid=\d+(?:, ip=[\d.]+)?))?"
)
"""Ray's name for a call of another process; verl puts the worker's roles before the function."""
_GROUP = pattern(rb"^\s[^#\"']*(?:_wg|rollout_manager)\.(?P<name>\w+)\(")
"""verl's call of a group of workers, as the source line below a frame has it."""
_INSTALLED = b"site-packages"
"""Parts of a path above this are the user's folders, not the library."""
_EXCEPTION, _UNUSUAL = form_of("exception"), form_of("unusual")
_CHAIN = form_of("chain")


@cache
def _phases() -> Sequence[tuple[str, re.Pattern[bytes], re.Pattern[bytes], bool]]:
    """Return the phases by the forms of their functions and files; True for those that call
    functions of other phases, which tell more.
    """
    table = toml_table(__file__, "phases.toml")
    found = []
    for one in table["phase"]:
        files = one.get("files", "").replace("{trainers}", table["trainers"])
        forms = pattern(one["functions"].encode()), pattern(files.encode())
        found.append((one["words"], *forms, one.get("outer", False)))
    return found


class Traceback:
    """The traceback that a process prints."""

    def __init__(self) -> None:
        self.is_open = self.is_framed = self._is_ignored = False
        self._is_last = False
        """True if the present line stands right behind the frames, and may name the exception."""
        self.chained = ""
        """How the exception follows from the one before it; empty if it does not."""
        self.where = ""
        """The process in which Ray says that it was raised."""
        self._begin()

    def _begin(self) -> None:
        self.phase: Phase | None = None
        """The phase of the run, None if no function shows it."""
        self._is_certain = False
        """False while an inner call may tell more."""
        self.frame = ""
        """The innermost call outside installed packages: `score() in reward.py:31`."""

    def look_at(self, text: bytes) -> None:
        """Note where the next line stands."""
        is_within = self.is_open and text[:1].isspace()
        was_framed = self.is_open and self.is_framed
        self._is_last = was_framed and not is_within and bool(_UNUSUAL.match(text))
        if is_within:
            self.is_framed |= text.lstrip().startswith(b'File "')
        elif self.is_open:
            self.is_framed = False

    def opened(self) -> bool:
        """Note the head of a traceback; return whether it counts."""
        self.is_open, self._is_ignored = not self._is_ignored, False
        if self.is_open and not self.chained:
            self._begin()
        return self.is_open

    def takes(self, text: bytes) -> bool:
        """Take a line that belongs to a traceback, if it says nothing by itself."""
        if found := _CHAIN.match(text):
            self.chained = found.lastgroup or ""
        elif text.startswith(b"Exception ignored in"):
            self._is_ignored = True
        elif self.is_open:
            self._note(text)
            return self.is_framed and text[:1].isspace()
        else:
            return False
        return True

    @property
    def is_empty(self) -> bool:
        """True if it has taken nothing that matters for later lines."""
        is_begun = self.is_open or self.chained or self._is_ignored
        return not (is_begun or self.frame or self.phase)

    def raises(self, text: bytes) -> bool:
        """Return whether a line names the exception."""
        return self._is_last or (self.is_open and _EXCEPTION.match(text) is not None)

    def ends(self) -> None:
        """Note that its exception was printed."""
        self.is_open = self.is_framed = False
        self.chained = ""

    def _note(self, text: bytes) -> None:
        """Note the calls that a line names."""
        if frame := _FRAME.match(text):
            self._note_call(frame["path"].rpartition(_INSTALLED)[2], frame["name"])
            if not _OF_OTHERS.search(frame["path"]):
                named = _call(frame["path"], frame["name"])
                named = named.removeprefix("<module>() in ")
                self.frame = f"{named}:{int(frame['line'])}"
        elif call := _GROUP.match(text):
            self._note_call(b"", call["name"])
        for call in _REMOTE.finditer(text):
            self._note_call(b"", call["name"])
            if call["place"]:
                name = call["actor"] or call["name"]
                self.where = place(name.rstrip(b".") + b" " + call["place"])

    def _note_call(self, path: bytes, name: bytes) -> None:
        """Note a call, by its file, where it is known, and its function."""
        for words, functions, files, outer in () if self._is_certain else _phases():
            if functions.fullmatch(name) and files.search(path):
                self.phase = Phase(words, _call(path, name))
                self._is_certain = not outer
                return


def _call(path: bytes, name: bytes) -> str:
    """Name a function and its file, without folders."""
    file = path.rpartition(b"/")[2]
    where = b"%s() in %s" % (name, file) if file else b"%s()" % name
    return one_line(where.decode("utf-8", "replace"), 80)


def place(data: bytes) -> str:
    """Return Ray's words for a process: `pid 52003 on 10.0.0.9`."""
    words = data.replace(b"pid=", b"pid ").replace(b",", b"").replace(b"ip=", b"on ")
    return one_line(words.decode("utf-8", "replace"), 60)
