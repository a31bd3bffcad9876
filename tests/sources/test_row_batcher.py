"""Rows of one file on their way to a run: what is said where one takes the place of another."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verl_tui.records import (
    Batch,
    Event,
    EventKind,
    MetricRows,
    Restart,
    SourceStatus,
)
from verl_tui.runs.run import Run
from verl_tui.sources.fields.row_batcher import MetricRow, RowBatcher
from verl_tui.sources.formats.lines import LineReader
from verl_tui.sources.formats.tutorial import TutorialDecoder

if TYPE_CHECKING:
    from collections.abc import Sequence


AB, BA = ("a", "b"), ("b", "a")
STARTED = Event(EventKind.STARTED, "Started a local Ray instance.", 3)
RESUMED = Event(EventKind.RESUMED, "Setting global step to 10", 3, 10)


def row(step: int, *values: float, keys: Sequence[str] = AB, **more: bool) -> MetricRow:
    """Return a row of two metrics, 1 and 2 where nothing else is said."""
    return MetricRow(step, tuple(keys), values or (1, 2), **more)


REPLACED = {
    "steps": ([row(1), row(2, 3, 4)], 0),
    "again": ([row(1, 1, math.nan), row(1, 1, math.nan)], 0),
    "more": ([row(1), row(1, 1, 9, keys="ac")], 0),
    "measurements": ([row(1, mean=True), row(1, 3, 4, mean=True)], 0),
    "other values": ([row(1), row(1, 1, 3)], 1),
    "another metric": ([row(1), row(1, 3, 4, keys="bc")], 1),
    "twice": ([row(1), row(1, 5, keys="c"), row(1, 3, 4), row(1, 5, 6)], 2),
}


@pytest.mark.parametrize(("rows", "replaced"), REPLACED.values(), ids=REPLACED)
def test_rows_that_later_ones_replace_are_counted(rows, replaced):
    batcher = RowBatcher()
    batcher.add(rows)
    assert (batcher.note or "0").split()[0] == str(replaced)


PROCESSES: dict[str, tuple[list[MetricRow | Event], list[str]]] = {
    "late": ([row(9), row(11), row(10, 3, 4)], []),
    "another order": ([row(10), row(11), row(10, 3, 4, keys=BA)], ["steps went back from 11 to 10"]),
    "two by turns": ([row(at, keys=keys) for at in (1, 2, 3) for keys in (AB, BA)], []),
    "a start between": ([row(11), STARTED, row(11, 3, 4)], ["step 11 was made a second time"]),
    "once": ([row(11), STARTED, row(12, 3, 4), row(12, 5, 6)], []),
    "said": ([row(11), RESUMED, row(11, 3, 4), row(12, 3, 4, keys=BA)], ["Setting global step to 10"]),
    "at first": ([RESUMED, row(11, 3, 4)], []),
    "orders that change": ([row(11), row(12, keys=BA), row(13)], []),
}  # fmt: skip


@pytest.mark.parametrize(("items", "reasons"), PROCESSES.values(), ids=PROCESSES)
def test_another_process_shows_by_its_words_or_the_order_of_its_keys(items, reasons):
    batcher = RowBatcher()
    batcher.add(items)
    found = batcher.take()
    assert [one.reason for one in found if isinstance(one, Restart)] == reasons
    batched = sum(len(one.steps) for one in found if isinstance(one, MetricRows))
    assert batched == sum(isinstance(one, MetricRow) for one in items)


def _rewards_and_updates(steps: Sequence[int], ranks: int = 1) -> str:
    """Return the tutorials' records: two rewards, which are averaged, before each update."""
    lines = []
    for at, step in enumerate(steps):
        lines += [
            {"scope": "reward", "step": step, "reward": at + one} for one in (0, 1)
        ]
        for rank in range(ranks):
            own = {"rank": rank} if ranks > 1 else {}
            lines.append({"scope": "ppo", "step": step, "kl_div": at + rank, **own})
    return "".join(json.dumps(line) + "\n" for line in lines)


@given(
    st.integers(2, 20),
    st.integers(1, 19),
    st.integers(1, 20),
    st.integers(1, 3),
    st.integers(1, 400),
)
def test_the_rewards_before_the_first_update_of_a_restart_are_its_own(
    reached, back, more, ranks, cut
):
    steps = [*range(1, reached + 1), *range(min(back, reached - 1), reached + more)]
    reader = LineReader(TutorialDecoder())
    data = _rewards_and_updates(steps, ranks).encode()
    run = Run("run")
    status = SourceStatus("run.jsonl", "tutorial")
    for at in range(0, len(data), cut):
        run.apply(Batch("run", status, reader.feed(data[at : at + cut])), 0.0)
    run.apply(Batch("run", status, reader.finish()), 0.0)
    for key, mean in (("reward/reward", 0.5), ("ppo/kl_div", 0.0)):
        series = run.series(key)
        assert series is not None
        last = {step: at + mean for at, step in enumerate(steps)}
        assert dict(zip(series.steps, series.values, strict=True)) == last


def test_values_keep_their_names_where_late_rewards_come_between_orders_of_keys():
    batcher = RowBatcher(holds_back=True)
    batcher.add(row(at, keys=(f"a{at}", "b")) for at in range(128))  # kinds kept whole
    late = row(150, 7, 8, keys=("a0", "b"), mean=True)
    batcher.add([row(200, keys="cd"), late, row(201, 3, 4, keys="dc")])
    found = [one for one in batcher.take() if isinstance(one, MetricRows)]
    values = {
        (key, step): value
        for one in found
        for key, column in zip(one.keys, one.columns, strict=True)
        for step, value in zip(one.steps, column, strict=True)
    }
    assert [values[key, 200] for key in "cd"] == [1, 2]
    assert [values[key, 201] for key in "cd"] == [4, 3]
    assert [values[key, 150] for key in ("a0", "b")] == [7, 8]
