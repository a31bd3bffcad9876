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
_LONGEST = 4096
"""Last bytes of an unfinished line, in which its last bar is looked for."""
_FASTER = 5
"""How many times as fast as the bar before a bar moves that is another thing's: heuristic."""
_ENOUGH = 2
"""Steps that a bar must have made to have a pace."""
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
    begin = max(0, len(line) - _LONGEST)
    ends = [0, *(bar.end() for bar in WHOLE_BAR.finditer(line, begin))]
    return ends[-1]


class BarRestarts:
    """Tells where a training's bar begins again from its start: the trainer was started anew.

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
        if self._before is None or at < _ENOUGH or not self._pace:
            return None
        top, pace = self._before
        is_another = at < top and _FASTER * self._pace >= pace
        if is_another or at >= top:
            self._before = None
        return top if is_another else None

    def told(self) -> None:
        """Note that steps of metrics have shown where the training began again."""
        self._before = None
