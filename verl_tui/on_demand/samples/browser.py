"""The steps whose samples a screen shows, and the thread that reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.on_demand.samples.dump_page import DumpPage
from verl_tui.on_demand.samples.sample_page import MemoryPage, SamplePage
from verl_tui.on_demand.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable

    from verl_tui.on_demand.worker import Job
    from verl_tui.runs.samples import Place, Samples

_PAGES = 4
"""Most pages kept: the one shown and those shown before."""


class SampleBrowser(Worker[SamplePage]):
    """The pages that a screen shows, and the thread that reads them."""

    def __init__(self, notify: Callable[[], object]) -> None:
        super().__init__(notify, name="samples", kept=_PAGES)
        self._later_jobs: list[Job] = []
        """Jobs for idle time, done one after the other."""

    def page(self, samples: Samples, place: Place) -> SamplePage:
        """Return the page of a step without reading or waiting."""
        dump = samples.dump(place)
        with self._wake:
            if dump is None:
                page = self._recall(
                    (id(samples), place), lambda: MemoryPage(place, self._wake)
                )
            else:
                page = self._recall(dump.path, lambda: DumpPage(dump, self._wake))
            if isinstance(page, MemoryPage):
                page.show(samples.kept(place))
            elif isinstance(page, DumpPage) and dump is not None:
                page.show(dump)
            self._wake.notify()
        return page

    def run_later(self, job: Job) -> None:
        """Add a job that runs when no page needs to be read."""
        with self._wake:
            waiting = (other for other in self._later_jobs if other.waits())
            self._later_jobs = [*waiting, job]
            self._begin()
            self._wake.notify()

    def _next(self) -> Job | None:
        """Return a page to read, or else a job for idle time."""
        later = (job for job in self._later_jobs if job.waits())
        return super()._next() or next(later, None)
