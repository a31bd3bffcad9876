"""What is exported for Prometheus reads back as it was: the log's own keys, and its values in the
log's own units.
"""

from __future__ import annotations

import pytest
from prometheus_client import generate_latest

from verl_tui.config import Config
from verl_tui.exporters.prometheus import exposition
from verl_tui.monitor import Monitor
from verl_tui.records import Batch, MetricRows, SourceStatus
from verl_tui.sources.fields.row_batcher import MetricRow
from verl_tui.sources.formats.prometheus_text.reader import PageFigures, read_page
from verl_tui.sources.formats.prometheus_text.series import StepRows

NOW = 1_790_000_000.0
SAID = {
    "critic/score/mean": 0.25,
    "actor/ppo_kl": 0.015,
    "actor/pg_clipfrac": 0.1,
    "actor/lr": 1e-6,
    "actor/perf/max_memory_allocated_gb": 71.3,
    "timing_s/gen": 31.7,
    "timing_per_token_ms/gen": 0.37,
    "response_length/clip_ratio": 0.05,
    "val-core/openai/gsm8k/reward/mean@1": 0.7,
    "reward parts/格式": 0.3,
    "a/b": 1.0,
    "a_b": 2.0,
}


@pytest.mark.parametrize("runs", [("one",), ("one", "two")])
def test_a_page_reads_back_as_what_the_logs_said(runs):
    monitor = Monitor(Config())
    for run in runs:
        columns = [(value,) for value in SAID.values()]
        rows = MetricRows(tuple(SAID), (7,), columns, (0,), (NOW - 10,))
        status = SourceStatus(run, "test", records=1, modified=NOW)
        monitor.apply(Batch(run, status, (rows,)), NOW)
    page = read_page(generate_latest(exposition(monitor, NOW)))
    found = {run: part for run, part in page.runs.items() if run}
    assert found.keys() == set(runs)
    for part in found.values():
        lines = PageFigures().series(part, NOW)
        said = StepRows().records(lines)
        (row,) = (one for one in said if isinstance(one, MetricRow))
        assert dict(zip(row.keys, row.values, strict=True)) == pytest.approx(SAID)
        assert (row.step, row.time) == (7, NOW - 10)
