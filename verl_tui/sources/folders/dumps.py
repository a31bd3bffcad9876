"""A directory of dumps: which steps it holds, and figures of their samples. The samples themselves
stay on disk.

A run leaves a dump of tens of MB at each step. So the directory is listed and little is read: the
newest dumps whole, of older ones a part, one at a time, newest first, as much as `BUDGET` allows.
New dumps are read as they are written.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.evaluation import LOOKED_AT, READ_SHARE, Evaluation
from verl_tui.records import (
    Dump,
    Record,
    Restart,
    Sample,
    Unreadable,
)
from verl_tui.sources.fields.sample import is_validation
from verl_tui.sources.fields.sample_figures import figure_records
from verl_tui.sources.files.paths import is_folder, why
from verl_tui.sources.folders.dump_file import BLOCK, dump_at
from verl_tui.sources.folders.step_files import Stamp, StepFolder, spread
from verl_tui.sources.formats import rollouts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from verl_tui.sources.folders.dump_file import DumpFile
    from verl_tui.trainers import SampleFiles

WHOLE = 64 * 2**20
"""Most bytes of one dump that its figures are made of, the first ones."""
BUDGET = 2**30
"""Bytes read for figures of all the dumps that are found at once, at the start above all."""
LEAST = 2**20
"""Fewest bytes of a dump that make figures worth showing; if the budget allows fewer for each, some
have none.
"""
_BUSY_READS = 32
"""Reads after which the directory is listed again while there is still something to read."""
_COST = 16 * 1024
"""Bytes that could be read in the time that opening a file takes."""
_AT_ONCE = 2**20
"""Bytes that are read in one go, each dump with `_COST` and whole."""
_REPORTED_UNREADABLE = 1000
"""Unreadable rows handed on one by one; further ones are only counted."""


class _Seen(NamedTuple):
    """What a dump held when its figures were made."""

    stamp: Stamp
    records: int
    unreadable: int
    size: int
    """Bytes that were read."""


class DumpSource(StepFolder):
    """All dumps of a directory, or a single one that was named. Its size is what is to be read for
    figures, not all that lies there.
    """

    format = rollouts.name
    rank = rollouts.rank

    def __init__(self, path: Path, ordinal: int = 0) -> None:
        place = None if is_folder(path) else rollouts.place_of(path)
        directory = path if place is None else place.directory
        layout = place.layout if place is not None else _layout_in(path)
        several = "*" in layout.inner
        super().__init__(
            # stands for all dumps of the directory in the name of the source
            directory / f"*{Path(layout.inner or 'all.jsonl').suffix}"
            if place is None
            else path,
            ordinal,
            partial(rollouts.step_in, layouts=(layout,)),
            None if place is None else place.name,
            "" if several else layout.inner,
        )
        self.directory = directory
        named = layout.validation == "named" and is_validation(self.directory.name)
        self.validation = named or layout.validation == "always"
        self._limits: dict[int, int] = {}
        """Most bytes to read of each dump for its figures; of others none."""
        self._seen: dict[int, _Seen] = {}
        self._reads = self._order = 0

    @property
    def note(self) -> str | None:
        """Return how much is read for figures, if that is not everything."""
        return self._note

    def read(self) -> tuple[tuple[Record, ...], bool]:
        """Return which dumps have come, changed or gone, and the figures of what was read; and
        whether more waits.
        """
        records: list[Record] = []
        if not self._waiting or self._reads % _BUSY_READS == 0:
            records.extend(self._watch())
        self._reads += 1
        left = _AT_ONCE
        while self._waiting and left > 0:
            step = self._waiting.pop()
            records.extend(self._evaluate(step))
            left -= self._size(step) + _COST
        self._pending = sum(map(self._size, self._waiting))
        seen = self._seen.values()
        self._bytes = sum(one.size for one in seen)
        self._records = sum(one.records for one in seen)
        self._unreadable = sum(one.unreadable for one in seen)
        return tuple(records), bool(self._waiting)

    def _size(self, step: int) -> int:
        """Return how many bytes of a dump are to be read."""
        stamp = self.stamps.get(step)
        return min(stamp.size, self._limits.get(step, 0)) if stamp is not None else 0

    def _watch(self) -> Iterator[Dump]:
        """Yield the dumps that have come, changed or gone, newest first; have them read for their
        figures.
        """
        changes = self.changes()
        sizes = {step: stamp.size for step, stamp in changes.items() if stamp}
        limits = plan(sizes)
        self._note = _reading_note(sizes, limits) or self._note
        for step, stamp in changes.items():
            path = self.step_path(step)
            if stamp is None:
                yield Dump(step, str(path), self.validation, 0, removed=True)
                continue
            self._limits[step] = self._limits.get(step) or limits[step]
            seconds = stamp.modified / 1e9
            yield Dump(step, str(path), self.validation, stamp.size, modified=seconds)
        self._wait_for(step for step in sizes if self._limits[step])

    def _evaluate(self, step: int) -> Iterator[Record]:
        """Yield the figures of a dump, and what cannot be read of it that was not said before. One
        that grows is read anew: most are written at once.
        """
        stamp, limit = self.stamps[step], self._limits[step]
        before = self._seen.get(step, _Seen(stamp, 0, 0, 0))
        file = dump_at(self.step_path(step), step, validation=self.validation)
        evaluation, flaws = _evaluated(file, limit)
        counts = evaluation.count, len(flaws)
        self._seen[step] = _Seen(stamp, *counts, file.offset)
        if stamp.inode != before.stamp.inode or stamp.size < before.stamp.size:
            yield Restart("dump written again", step, self.validation)
        for flaw in flaws[before.unreadable : _REPORTED_UNREADABLE]:
            yield flaw._replace(reason=f"{file.path.name}: {flaw.reason}")
        if evaluation.count != before.records or stamp.size <= before.stamp.size:
            yield from self._figures(evaluation, file)

    def _figures(self, evaluation: Evaluation, file: DumpFile) -> Iterator[Record]:
        if not evaluation.count:
            return
        partial = self._limits[file.step] <= file.offset < file.size  # by intention
        figures = {**evaluation.figures(whole=not partial)}
        if partial:
            figures[READ_SHARE] = file.offset / file.size
        self._order += 1
        yield from figure_records(
            figures,
            evaluation.scores(),
            file.step,
            self._order,
            validation=file.validation,
        )


def _evaluated(file: DumpFile, limit: int) -> tuple[Evaluation, list[Unreadable]]:
    """Return the figures of a dump's first bytes, and its rows that cannot be read."""
    evaluation, flaws = Evaluation(), list[Unreadable]()
    try:
        while file.offset < limit and file.index(min(BLOCK, limit - file.offset)):
            pass
        for fact in file.facts_or_flaws(0, file.count_so_far):
            if isinstance(fact, Unreadable):
                flaws.append(fact)
                continue
            looked_at = evaluation.count < LOOKED_AT
            row = file.row(fact.index) if looked_at else None
            response = row.response if isinstance(row, Sample) else None
            known = fact.score, fact.group, fact.length, fact.numbers
            evaluation.add(*known, response)
    except OSError as error:
        flaws.append(Unreadable(1, why(error), ""))
    return evaluation, flaws


def _layout_in(directory: Path) -> SampleFiles:
    """Return how the dumps lie in a directory, as verl's do where there is none yet."""
    try:
        names = os.listdir(directory)  # noqa: PTH208 - only names are needed
    except OSError:
        names = []
    return rollouts.layout_in(directory, names) or rollouts.VERL


def plan(sizes: Mapping[int, int]) -> dict[int, int]:
    """Return how many bytes are read for figures of each of the dumps that are found at once, given
    their bytes by step: the beginning of one is a sample of its rows.
    """
    if sum(min(size, WHOLE) for size in sizes.values()) <= BUDGET:
        return dict.fromkeys(sizes, WHOLE)
    kept = spread(sizes, BUDGET // LEAST)
    return dict.fromkeys(sizes, 0) | dict.fromkeys(
        kept, min(WHOLE, BUDGET // len(kept))
    )


def _reading_note(sizes: Mapping[int, int], limits: Mapping[int, int]) -> str | None:
    """Return a sentence on what is read for figures, None if that is everything."""
    whole = sum(sizes[step] <= limit for step, limit in limits.items())
    none = sum(not limit and sizes[step] > 0 for step, limit in limits.items())
    part = len(limits) - whole - none
    if part or none:
        return f"read for figures: {whole:,} whole, {part:,} in part, {none:,} not"
    return None
