"""Samples in a report: the best, the worst and the newest of the newest step that has some."""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.failures import note_failure
from verl_tui.given_files import why
from verl_tui.on_demand.samples import StepSamples
from verl_tui.records import Sample, Unreadable
from verl_tui.secrets import Mask
from verl_tui.words import counted

if TYPE_CHECKING:
    from verl_tui.runs.run import Run

LONGEST = 1200
"""Characters of a prompt or a response that are shown: about a screen."""
_HEAD = 2 / 3
"""Share of these from the beginning; the rest is the end, where answers stand."""
_READ = 4 * 2**20
"""Bytes of a dump that are looked at."""


class ReportedSample(NamedTuple):
    """One sample, shortened."""

    why: str
    """`best`, `worst`, `newest`, or several of these."""
    score: float | None
    prompt: str
    response: str
    ground_truth: str | None


class ReportedSamples(NamedTuple):
    """The samples of a run that are shown."""

    step: int | None = None
    validation: bool = False
    note: str = ""
    """A sentence on what they were chosen from, or on why there are none."""
    shown: tuple[ReportedSample, ...] = ()


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
    taken = partial(ReportedSamples, step, place.validation)
    try:
        found = StepSamples(run.samples, place, size=_READ)
        if not len(found):
            return taken("its dump holds no sample")
        shown = tuple(_excerpt(why, found.row(at)) for why, at in _chosen(found))
    except OSError as error:
        return taken(f"its samples cannot be read: {why(error)}")
    except Exception as error:  # noqa: BLE001 - a report without samples is better than none
        reason = note_failure(f"samples of {run.name}", error)
        return taken(f"its samples cannot be shown: {reason}")
    known = counted(len(found), "sample")
    if not found.complete:
        known = f"the first {known}, as far as its dump was read"
    without = "" if found.ranked() else ", which have no scores"
    return taken(f"chosen from {known}{without}", shown)


def _chosen(found: StepSamples) -> list[tuple[str, int]]:
    """Return why samples are shown, and which: each once."""
    reasons: dict[int, list[str]] = {}
    if scored := found.ranked():
        top, least = found.ranked(best=True)[0], scored[0]
        reasons[top] = ["best" if top != least else "scored like all others"]
        reasons.setdefault(least, ["worst"])
    reasons.setdefault(len(found) - 1, []).append("newest")
    return [(", ".join(why), at) for at, why in reasons.items()]


def _excerpt(why: str, row: Sample | Unreadable) -> ReportedSample:
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


def masked(text: str) -> str:
    """Return a text without secrets and homes, as others will read it; names stay, as runs are
    often named after people.
    """
    return _mask().text(text)


@cache
def _mask() -> Mask:
    return Mask(keep_names=True)


def shortened(text: str, longest: int = LONGEST) -> str:
    """Return a text with its middle left out where it is long, and how much that is."""
    clean = masked(text)
    if len(clean) <= longest:
        return clean
    head = int(longest * _HEAD)
    tail = longest - head
    return f"{clean[:head]}\n… {len(clean) - longest:,} characters left out …\n{clean[-tail:]}"
