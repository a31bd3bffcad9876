"""Rows of what pages say, which hold on to what is logged now and then."""

from __future__ import annotations

import pytest

from verl_tui import prometheus_names
from verl_tui.records import Restart
from verl_tui.sources.fields.row_batcher import MetricRow
from verl_tui.sources.formats.prometheus_text.series import PrometheusSeries, StepRows

VALIDATION = "val_core_gsm8k_acc_mean_at_1"
SAVING = "timing_s_save_checkpoint"
REWARD = "critic_score_mean"
Page = tuple[int, "float | None", dict[str, float]]
"""A step, the step of the newest validation, metrics."""


def rows(pages: list[Page]) -> list[object]:
    """Return what is said of a run whose pages come one after the other: rows by step and keys."""
    run = StepRows()
    said: list[object] = []
    for at, (step, validated, metrics) in enumerate(pages):
        named = {prometheus_names.STEPS: step, **metrics}
        if validated is not None:
            named[prometheus_names.LAST_VALIDATION] = validated
        lines = [
            PrometheusSeries(name, {}, {1000.0 + at: named[name]}) for name in named
        ]
        said += run.records(lines)
    return [
        (one.step, len(one.keys)) if isinstance(one, MetricRow) else one for one in said
    ]


@pytest.mark.parametrize(
    ("pages", "said"),
    [
        (  # a validation is said once, however long pages hold on to it
            [(step, None, {REWARD: 0.1, VALIDATION: 0.5}) for step in (1, 2, 3)],
            [(1, 2), (2, 1), (3, 1)],
        ),
        (  # two validations that came out alike are two
            [
                (step, validated, {REWARD: 0.1, VALIDATION: 0.5, SAVING: 3.0})
                for step, validated in ((4, 4.0), (5, 4.0), (8, 8.0), (9, 8.0))
            ],
            [(4, 3), (5, 1), (8, 2), (9, 1)],
        ),
        (  # a run that goes back begins anew, whatever it logs then
            [
                (7, None, {REWARD: 0.1, "actor_ppo_kl": 0.2}),
                (8, None, {REWARD: 0.1}),
                (2, None, {REWARD: 0.3}),
            ],
            [(7, 2), (8, 1), Restart("steps went back from 8 to 2"), (2, 1)],
        ),
    ],
)
def test_rows_of_pages(pages, said):
    assert rows(pages) == said
