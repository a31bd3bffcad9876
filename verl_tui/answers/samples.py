"""Samples of a run: the newest, those nearest to a step, the best and the worst."""

from __future__ import annotations

import heapq
import math
from functools import partial
from typing import TYPE_CHECKING, Any

from verl_tui.answers.run_reading import NothingError
from verl_tui.records import Sample
from verl_tui.sources.files.paths import why
from verl_tui.sources.folders.dump_file import dump_at
from verl_tui.text import one_line
from verl_tui.words import number

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from verl_tui.answers.run_reading import Reading
    from verl_tui.records import SampleFacts
    from verl_tui.runs.samples import Place, Samples

LONG = 2 * 2**20
"""Bytes from which on a log is read from its end for the newest samples."""
SHOWN = 500
"""Characters of each text, unless all are asked for."""


class _Step:
    """The samples of one place, in memory or in a dump; only those asked for are decoded whole."""

    def __init__(self, samples: Samples, place: Place) -> None:
        self.place = place
        dump = samples.dump(place)
        self._kept = samples.kept(place) if dump is None else ()
        self._file = None
        if dump is not None:
            self._file = dump_at(dump.path, dump.step, validation=dump.validation)
            while self._file.index():
                pass

    def __len__(self) -> int:
        if self._file is None:
            return len(self._kept)
        return self._file.count_so_far

    def scores(self) -> Iterator[tuple[float | None, int]]:
        """Yield the score of each sample with its index."""
        if self._file is None:
            yield from ((sample.score, at) for at, sample in enumerate(self._kept))
            return
        start = 0
        while start < len(self):
            stop = self._file.span(start)
            facts: Sequence[SampleFacts] = self._file.facts(start, stop)
            yield from ((fact.score, fact.index) for fact in facts)
            start = stop

    def sample(self, index: int) -> Sample | None:
        """Return a sample, None for a row that cannot be read."""
        if self._file is None:
            return self._kept[index]
        row = self._file.row(index)
        return row if isinstance(row, Sample) else None


def samples_of(
    reading: Reading,
    count: int,
    *,
    order: str = "last",
    around: int | None = None,
    validation: bool | None = None,
    full: bool = False,
) -> dict[str, Any] | None:
    """Return samples; None if more of the run has to be read.

    Args:
        reading: The run.
        count: Most samples.
        order: `last` for the newest in the order of the log, which may be of several steps; `best`
            or `worst` by score, of one step.
        around: The step to take samples from, or the nearest one that has some; None for the
            newest.
        validation: Whether samples of validations (True), of training (False) or both are meant.
        full: Whether texts are given in full.

    Raises:
        NothingError: The run has no such samples.
    """
    samples = reading.run.samples
    known = _places(reading, validation, newest=around is None)
    if not known:
        _refuse(reading, validation)
        return None
    place = (
        known[-1] if around is None else min(known, key=partial(_distance, step=around))
    )
    step = _opened(samples, place)
    chosen = _chosen_of(samples, known if around is None else (), step, count, order)
    if not reading.whole and not _is_enough(known, around, count, chosen, order):
        return None
    return {
        **reading.part,
        "order": order,
        "step": place.step,
        "validation": place.validation,
        "total": len(step),
        "left_out": len(step) - _count(step, chosen),
        "samples": [_described(one, index, full=full) for one, index in chosen],
    }


def _is_enough(
    known: Sequence[Place],
    around: int | None,
    count: int,
    chosen: Sequence[tuple[_Step, int]],
    order: str,
) -> bool:
    """Return whether the end of a log holds all samples that are asked for."""
    if around is not None:
        return known[0].step <= around
    return order != "last" or len(chosen) == count


def _count(step: _Step, chosen: Sequence[tuple[_Step, int]]) -> int:
    """Return how many of the chosen samples are of a step."""
    return sum(one is step for one, _ in chosen)


def _chosen_of(
    samples: Samples, known: Sequence[Place], step: _Step, count: int, order: str
) -> list[tuple[_Step, int]]:
    """Return the samples of a step by their scores, or the last, also of the places before it."""
    if order == "last":
        before = known[: known.index(step.place)] if step.place in known else ()
        return _newest(samples, step, before, count)
    return [(step, at) for at in _by_score(step, count, best=order == "best")]


def _refuse(reading: Reading, validation: bool | None) -> None:
    """Raise NothingError if enough was read to be sure that there are no samples."""
    if reading.searched is not None and (
        reading.whole or not reading.run.samples.places
    ):
        kind = {None: "", True: "validation ", False: "training "}[validation]
        where = reading.searched
        raise NothingError(f"{one_line(reading.run.name)} has no {kind}samples{where}")


def _places(reading: Reading, validation: bool | None, *, newest: bool) -> list[Place]:
    """Return the places whose samples are complete, ascending. The newest leave out steps that a
    restarted run has not reached again.
    """
    samples = reading.run.samples
    places = samples.up_to(reading.run.end) if newest else samples.places
    fitting = [
        place
        for place in places
        if validation is None or place.validation is validation
    ]
    if reading.whole:
        return fitting
    begin = math.inf if reading.complete_from is None else reading.complete_from
    return [place for place in fitting if samples.dump(place) or place.step >= begin]


def _distance(place: Place, step: int) -> tuple[int, int, bool]:
    return abs(place.step - step), -place.step, place.validation


def _opened(samples: Samples, place: Place) -> _Step:
    try:
        return _Step(samples, place)
    except OSError as error:
        raise NothingError(f"{one_line(str(error.filename))}: {why(error)}") from error


def _newest(
    samples: Samples, step: _Step, before: Sequence[Place], count: int
) -> list[tuple[_Step, int]]:
    """Return the last samples of a step, and if they are too few, those of earlier steps."""
    found = [(step, i) for i in range(max(0, len(step) - count), len(step))]
    for place in reversed(before):
        if len(found) >= count:
            break
        earlier = _opened(samples, place)
        lacking = count - len(found)
        indices = range(max(0, len(earlier) - lacking), len(earlier))
        found = [(earlier, i) for i in indices] + found
    return found


def _by_score(step: _Step, count: int, *, best: bool) -> list[int]:
    """Return the indices of the samples with the lowest scores, or the highest; the first among
    equals. Samples without a score do not count.
    """
    scored = [
        (score, at)
        for score, at in step.scores()
        if score is not None and not math.isnan(score)
    ]
    sign = -1 if best else 1
    return [
        at
        for _, at in heapq.nsmallest(
            count, scored, key=lambda one: (sign * one[0], one[1])
        )
    ]


def _described(step: _Step, index: int, *, full: bool) -> dict[str, Any]:
    sample = step.sample(index)
    at = {"step": step.place.step, "validation": step.place.validation, "index": index}
    if sample is None:
        return {**at, "unreadable": True}
    score = (
        sample.score
        if sample.score is not None and math.isfinite(sample.score)
        else None
    )
    texts = {
        "prompt": sample.prompt,
        "response": sample.response,
        "ground_truth": sample.ground_truth,
    }
    described: dict[str, Any] = {**at, "score": score}
    for name, text in texts.items():
        described[name] = text if full or text is None else text[:SHOWN]
        described[f"{name}_length"] = None if text is None else len(text)
    return {**described, "extras": dict(_extras(sample.extras, full=full))}


def _extras(extras: Mapping[str, Any], *, full: bool) -> Iterator[tuple[str, Any]]:
    """Yield the further fields that are numbers, truth values or texts."""
    for name, value in extras.items():
        if isinstance(value, str):
            yield name, value if full else value[:SHOWN]
        elif isinstance(value, bool | int) or (
            isinstance(value, float) and math.isfinite(value)
        ):
            yield name, value


def samples_lines(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield the answer as lines of text."""
    for sample in found["samples"]:
        kind = " (validation)" if sample["validation"] else ""
        head = f"--- step {sample['step']}{kind}, sample {sample['index']}"
        if sample.get("unreadable"):
            yield f"{head}: cannot be read"
            continue
        yield head + (
            "" if sample["score"] is None else f", score {number(sample['score'])}"
        )
        for name in ("prompt", "response", "ground_truth"):
            yield from _text(
                name.replace("_", " "), sample[name], sample[f"{name}_length"]
            )
    if found["left_out"]:
        yield f"({found['left_out']:,} more samples of step {found['step']})"


def _text(name: str, text: str | None, length: int | None) -> Iterable[str]:
    if text is None or length is None:
        return
    cut = (
        f" (the first {len(text):,} of {length:,} characters)"
        if len(text) < length
        else ""
    )
    yield f"{name}{cut}:"
    yield from (f"  {line}" for line in text.split("\n"))
