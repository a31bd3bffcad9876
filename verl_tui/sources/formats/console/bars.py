"""Progress bars: how far a training is.

Nameless bars belong to Hugging Face's trainers: `verl_tui.sources.formats.console.dicts`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.patterns import pattern
from verl_tui.records import Progress

if TYPE_CHECKING:
    from collections.abc import Iterator

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
"""The time that tqdm writes behind a bar's `[`."""
_BROKEN_BARS = 8
"""Bars without an end that are passed over at the end of a line: one is being written, others were
glued to something.
"""
_DIGITS = 3
WORDS = ("%|", "it/s", "s/it")
"""Every line that this module reads contains one of these."""


def has_bar(part: bytes) -> bool:
    """Return whether a text may hold a bar of tqdm, which has a percentage."""
    # One byte is found many times as fast as two.
    return b"%" in part and (b"%|" in part or _BARELY.search(part) is not None)


def elapsed(part: bytes, at: int) -> float | None:
    """Return the seconds that a bar has taken so far, from the text behind its bracket."""
    found = _ELAPSED.match(part, at)
    if found is None:
        return None
    hours, minutes, seconds = (int(group or 0) for group in found.groups())
    return 3600.0 * hours + 60.0 * minutes + seconds


def named_bars(part: bytes) -> Iterator[Progress]:
    """Yield the progress that the bars of verl and OpenRLHF show."""
    for bar in _NAMED_BAR.finditer(part):
        at = int(bar.group(4))
        total = int(bar.group(5))
        if bar.group(2) is None:
            yield Progress(at, total, elapsed(part, bar.end()))
        else:
            # verl's supervised fine-tuning and OpenRLHF restart bar and time in each epoch.
            epoch = int(bar.group(2))
            epochs = int(bar.group(3))
            yield Progress((epoch - 1) * total + at, epochs * total)


def complete_bars(line: bytes) -> int:
    """Return how many bytes of an unfinished line end with its last complete bar, 0 for none."""
    at = len(line)
    for _ in range(_BROKEN_BARS):
        at = line.rfind(b"%", 0, at)
        if at < 0:
            return 0
        begin = len(line[max(0, at - _DIGITS) : at].rstrip(b"0123456789"))
        found = WHOLE_BAR.match(line, max(0, at - _DIGITS) + begin)
        if found is not None:
            return found.end()
    return 0
