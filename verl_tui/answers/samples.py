"""Samples of a run: the newest, those nearest to a step, the best and the worst."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from verl_tui.given_files import NothingError, why
from verl_tui.on_demand.samples import StepSamples
from verl_tui.plain_data import Data, plain
from verl_tui.records import Sample
from verl_tui.text import one_line
from verl_tui.words import counted, number

if TYPE_CHECKING:
    from verl_tui.answers.run_reading import Reading
    from verl_tui.runs.samples import Place, Samples

SHOWN = 500
"""Characters of each text, unless all are asked for."""
_TEXTS = ("prompt", "response", "ground_truth")


def samples_of(
    reading: Reading,
    count: int,
    *,
    order: str = "last",
    around: int | None = None,
    validation: bool | None = None,
    full: bool = False,
) -> Data | None:
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
        places = sorted(
            known, key=lambda one: (abs(one.step - around), -one.step, one.validation)
        )[:1]
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


def _refuse(reading: Reading, validation: bool | None) -> None:
    """Raise NothingError if enough was read to be sure that there are no samples."""
    where = reading.searched
    if where is not None and (reading.whole or not reading.run.samples.places):
        kind = {None: "", True: "validation ", False: "training "}[validation]
        raise NothingError(f"{one_line(reading.run.name)} has no {kind}samples{where}")


def _chosen(
    samples: Samples, places: Sequence[Place], count: int, order: str
) -> list[tuple[StepSamples, int]]:
    """Return samples of the first place by their scores; or the last ones, with those of the places
    after it if they are too few.
    """
    found: list[tuple[StepSamples, int]] = []
    for place in places:
        step = _opened(samples, place)
        if order != "last":
            return [(step, at) for at in step.ranked(best=order == "best")[:count]]
        indices = range(len(step))[-(count - len(found)) :]
        found = [*((step, at) for at in indices), *found]
        if len(found) >= count:
            break
    return found


def _places(reading: Reading, validation: bool | None, *, newest: bool) -> list[Place]:
    """Return the places whose samples are complete, ascending. The newest leave out steps that a
    restarted run has not reached again.
    """
    samples = reading.run.samples
    begin = math.inf if reading.complete_from is None else reading.complete_from
    return [
        place
        for place in (samples.up_to(reading.run.end) if newest else samples.places)
        if validation in (None, place.validation)
        and (reading.whole or samples.dump(place) or place.step >= begin)
    ]


def _opened(samples: Samples, place: Place) -> StepSamples:
    try:
        return StepSamples(samples, place)
    except OSError as error:
        raise NothingError(f"{one_line(str(error.filename))}: {why(error)}") from error


def _described(step: StepSamples, index: int, *, full: bool) -> Data:
    sample = step.row(index)
    at = {"step": step.place.step, "validation": step.place.validation, "index": index}
    if not isinstance(sample, Sample):
        return {**at, "unreadable": True}
    most = None if full else SHOWN
    described: dict[str, Any] = {**at, "score": plain(sample.score)}
    for name in _TEXTS:
        text = getattr(sample, name)
        described[name] = None if text is None else text[:most]
        described[f"{name}_length"] = None if text is None else len(text)
    extras = {
        name: value[:most] if isinstance(value, str) else value
        for name, value in sample.extras.items()
        if isinstance(value, str | int | float) and plain(value) is not None
    }
    return {**described, "extras": extras}


def samples_lines(found: Data) -> Iterator[str]:
    """Yield the answer as lines of text."""
    for sample in found["samples"]:
        kind = " (validation)" if sample["validation"] else ""
        head = f"--- step {sample['step']}{kind}, sample {sample['index']}"
        if sample.get("unreadable"):
            yield f"{head}: cannot be read"
            continue
        score = sample["score"]
        yield head if score is None else f"{head}, score {number(score)}"
        for name in _TEXTS:
            text, length = sample[name], sample[f"{name}_length"]
            if text is not None:
                cut = f" (the first {len(text):,} of {length:,} characters)"
                yield f"{name.replace('_', ' ')}{cut * (len(text) < length)}:"
                yield from (f"  {line}" for line in text.split("\n"))
    if found["left_out"]:
        yield f"({counted(found['left_out'], 'more sample')} of step {found['step']})"
