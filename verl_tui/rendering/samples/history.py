"""Samples of the same prompt at other steps, searched step by step from the nearest."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from verl_tui.rendering.samples.excerpts import excerpt
from verl_tui.text import safe

if TYPE_CHECKING:
    from collections.abc import Iterable

    from verl_tui.on_demand.samples import SampleBrowser, SamplePage
    from verl_tui.records import Sample, SampleFacts
    from verl_tui.rendering.samples.excerpts import Excerpt
    from verl_tui.runs.samples import Place, Samples

_MOST_STEPS = 50
"""Most steps searched, those nearest."""
_SHOWN = 8000
"""Most characters kept of a response."""


class PastResponse(NamedTuple):
    """A sample of the prompt."""

    place: Place
    fact: SampleFacts
    response: str
    """Beginning of the response."""
    excerpt: Excerpt
    """A few words of it."""


class SamePrompt:
    """Matches rows that contain a prompt exactly as it is shown."""

    def __init__(self, prompt: str) -> None:
        self.prompt = prompt

    def found(self, texts: Iterable[str]) -> bool:
        """Return True if one of a row's texts is the prompt."""
        return any(text == self.prompt or self._alike(text) for text in texts)

    def _alike(self, text: str) -> bool:
        # `safe` hardly changes the length, by which most texts can be excluded.
        size = len(self.prompt)
        return size // 2 <= len(text) <= 2 * size + 100 and safe(text) == self.prompt

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SamePrompt) and other.prompt == self.prompt

    def __hash__(self) -> int:
        return hash(self.prompt)


class History:
    """The samples of one prompt found so far at steps of one kind."""

    def __init__(self, samples: Samples, place: Place, prompt: str) -> None:
        self.found: list[PastResponse] = []
        """Ascending by step, then in the order of the file."""
        self._samples = samples
        self._prompt = SamePrompt(prompt)
        self._waiting = _around(
            place, [p for p in samples.places if p.validation is place.validation]
        )
        self.looked_at = 0
        """Number of steps searched."""
        self.steps = len(self._waiting)
        """Number of steps to search in all."""
        self._taken = 0
        """Number of hits taken from the current step."""

    @property
    def complete(self) -> bool:
        """True once all steps have been searched."""
        return not self._waiting

    def advance(self, browser: SampleBrowser) -> None:
        """Add what has been read, and request the next step."""
        while self._waiting:
            place = self._waiting[0]
            page = browser.page(self._samples, place)
            if not self._take(page, place):
                browser.page(self._samples, place)  # request the samples of the hits
                return
            self._waiting.pop(0)
            self.looked_at += 1
            self._taken = 0

    def _take(self, page: SamplePage, place: Place) -> bool:
        """Add the hits of a step; return True if these were all."""
        hits = page.hits(self._prompt)
        rows = hits.rows
        facts = page.facts
        known = page.complete and len(page.facts) >= page.count
        over = (hits.complete and known) or page.problem is not None
        while self._taken < len(rows) and rows[self._taken] < len(facts):
            sample = page.sample(rows[self._taken])
            if sample is None:
                return page.problem is not None
            self._add(place, facts[rows[self._taken]], sample)
            self._taken += 1
        return over

    def _add(self, place: Place, fact: SampleFacts, sample: Sample) -> None:
        if sample.prompt == self._prompt.prompt:
            response = sample.response
            words = excerpt(response)
            self.found.append(PastResponse(place, fact, response[:_SHOWN], words))
            self.found.sort(key=lambda found: (found.place, found.fact.index))


def _around(place: Place, places: list[Place]) -> list[Place]:
    """Return the places nearest to one, itself first."""

    def distance(other: Place) -> tuple[int, int]:
        return abs(other.step - place.step), other.step

    return sorted(places, key=distance)[:_MOST_STEPS]
