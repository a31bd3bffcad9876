"""Split a file of several runs into these: a `/metrics` page, a chart saved at W&B as CSV.

A run within is named by a path below its file: `node.prom/grpo`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.sources.discovery.found import FoundRun, stem
from verl_tui.sources.files.compressed import head
from verl_tui.sources.files.paths import unescaped
from verl_tui.sources.formats import metrics_csv
from verl_tui.sources.formats.prometheus_text import reader as exposition
from verl_tui.sources.formats.prometheus_text.reader import NOBODYS, parts_of
from verl_tui.sources.formats.prometheus_text.scraped_rows import MOST_RUNS
from verl_tui.sources.formats.prometheus_text.scrapes import Scrapes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from verl_tui.sources.discovery.found import FoundFile
    from verl_tui.sources.formats.prometheus_text.scrapes import Scrape

_LONGEST_HEADER = 2**20
"""Bytes of a table's header that are looked at."""


def is_page(file: FoundFile) -> bool:
    """Return whether a file is a page of metrics."""
    return file.format is not None and file.format.name == exposition.name


class PageRuns:
    """The runs in files of several; looks again only where one has changed."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[tuple[float, int], tuple[str, ...]]] = {}
        self._left_out: dict[Path, int] = {}

    def of(self, file: FoundFile) -> tuple[str, ...]:
        """Return the parts of a file that are runs; none where it is one run, or cannot be read."""
        path = file.path
        if not is_page(file) and file.format is not metrics_csv:
            return ()
        try:
            found = path.stat()
            stamp = found.st_mtime, found.st_size
            known = self._known.get(path)
            if known is None or known[0] != stamp:
                parts, left_out = _parts(file)
                known = self._known[path] = (stamp, parts[: MOST_RUNS + 1])
                self._left_out[path] = left_out + len(parts) - len(known[1])
        except (OSError, ImportError, ValueError):
            return ()
        return known[1]

    @property
    def passed(self) -> Iterator[tuple[Path, str]]:
        """The files some of whose runs are not shown, and how many."""
        for path, count in self._left_out.items():
            if count:
                yield path, f"{count:,} further runs in it are not shown"

    def split(self, runs: Iterable[FoundRun]) -> Iterator[FoundRun]:
        """Yield runs, and each part of a page as a run unless it is of the logs beside it."""
        for run in runs:
            names = self._names_of_logs(run)
            files: list[FoundFile] = []
            own_parts: list[str] = []
            for file in run.files:
                parts = self.of(file)
                own = _own(parts, names)
                if own is not None:
                    own_parts.append(own)
                    files.append(_within(file, own))
                elif not parts:
                    files.append(file)
                yield from _other_runs(run, file, parts, own)
            name = run.name
            if names is None and len(own_parts) == 1:
                name = _shown(own_parts[0], name)
            if files:
                yield run._replace(name=name, files=tuple(files))

    def _names_of_logs(self, run: FoundRun) -> set[str] | None:
        """Return the names of a run and its logs, None if all it has are files of several runs."""
        names = set()
        for file in run.files:
            anchor = file.format is not None and file.format.anchor
            if anchor and not is_page(file) and not self.of(file):
                names |= {run.name, stem(file.path), file.title}
        return names or None


def _other_runs(
    run: FoundRun, whole: FoundFile, parts: Sequence[str], own: str | None
) -> Iterator[FoundRun]:
    for part in parts:
        if part != own:
            name = _shown(part, run.name)
            yield FoundRun(name, whole.path / part, (_within(whole, part),))


def _parts(file: FoundFile) -> tuple[tuple[str, ...], int]:
    """Return the parts of a file that are runs, and how many further ones there are."""
    if file.format is metrics_csv:
        return metrics_csv.runs_in(head(file.path, _LONGEST_HEADER)), 0
    found = parts_of(head(file.path, exposition.LARGEST))
    return _parts_with_figures(found.pages), found.left_out


def _own(parts: Sequence[str], called: Collection[str] | None) -> str | None:
    """Return the part that belongs to a run's other files, None if none does.

    Args:
        parts: Of a page.
        called: Names of the logs beside it, None if there are none.
    """
    if len(parts) == 1 or called is None:
        return parts[0] if parts else None
    return next((part for part in parts if _shown(part, "") in called), None)


def _parts_with_figures(pages: Sequence[Mapping[str, Scrape]]) -> tuple[str, ...]:
    """Return the parts of pages that hold figures; the part without a run's name seldom does."""
    parts: dict[str, Scrape] = {}
    for page in pages:
        parts |= page
    if NOBODYS in parts:
        figures = Scrapes(totals=True).take({"": parts[NOBODYS]}, {})
        has_any = figures.metrics or figures.readings or figures.step is not None
        if len(parts) == 1 or not has_any:
            del parts[NOBODYS]
    return tuple(parts)


def _shown(part: str, file: str) -> str:
    """Return the name of a part's run; `file`: its name if it is named by its file."""
    if part == NOBODYS:
        return file
    return unescaped(part) or file


def _within(file: FoundFile, part: str) -> FoundFile:
    return file._replace(path=file.path / part)
