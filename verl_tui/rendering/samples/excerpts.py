"""An excerpt of each listed response: its answer, else its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from verl_tui.patterns import pattern
from verl_tui.rendering.samples.answers import final_answer
from verl_tui.rendering.samples.marks import special
from verl_tui.rendering.samples.speaker_stretches import parse_stretches
from verl_tui.rendering.text.wrap import fit, fit_left

if TYPE_CHECKING:
    from verl_tui.on_demand.samples import SamplePage
    from verl_tui.rendering.text.piece import Piece

_READ = 2000
"""Characters at a response's end in which an answer is looked for."""
_KEPT = 150
"""Characters kept of an excerpt."""
_MOST_MISSING = 64
"""Most samples waited for, those asked for last."""
_BLANK = pattern(r"\s+")


class Excerpt(NamedTuple):
    """A few words of a response."""

    words: str
    answer: bool
    """True if they are its answer, False if its end."""

    def piece(self, width: int) -> Piece:
        """Return as much as fits: the beginning of an answer, the end of a response."""
        if self.answer:
            return fit(self.words, width), "answer"
        return fit_left(self.words, width) or "(empty)"[:width], "dim"


def excerpt(response: str) -> Excerpt:
    """Return an excerpt of a response."""
    end = response[-_READ:]
    answer = final_answer(end, parse_stretches(end).stretches)
    if answer:
        return Excerpt(_BLANK.sub(" ", answer)[:_KEPT].strip(), answer=True)
    for start, stop, _ in reversed(special(end)):
        end = f"{end[:start]} {end[stop:]}"
    return Excerpt(_BLANK.sub(" ", end).strip()[-_KEPT:], answer=False)


class Excerpts:
    """The excerpts of a step's samples, made as their rows come into sight."""

    def __init__(self) -> None:
        self.revision = 0
        """Grows when samples that were asked for have been read."""
        self._page: object = None
        self._made: dict[int, Excerpt] = {}
        self._missing: dict[int, None] = {}

    def of(self, page: SamplePage, index: int) -> Excerpt | None:
        """Return the excerpt of a sample; None while it is being read."""
        if index not in self._made:
            sample = page.sample(index)
            self._missing.pop(index, None)
            if sample is None:
                self._missing[index] = None
                return None
            self._made[index] = excerpt(sample.response)
        return self._made[index]

    def update(self, page: SamplePage) -> None:
        """Look whether samples that were missing have been read."""
        if (page, page.generation) != self._page:
            self._page = (page, page.generation)
            self._made = {}
            self._missing = {}
            self.revision += 1
        missing = list(self._missing)[-_MOST_MISSING:]
        self._missing = dict.fromkeys(missing)
        found = [index for index in missing if self.of(page, index) is not None]
        self.revision += bool(found)
