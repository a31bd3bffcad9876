"""Rows of what pages say, which hold on to what is logged now and then."""

from __future__ import annotations

from verl_tui.records import Restart
from verl_tui.sources.fields.row_batcher import MetricRow
from verl_tui.sources.formats.prometheus_text.scraped_rows import ScrapedRows
from verl_tui.sources.formats.prometheus_text.scrapes import ScrapeFigures

VALIDATION = "val-core/gsm8k/acc/mean@1"
SAVING = "timing_s/save_checkpoint"
REWARD = "critic/score/mean"


def keys(
    pages: list[tuple[int, float | None, dict[str, float]]],
) -> list[tuple[int, tuple[str, ...]]]:
    """Return the steps and keys of the rows that come of pages: step, step of the newest
    validation, metrics.
    """
    rows = ScrapedRows()
    figures = [
        ScrapeFigures(step, None, None, metrics, {}, validated)
        for step, validated, metrics in pages
    ]
    said = [
        record
        for at, one in enumerate(figures)
        for record in rows.take(one, 1000.0 + at)
    ]
    return [(row.step, row.keys) for row in said if isinstance(row, MetricRow)]


def test_a_validation_is_said_once_however_long_pages_hold_on_to_it() -> None:
    pages = [(step, None, {REWARD: 0.1, VALIDATION: 0.5}) for step in (1, 2, 3)]
    assert keys(pages) == [(1, (REWARD, VALIDATION)), (2, (REWARD,)), (3, (REWARD,))]


def test_two_validations_that_came_out_alike_are_two() -> None:
    metrics = {REWARD: 0.1, VALIDATION: 0.5, SAVING: 3.0}
    pages = [
        (step, validated, metrics)
        for step, validated in ((4, 4.0), (5, 4.0), (8, 8.0), (9, 8.0))
    ]
    assert keys(pages) == [
        (4, tuple(metrics)),
        (5, (REWARD,)),
        (8, (REWARD, VALIDATION)),
        (9, (REWARD,)),
    ]


def test_a_run_that_goes_back_begins_anew_whatever_it_logs_then() -> None:
    rows = ScrapedRows()
    pages = [
        (7, {REWARD: 0.1, "actor/ppo_kl": 0.2}),
        (8, {REWARD: 0.1}),
        (2, {REWARD: 0.3}),
    ]
    said = [
        record
        for at, (step, metrics) in enumerate(pages)
        for record in rows.take(
            ScrapeFigures(step, None, None, metrics, {}), 1000.0 + at
        )
    ]
    assert [one.step if isinstance(one, MetricRow) else one for one in said] == [
        7,
        8,
        Restart("steps went back from 8 to 2"),
        2,
    ]
