"""What a line of a console holds besides metrics: names of the process that printed it, before
those the additions of containers, schedulers and log collectors, and the time, with the counters of
heartbeats; progress bars; in words turning points of the training, such as starts, checkpoints,
stages and normal ends, and numbers of steps.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from verl_tui.patterns import pattern
from verl_tui.records import Event, EventKind, Progress
from verl_tui.secrets import hide
from verl_tui.text import decoded, one_line
from verl_tui.toml_tables import toml_table

# -- words -----------------------------------------------------------------------------------------

_ORDER = "zqjxkvbywgp?mfu,.c:d_lhrsnioate "
"""Letters by how well they are searched for: those that are rare in English text and in logs, yet
in many words, then all others (`?`), then the common ones.
"""
TABLE = toml_table(__file__, "events.toml")


def any_of(words: Iterable[str]) -> re.Pattern[bytes]:
    """Return a pattern that is found in all texts that contain one of the words, and in no others.

    A search pauses at each letter that it looks for, and tries one after the other. So these are
    few and rare ones, the most common first; from there it looks back at what stands before.
    """
    by_letter: dict[str, set[str]] = {}
    for word in words:
        letter = min(word, key=_place)
        before, _, behind = word.partition(letter)
        known = f"(?<={re.escape(before + letter)})" if before else ""
        by_letter.setdefault(letter, set()).add(known + re.escape(behind))
    parts = (
        f"{re.escape(letter)}(?:{'|'.join(sorted(rest))})"
        for letter, rest in sorted(by_letter.items(), key=lambda one: -_place(one[0]))
    )
    return pattern("|".join(parts).encode())


def _place(letter: str) -> int:
    if letter in _ORDER:
        return _ORDER.find(letter)
    return _ORDER.index("?")


def words_of(rows: str) -> list[str]:
    """Return words one of which is in each line that some rows of the table describe."""
    return [word for entry in TABLE[rows] for word in entry.get("words", ())]


def form_of(kind: str, rows: str = "event") -> re.Pattern[bytes]:
    """Return what finds all lines of a kind, see `events.toml`."""
    forms = [one["match"] for one in TABLE[rows] if one.get("kind", kind) == kind]
    # at most places one look tells that no line begins there
    begun = "|".join(one for one in forms if one[0] in "^{") or "(?!)"
    within = (one for one in forms if one[0] not in "^{")
    whole = "|".join((*within, f"^(?:{begun})"))
    for name in ("shell", "code"):
        whole = whole.replace(f"{{{name}}}", TABLE[name])
    return pattern(whole.encode(), re.MULTILINE)


WORDS, STATED = words_of("event"), words_of("stated")
_MAY_TURN, _MAY_STATE = any_of(WORDS), any_of(STATED)
_STATED = form_of("", "stated")


_TURNING_POINTS = [
    (pattern(entry["match"].encode()), EventKind(entry["kind"]))
    for entry in TABLE["event"]
    if "words" in entry
]


def turning_point(part: bytes) -> Event | None:
    """Return the event that a line without the prefix of a process states, None for most; where it
    stands is not known here.
    """
    for form, kind in _TURNING_POINTS if _MAY_TURN.search(part) else ():
        if found := form.search(part):
            groups = found.groupdict()
            step = groups.get("step")
            text = shown(groups.get("text") or part)
            return Event(kind, text, 0, int(step) if step else None)
    return None


def shown(text: bytes) -> str:
    """Return a line as an event keeps it: safe, without secrets, not too long."""
    return one_line(hide(decoded(text[:2000])), 400)


def stated(part: bytes) -> dict[str, int]:
    """Return the numbers that a line states, by what they count, see `events.toml`."""
    said: dict[str, int] = {}
    for found in _STATED.finditer(part) if _MAY_STATE.search(part) else ():
        name = found.lastgroup or ""
        said.setdefault(name, int(found[name].replace(b",", b"") or 0))
    return said


# -- what stands before the text, and Ray's count behind it ----------------------------------------

_PROCESS = (
    rb"(?:\s?(?:\((?:\S{1,99} )?(?:pid=[^()]*|raylet[^()]*)\)|\[rank\d+\]:) ?){0,3}"
)
"""Ray's `(TaskRunner pid=12, ip=10.0.0.2) `, torchrun's `[rank0]: `, and one behind another."""
ANOTHER = (
    r"\s*(?:\((?:\S{1,99} )?pid=|\[rank\d|\[?20\d\d-\d\d-\d\d|(?:DEBUG|INFO|WARN|ERROR)\w*\b"
    r"|/[\w.-]+/)"
)
"""Begins what another process prints, also right behind something else; a path begins a warning."""
_ADDED = "|".join(one["match"] for one in TABLE["added"]).encode()
_PARTS = pattern(
    rb"((?:(?:%b)(?: |(?<=:)|$)){0,3})(%b)(.*)" % (_ADDED, _PROCESS), re.DOTALL
)
_PLAIN_PARTS = pattern(rb"()(%b)(.*)" % _PROCESS, re.DOTALL)

_REPEATED = pattern(rb"\[repeated (\d+)x across cluster\]")
"""Ray's note behind a line that many processes printed."""
_MOST_DIGITS = 9

_STAMP = pattern(rb"20\d\d-\d\d-\d\d[ T]\d\d:\d\d:\d\d")
_STAMP_WITHIN = 90
"""First bytes of a line in which its timestamp is looked for."""
_COUNTERS = pattern(
    rb"[.,\d]*\]?:? ?(?P<counters>(?:[a-z_]{3,20}: \d{1,12}, ){1,8}[a-z_]{3,20}: \d{1,12})\s*$"
)
"""Counters that verl 0.9's trainer prints each minute while waiting (`ppo/v1/replay_buffer.py`)."""


class LineParts(NamedTuple):
    """A line in its parts."""

    added: bytes
    """What was put before the line after it was printed."""
    prefix: bytes
    """Ray's prefix, or torchrun's."""
    text: bytes


def parted(line: bytes, *, added: bool = True) -> LineParts:
    """Return the parts of a line without colours; `added` tells whether something may have been put
    before it.
    """
    found = (_PARTS if added else _PLAIN_PARTS).match(line)
    assert found
    return LineParts(*found.groups())


def unrepeated(line: bytes) -> tuple[bytes, int]:
    """Return a line without the note, and how often the note says that it was printed."""
    found = _REPEATED.search(line)
    if not found:
        return line, 1
    return line[: found.start()].rstrip(), max(1, int(found[1][:_MOST_DIGITS]))


def stamp_in(line: bytes) -> re.Match[bytes] | None:
    """Return the timestamp at the beginning of a line, None without one."""
    if b"20" not in line[:_STAMP_WITHIN]:
        return None
    return _STAMP.search(line, 0, _STAMP_WITHIN)


def counters_behind(stamp: re.Match[bytes]) -> str:
    """Return the counters of a heartbeat after a timestamp, empty without them."""
    found = _COUNTERS.match(stamp.string, stamp.end())
    return one_line(found["counters"].decode(), 120) if found else ""


# -- progress bars ---------------------------------------------------------------------------------
# Nameless ones belong to Hugging Face's trainers: `verl_tui.sources.formats.console.dicts`.

DRAWN = (
    rb"\d{1,3}%(?:\|[^|]{0,1000}\|\s{0,40}"
    rb"|\s{1,40}(?=\d{1,15}/\d{1,15} \[\d[\d:]{3,20}<))"
)
"""What tqdm writes before a bar's position: its share, and the bar, which Colab and Kaggle leave
out.
"""
_NAMED_BAR = pattern(
    rb"(Training Progress|(?:Epoch |Episode \[)(\d{1,9})/(\d{1,9})\]?):\s*"
    + DRAWN
    + rb"(\d{1,9})/(\d{1,9}) \["
)
WHOLE_BAR = pattern(DRAWN + rb"[^\s/]{1,30}/\S{1,30} \[[^\]\r\n]{0,1000}\]")
"""A bar up to the end of tqdm's text; bounded, since a line of millions of bars may have no end."""
_BARELY = pattern(rb"\d% {1,40}\d{1,15}/\d{1,15} \[\d")
_ELAPSED = pattern(rb"(?:(\d{1,9}):)?(\d\d):(\d\d)<")
"""The time that tqdm writes after a bar's `[`."""
_LONGEST = 4096
"""Last bytes of an unfinished line, in which its last bar is looked for."""
_FASTER = 5
"""How many times as fast as the bar before a bar moves that is another thing's: heuristic."""
_ENOUGH = 2
"""Steps that a bar must have made to have a pace."""
BAR_WORDS = ("%|", "it/s", "s/it")
"""Every line with a bar contains one of these."""


def has_bar(part: bytes) -> bool:
    """Return whether a text may hold a bar of tqdm, which has a percentage."""
    # One byte is found many times as fast as two.
    return b"%" in part and (b"%|" in part or _BARELY.search(part) is not None)


def elapsed(part: bytes, at: int) -> int | None:
    """Return the seconds that a bar has taken so far, from the text after its bracket."""
    return seconds_in(_ELAPSED.match(part, at))


def seconds_in(found: re.Match[bytes] | None) -> int | None:
    """Return the seconds that hours, minutes and seconds come to; None where nothing was found."""
    if not found:
        return None
    hours, minutes, seconds = (int(group or 0) for group in found.groups())
    return 3600 * hours + 60 * minutes + seconds


def named_bars(part: bytes) -> Iterator[Progress]:
    """Yield the progress that the bars of verl and OpenRLHF show."""
    for bar in _NAMED_BAR.finditer(part):
        at = int(bar[4])
        total = int(bar[5])
        if bar[2] is None:
            yield Progress(at, total, elapsed(part, bar.end()))
        else:
            # verl's supervised fine-tuning and OpenRLHF restart bar and time in each epoch.
            epoch = int(bar[2])
            yield Progress((epoch - 1) * total + at, int(bar[3]) * total)


def complete_bars(line: bytes) -> int:
    """Return how many bytes of an unfinished line end with its last complete bar, 0 for none."""
    begin = max(0, len(line) - _LONGEST)
    return [0, *(bar.end() for bar in WHOLE_BAR.finditer(line, begin))][-1]


class BarRestarts:
    """Tells where a training's bar begins again from its start: the trainer was restarted.

    Nothing else may show it, where an attempt has not printed metrics yet. The bar of an evaluation
    may be as long as the training's; it moves faster, or goes on to where the training's was.
    """

    def __init__(self) -> None:
        self._last = 0, 0.0
        """Position, and the seconds that the bar said it had taken."""
        self._pace = 0.0
        """Seconds of its last step, 0 where unknown."""
        self._before: tuple[int, float] | None = None
        """Position and pace of the bar that another one has begun behind, until it is clear whose
        that is.
        """

    def follow(self, at: int, seconds: float) -> int | None:
        """Take a position; return where the training before was, once it is clear that this is
        another.
        """
        (was, then), self._last = self._last, (at, seconds)
        if at == 0 < was:
            self._before, self._pace = (was, self._pace), 0.0
        elif at > was:
            self._pace = max(0.0, (seconds - then) / (at - was))
        if not self._before or at < _ENOUGH or not self._pace:
            return None
        top, pace = self._before
        is_another = at < top and _FASTER * self._pace >= pace
        if is_another or at >= top:
            self._before = None
        return top if is_another else None

    def confirm(self) -> None:
        """Note that steps of metrics have shown where the training began again."""
        self._before = None
