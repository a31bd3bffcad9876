"""Metrics as CSV: value for value, names with their slashes back, odd rows counted, any cut
survived.
"""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from log_reading import notes, read_run, read_runs, read_text, values

from verl_tui.exporters.csv import export
from verl_tui.sources.formats import metrics_csv


@pytest.mark.parametrize(
    ("name", "head", "fits"),
    [
        ("a.csv", b"step,reward\n1,0.5\n", True),
        ("a.csv", b"\xef\xbb\xbfglobal_step,reward\r\n1,0.5\r\n", True),
        ("a.csv", b"reward,Step\n0.5,3.0\n", True),
        ("a.csv", b"step,reward\n", False),
        ("a.csv", b"name,reward\nx,0.5\n", False),
        ("a.csv", b"step,reward\nx,0.5\n", False),
        ("a.csv", b"step\n1\n", False),
        ("a.txt", b"step,reward\n1,0.5\n", False),
        ("a.csv", b"", False),
    ],
)
def test_what_is_recognised(name, head, fits):
    assert metrics_csv.matches(Path(name), head) is fits


def test_values_and_names(tmp_path):
    head = (
        'step,critic_score_mean,"odd, name",val-core_openai_gsm8k_acc_mean_at_1,note\n'
    )
    rows = "1,0.5,,0.25,hello\n2,nan,7,,True\n3.0,1e-3,-inf,1,\n"
    run = read_text(tmp_path, head + rows, "metrics.csv")
    assert values(run, "critic/score/mean") | {2: 0.0} == {1: 0.5, 2: 0.0, 3: 0.001}
    assert math.isnan(values(run, "critic/score/mean")[2])
    assert values(run, "odd, name") == {2: 7.0, 3: -math.inf}
    assert values(run, "val-core/openai_gsm8k/acc/mean@1") == {1: 0.25, 3: 1.0}
    assert values(run, "note") == {2: 1.0}
    assert run.dialect == "verl"


def test_odd_rows_are_reported_with_their_reason(tmp_path):
    text = "step,a\n1,2\n2\n,5\nstep,a\n3,4\n\n5,6"
    run = read_text(tmp_path, text, "metrics.csv")
    source = run.sources[str(tmp_path / "metrics.csv")]
    assert [(line.line, line.reason) for line in source.unreadable] == [
        (3, "1 fields where the header has 2"),
        (4, "no step in column 1"),
    ]
    assert values(run, "a") == {1: 2.0, 3: 4.0}, (
        "a last row without its end may lack digits"
    )


def test_what_we_export_we_read(tmp_path):
    lines = (
        f"step:{n} - critic/score/mean:{n / 7!r} - actor/pg_loss:-{n}e-5\n"
        for n in range(1, 9)
    )
    run = read_text(tmp_path / "logs", "".join(lines))
    export([run], str(tmp_path / "out.csv"))
    again = read_run(tmp_path / "out.csv")
    assert set(again.keys) == set(run.keys)
    for key in run.keys:
        assert values(again, key) == values(run, key)


def test_a_chart_saved_at_wandb_has_the_metrics_own_names(tmp_path):
    head = [f"my - run - critic/score/mean{bound}" for bound in ("", "__MIN", "__MAX")]
    text = f'"Step","{head[0]}","{head[1]}","{head[2]}"\n"3","0.5","0.25","1"\n'
    run = read_text(tmp_path, text, "wandb_export.csv")
    assert values(run, "critic/score/mean") == {3: 0.5}
    assert len(run.keys) == 1
    assert "__MIN, __MAX) are left out" in notes(run)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "Step,a - reward,a - reward__MIN,b - reward,b - reward__MIN\n"
            "3,0.5,0.5,1,1\n4,0.75,0.75,,\n",
            {"a": {"reward": {3: 0.5, 4: 0.75}}, "b": {"reward": {3: 1.0}}},
        ),
        (
            "Step,x/a - loss,x/a - kl,b - loss,b - kl\n3,1,2,3,4\n",
            {
                "x/a": {"loss": {3: 1.0}, "kl": {3: 2.0}},
                "b": {"loss": {3: 3.0}, "kl": {3: 4.0}},
            },
        ),
        (
            "Relative Time (Wall),a - _step,a - loss,a - loss__MAX,b - _step,b - loss,"
            "b - loss__MAX\n0.5,3,1,1,7,2,2\n",
            {"a": {"loss": {3: 1.0}}, "b": {"loss": {7: 2.0}}},
        ),
        (
            "Step,same - loss,same - loss__MIN,same - loss,same - loss__MIN\n3,1,1,2,2\n",
            {"same": {"loss": {3: 1.0}}, "same (2)": {"loss": {3: 2.0}}},
        ),
    ],
    ids=["that end apart", "without bounds", "by time", "of one name"],
)
@pytest.mark.parametrize("whole", [True, False])
def test_a_chart_of_several_runs_is_several_runs(tmp_path, text, found, whole):
    path = tmp_path / "wandb_export.csv"
    path.write_text(text if whole else text + text.splitlines()[-1])
    runs = read_runs(tmp_path)
    assert {
        name: {key: values(run, key) for key in run.keys} for name, run in runs.items()
    } == found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('"Step","a"\n"1","0.25"\n"2","0.5"', {1: 0.25, 2: 0.5}),
        ('"Step","a"\r\n"1","0.25"\r\n"2","0.5"\r', {1: 0.25, 2: 0.5}),
        ('"Step","a"\n"1","0.25"\n"2","0.', {1: 0.25}),
        ('"Step","a"\n"1","0.25"\n"2","', {1: 0.25}),
        ('"Step","a"\n"1","0.25"\n"2"', {1: 0.25}),
        ("Step,a\n1,0.25\n2,0.50", {1: 0.25}),
        ("Step,a\n1,0.25\n2,0.5", {1: 0.25}),
        ("Step,a\n1,25\n2,50", {1: 25.0}),
        ("Step,r - a,r - a__MAX\n1,25,25\n2,50,5", {1: 25.0, 2: 50.0}),
    ],
)
def test_a_last_row_without_an_end_counts_where_it_is_whole(tmp_path, text, said):
    run = read_text(tmp_path, text, "m.csv")
    assert values(run, "a") == said
    assert ("last line has no end" in notes(run)) is (2 not in said)
