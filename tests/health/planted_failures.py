"""Values with noise and trends, and the finding that they are to bring about."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from planted import VERL, judge, noisy, planted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from verl_tui.health.finding import Finding


COUNT = 300


def ramp(
    start: float,
    end: float,
    count: int = COUNT,
    *,
    begin: int = 0,
    finish: int | None = None,
) -> list[float]:
    """Return values that go from one level to another between two points."""
    last = count if finish is None else finish
    return [
        start + (end - start) * min(1.0, max(0.0, (i - begin) / (last - begin)))
        for i in range(count)
    ]


def find(
    id: str,
    columns: Mapping[str, Sequence[float]],
    beside: Mapping[str, float] = VERL,
    settings: Mapping[str, object] | None = None,
) -> Finding | None:
    verdict = judge(planted(columns, beside, settings))
    assert not [one for one in verdict.not_judged if one.reason.startswith("failed")]
    return next((one for one in verdict.findings if one.id == id), None)


LOOPS = [*noisy([0.05] * 201, 0.02), *noisy([0.8] * 49, 0.05)]
FLAT = noisy([0.6] * COUNT, 0.03)


def scored(mean: Sequence[float]) -> dict[str, list[float]]:
    """Return the figures of samples that are right or wrong."""
    return {
        "samples/score": [*mean],
        "samples/score_std": [math.sqrt(m * (1 - m)) for m in mean],
    }
