"""Samples of a run: the newest, those nearest to a step, the best and the worst."""

from __future__ import annotations

import heapq
import math
from functools import partial
from typing import TYPE_CHECKING, Any

from verl_tui.answers.run_reading import NothingError
from verl_tui.on_demand.samples import StepSamples
from verl_tui.records import Sample
from verl_tui.sources.files.paths import why
from verl_tui.text import one_line
from verl_tui.words import number

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from verl_tui.answers.run_reading import Reading
    from verl_tui.runs.samples import Place, Samples

LONG = 2 * 2**20
"""Bytes from which on a log is read from its end for the newest samples."""
SHOWN = 500
"""Characters of each text, unless all are asked for."""


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
    places = known[::-1]
    if around is not None:
        nearest = partial(_distance, step=around)
        places = [min(known, key=nearest)]
    chosen = _chosen(samples, places, count, order)
    newest = chosen[-1][0] if chosen else _opened(samples, places[0])
    fewer = order == "last" and len(chosen) < count
    beyond = fewer if around is None else known[0].step > around
    if beyond and not reading.whole:
        return None
    shown = sum(one is newest for one, _ in chosen)
    return {
        **reading.part,
        "order": order,
        "step": newest.place.step,
        "validation": newest.place.validation,
        "total": len(newest),
        "left_out": len(newest) - shown,
        "samples": [_described(one, index, full=full) for one, index in chosen],
    }


def _chosen(
    samples: Samples, places: Sequence[Place], count: int, order: str
) -> list[tuple[StepSamples, int]]:
    """Return samples of the first place by their scores; or the last ones, if they are too few also
    of the places behind it.
    """
    found: list[tuple[StepSamples, int]] = []
    for place in places:
        step = _opened(samples, place)
        if order != "last":
            return [(step, at) for at in _by_score(step, count, best=order == "best")]
        indices = range(len(step))[-(count - len(found)) :]
        found = [*((step, at) for at in indices), *found]
        if len(found) >= count:
            break
    return found


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


def _opened(samples: Samples, place: Place) -> StepSamples:
    try:
        return StepSamples(samples, place)
    except OSError as error:
        raise NothingError(f"{one_line(str(error.filename))}: {why(error)}") from error


def _by_score(step: StepSamples, count: int, *, best: bool) -> list[int]:
    """Return the indices of the samples with the lowest scores, or the highest; the first among
    equals. Samples without a score do not count.
    """
    sign = -1 if best else 1
    scored = (
        (sign * score, at)
        for at, score in enumerate(step.scores())
        if score is not None and not math.isnan(score)
    )
    return [at for _, at in heapq.nsmallest(count, scored)]


def _described(step: StepSamples, index: int, *, full: bool) -> dict[str, Any]:
    sample = step.row(index)
    at = {"step": step.place.step, "validation": step.place.validation, "index": index}
    if not isinstance(sample, Sample):
        return {**at, "unreadable": True}
    score = sample.score
    if score is not None and not math.isfinite(score):
        score = None
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
