"""Files with a `/metrics` page that tells of several runs: each is a run of its own.

A run within is named by a path below its file: `node.prom/grpo`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from verl_tui.sources.discovery.found import FoundRun, stem
from verl_tui.sources.files.compressed import head
from verl_tui.sources.formats.prometheus_text import reader as exposition
from verl_tui.sources.formats.prometheus_text.reader import NOBODYS, parts_of
from verl_tui.sources.formats.prometheus_text.scrapes import Scrapes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from verl_tui.sources.discovery.found import FoundFile
    from verl_tui.sources.formats.prometheus_text.scrapes import Scrape

_MOST = 100
"""Runs of one page that are shown: as many as our exporter writes unless told otherwise."""


def is_page(file: FoundFile) -> bool:
    """Tell whether a file is such a page."""
    return file.format is not None and file.format.name == exposition.name


class PageRuns:
    """The runs in files of pages; looks again only where one has changed."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[tuple[float, int], tuple[str, ...]]] = {}

    def of(self, path: Path) -> tuple[str, ...]:
        """Return the parts of a page of which each is a run, nothing where it names none or cannot
        be read.
        """
        try:
            found = path.stat()
            stamp = found.st_mtime, found.st_size
            known = self._known.get(path)
            if known is None or known[0] != stamp:
                data = head(path, exposition.LARGEST)
                self._known[path] = known = stamp, _told(parts_of(data)[0])
        except (OSError, ImportError, ValueError):
            return ()
        return known[1]

    def apart(self, runs: Iterable[FoundRun]) -> Iterator[FoundRun]:
        """Yield runs with those of a page apart; one that is called as the logs beside it belongs
        to these.
        """
        for run in runs:
            logs = [
                file
                for file in run.files
                if file.format is not None and file.format.anchor and not is_page(file)
            ]
            called = (
                {run.name, *(stem(file.path) for file in logs), *(file.title for file in logs)}
                if logs
                else None
            )
            files: list[FoundFile] = []
            names: list[str] = []
            for file in run.files:
                parts = self.of(file.path) if is_page(file) else ()
                own = _own(parts, called)
                if not parts or own is not None:
                    files.append(_within(file, own) if own is not None else file)
                names += [own] if own is not None else []
                for part in parts:
                    if part != own:
                        yield FoundRun(
                            _shown(part, run.name), file.path / part, (_within(file, part),)
                        )
            if files:
                name = run.name if logs or len(names) != 1 else _shown(names[0], run.name)
                yield replace(run, name=name, files=tuple(files))


def _own(parts: Sequence[str], called: Collection[str] | None) -> str | None:
    """Return the part that belongs to a run's other files, None where none does.

    Args:
        parts: Of a page.
        called: What the logs beside it are called, None where there are none.
    """
    if len(parts) == 1 or called is None:
        return parts[0] if parts else None
    return next((part for part in parts if _shown(part, "") in called), None)


def _told(pages: Sequence[Mapping[str, Scrape]]) -> tuple[str, ...]:
    """Return the parts of pages that say something: that of nobody seldom does."""
    parts: dict[str, Scrape] = {}
    for page in pages:
        parts |= page
    if NOBODYS in parts:
        figures = Scrapes(totals=True).take({"": parts[NOBODYS]}, {})
        if len(parts) == 1 or not (figures.metrics or figures.readings or figures.step is not None):
            del parts[NOBODYS]
    return tuple(parts)[:_MOST]


def _shown(part: str, file: str) -> str:
    """Return what the run of a part is called; `file`: what the run would be called by its file."""
    if part == NOBODYS:
        return file
    return part.replace("%2F", "/").replace("%25", "%").replace("%00", "") or file


def _within(file: FoundFile, part: str) -> FoundFile:
    return replace(file, path=file.path / part)
