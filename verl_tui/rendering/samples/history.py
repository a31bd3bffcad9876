"""Samples of the same prompt at other steps, searched step by step from the nearest."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from verl_tui.rendering.samples.table import SampleRow, excerpt
from verl_tui.text import safe

if TYPE_CHECKING:
    from collections.abc import Iterable

    from verl_tui.on_demand.samples import SampleBrowser, SamplePage
    from verl_tui.records import Sample, SampleFacts
    from verl_tui.runs.samples import Place, Samples

_MOST_STEPS = 50
"""Most steps searched, those nearest."""
_SHOWN = 8000
"""Most characters kept of a response."""


class PastResponse(NamedTuple):
    """A sample of the prompt."""

    place: Place
    row: SampleRow
    response: str
    """Beginning of the response."""

    @property
    def fact(self) -> SampleFacts:
        """What is known of it."""
        return self.row.fact


class SamePrompt(NamedTuple):
    """Matches rows that contain a prompt exactly as it is shown."""

    prompt: str

    def found(self, texts: Iterable[str]) -> bool:
        """Return True if one of a row's texts is the prompt."""
        return any(text == self.prompt or self._alike(text) for text in texts)

    def _alike(self, text: str) -> bool:
        # `safe` hardly changes the length, by which most texts can be excluded.
        size = len(self.prompt)
        return size // 2 <= len(text) <= 2 * size + 100 and safe(text) == self.prompt


class History:
    """The samples of one prompt found so far at steps of one kind."""

    def __init__(self, samples: Samples, place: Place, prompt: str) -> None:
        self.found: list[PastResponse] = []
        """Ascending by step, then in the order of the file."""
        self._samples = samples
        self._prompt = SamePrompt(prompt)
        self._waiting = sorted(
            (one for one in samples.places if one.validation is place.validation),
            key=lambda one: (abs(one.step - place.step), one.step),
        )[:_MOST_STEPS]
        self.steps = len(self._waiting)
        """Number of steps to search in all."""
        self._taken = 0
        """Number of hits taken from the current step."""

    @property
    def looked_at(self) -> int:
        """Number of steps searched."""
        return self.steps - len(self._waiting)

    def pair(self, at: int | None) -> tuple[PastResponse, PastResponse] | None:
        """Return a response beside the earliest one, or beside the newest if it is of the earliest
        step; None without another step.
        """
        found = self.found
        if at is None or not found or found[0].place == found[-1].place:
            return None
        if found[at].place == found[0].place:
            return found[at], found[-1]
        return found[0], found[at]

    def advance(self, browser: SampleBrowser) -> None:
        """Add what has been read, and request the next step."""
        while self._waiting:
            place = self._waiting[0]
            page = browser.page(self._samples, place)
            if not self._take(page, place):
                browser.page(self._samples, place)  # request the samples of the hits
                return
            self._waiting.pop(0)
            self._taken = 0

    def _take(self, page: SamplePage, place: Place) -> bool:
        """Add the hits of a step; return True if these were all."""
        hits = page.hits(self._prompt)
        facts = page.facts
        for row in hits.rows[self._taken :]:
            sample = page.sample(row) if row < len(facts) else None
            if sample is None:
                return page.problem is not None
            self._add(place, facts[row], sample)
            self._taken += 1
        known = page.complete and len(facts) >= page.count
        return (hits.complete and known) or page.problem is not None

    def _add(self, place: Place, fact: SampleFacts, sample: Sample) -> None:
        if sample.prompt == self._prompt.prompt:
            response = sample.response
            row = SampleRow(fact, place.step, excerpt(response))
            self.found.append(PastResponse(place, row, response[:_SHOWN]))
            self.found.sort(key=lambda found: (found.place, found.fact.index))
