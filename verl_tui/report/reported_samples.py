"""Samples in a report: the best, the worst and the newest of the newest step that has some."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.failures import note_failure
from verl_tui.records import Sample
from verl_tui.report.masked import masked
from verl_tui.sources.files.paths import why
from verl_tui.sources.folders.dump_file import dump_at
from verl_tui.words import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from verl_tui.records import Dump, Unreadable
    from verl_tui.runs.run import Run
    from verl_tui.runs.samples import Place

LONGEST = 1200
"""Characters of a prompt or a response that are shown: about a screen."""
_HEAD = 2 / 3
"""Share of these from the beginning; the rest is the end, where answers stand."""
_READ = 4 * 2**20
"""Bytes of a dump that are looked at."""


@dataclass(frozen=True, slots=True)
class ReportedSample:
    """One sample, shortened."""

    why: str
    """`best`, `worst`, `newest`, or several of these."""
    score: float | None
    prompt: str
    response: str
    ground_truth: str | None


@dataclass(frozen=True, slots=True)
class ReportedSamples:
    """The samples of a run that are shown."""

    step: int | None = None
    validation: bool = False
    shown: tuple[ReportedSample, ...] = ()
    note: str = ""
    """A sentence on what they were chosen from, or on why there are none."""


class _Candidates(NamedTuple):
    """The samples of a step to choose from."""

    scores: Sequence[float | None]
    read: Callable[[int], Sample | Unreadable]
    note: str


def excerpts_of(run: Run) -> ReportedSamples:
    """Return the excerpts of a run; a dump of samples is read for them.

    The newest step since a restart is taken, and samples of training are preferred to those of a
    validation.
    """
    places = run.samples.up_to(run.end)
    if not places:
        return ReportedSamples(note="no samples are logged")
    step = places[-1].step
    place = next(one for one in places if one.step == step)
    try:
        found = _candidates(run, place)
        if not found.scores:
            return ReportedSamples(
                step, place.validation, note="its dump holds no sample"
            )
        shown = tuple(_excerpt(*one, found) for one in _chosen(found.scores))
    except OSError as error:
        return ReportedSamples(
            step, place.validation, note=f"its samples cannot be read: {why(error)}"
        )
    except Exception as error:  # noqa: BLE001 - a report without samples is better than none
        reason = note_failure(f"samples of {run.name}", error)
        return ReportedSamples(
            step, place.validation, note=f"its samples cannot be shown: {reason}"
        )
    return ReportedSamples(step, place.validation, shown, found.note)


def _candidates(run: Run, place: Place) -> _Candidates:
    dump = run.samples.dump(place)
    if dump is not None:
        return _dumped(dump)
    kept = run.samples.kept(place)
    scores = [sample.score for sample in kept]
    return _Candidates(
        scores, kept.__getitem__, _note(scores, counted(len(kept), "sample"))
    )


def _dumped(dump: Dump) -> _Candidates:
    file = dump_at(dump.path, dump.step, validation=dump.validation)
    while file.index() and file.offset < _READ:
        pass
    scores = [fact.score for fact in file.facts(0, file.count_so_far)]
    known = counted(len(scores), "sample")
    chosen = known
    if not file.complete:
        chosen = f"the first {known}, as far as its dump was read"
    return _Candidates(scores, file.row, _note(scores, chosen))


def _note(scores: Sequence[float | None], chosen: str) -> str:
    if any(score is not None and isfinite(score) for score in scores):
        return f"chosen from {chosen}"
    return f"chosen from {chosen}, which have no scores"


def _chosen(scores: Sequence[float | None]) -> list[tuple[str, int]]:
    """Return which samples are shown, and why: each once."""
    known = {
        i: score
        for i, score in enumerate(scores)
        if score is not None and isfinite(score)
    }
    reasons: dict[int, list[str]] = {}
    if known:
        top = max(known.values())
        least = min(known.values())
        reasons[max(known, key=known.__getitem__)] = [
            "best" if top > least else "scored like all others"
        ]
        if top > least:
            reasons[min(known, key=known.__getitem__)] = ["worst"]
    reasons.setdefault(len(scores) - 1, []).append("newest")
    return [(", ".join(why), at) for at, why in reasons.items()]


def _excerpt(why: str, at: int, found: _Candidates) -> ReportedSample:
    row = found.read(at)
    if not isinstance(row, Sample):
        return ReportedSample(
            why, None, "", f"line {row.line} cannot be read: {row.reason}", None
        )
    truth = None
    if row.ground_truth is not None:
        truth = shortened(row.ground_truth, LONGEST // 4)
    return ReportedSample(
        why, row.score, shortened(row.prompt), shortened(row.response), truth
    )


def shortened(text: str, longest: int = LONGEST) -> str:
    """Return a text with its middle left out where it is long, and how much that is."""
    clean = masked(text)
    if len(clean) <= longest:
        return clean
    head = int(longest * _HEAD)
    tail = longest - head
    return f"{clean[:head]}\n… {len(clean) - longest:,} characters left out …\n{clean[-tail:]}"
