"""The newest samples of a run, from what its logs print or from its dumps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from verl_tui.on_demand.samples import StepSamples

if TYPE_CHECKING:
    from verl_tui.records import Sample
    from verl_tui.runs.run import Run

MOST = 20
_PLACES = 4
"""Number of newest steps taken, both of training and of validation."""
_TEXT = 8000
"""Characters of each text that are kept."""


def newest_samples(run: Run, problems: list[str]) -> list[dict[str, Any]]:
    """Return the newest samples; add what cannot be read to the problems."""
    found: list[Sample] = []
    for place in reversed(run.samples.places[-_PLACES:]):
        try:
            step = StepSamples(run.samples, place, rows=MOST)
            found += step.first(MOST - len(found))
        except OSError as error:
            problems.append(
                f"samples of step {place.step}: {(error.strerror or str(error)).lower()}"
            )
        if len(found) >= MOST:
            break
    if not found:
        problems.append("samples: the run has none")
    return [_shortened(sample._asdict()) for sample in found]


def _shortened(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _shortened(one) for key, one in value.items()}
    if not isinstance(value, str):
        return value
    return value[:_TEXT]
