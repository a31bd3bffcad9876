"""W&B runs, read from their own files: what each kind of record says."""

from __future__ import annotations

import pytest
from log_reading import drain, read_run, values
from wandb_reading import said, source
from wandb_writing import field, history, item, stats, written

from verl_tui.records import Event, EventKind, Settings, Unreadable
from verl_tui.runs.views.state import State, state

# -- what records say ------------------------------------------------------------------------------


def test_numbers_as_wandb_writes_them(tmp_path):
    numbers = {
        "loss": "-0.0", "nan": "NaN", "inf": "Infinity", "low": "-Infinity", "word": '"NaN"', "flag": "true",
        "none": "null", "big": "1e+20", "text": '"abc"', "list": "[1,2]", ("a", "b.c"): "3", "d": '{"e": {"f": 4}}',
        "é ö": "1.5", "_runtime": "2.5", "_timestamp": "1.7e9", "_step": "7",
    }  # fmt: skip
    (rows,) = drain(source(tmp_path, written([history(7, numbers)])))
    assert dict(zip(rows.keys, [repr(column[0]) for column in rows.columns], strict=True)) == {
        "loss": "-0.0", "nan": "nan", "inf": "inf", "low": "-inf", "word": "nan", "flag": "1.0", "none": "nan",
        "big": "1e+20", "a.b.c": "3.0", "d.e.f": "4.0", "é ö": "1.5",
    }  # fmt: skip
    assert (list(rows.steps), list(rows.times)) == ([7], [1.7e9])


def test_items_of_unusual_form_between_usual_ones(tmp_path):
    numbers = {
        "a": "1",
        "long " * 30: "2",
        "b": "-0.0",
        "é": "3",
        "c": "4.5e-3",
        "text": '"x"',
    }
    found = said(drain(source(tmp_path, written([history(7, numbers)] * 2))))
    assert {key: steps[7][0] for key, steps in found.items()} == {
        "a": "1.0", "long " * 30: "2.0", "b": "-0.0", "é": "3.0", "c": "0.0045",
    }  # fmt: skip


def test_system_figures_keep_their_keys_beside_metrics_of_the_same_names(tmp_path):
    records = [
        history(1, {"cpu": "1"}),
        stats(100.0, {"cpu": "50"}),
        history(2, {"cpu": "2"}),
    ]
    found = said(drain(source(tmp_path, written(records))))
    assert found == {"cpu": {1: ["1.0"], 2: ["2.0"]}, "system/cpu": {1: ["50.0"]}}


def test_the_trainers_step_is_the_step(tmp_path):
    own = written([history(5, {"a": "1"}), history(6, {"a": "2"})])
    assert said(drain(source(tmp_path, own))) == {"a": {5: ["1.0"], 6: ["2.0"]}}
    trl = [
        history(0, {"train/loss": "1", "train/global_step": "10"}),
        history(1, {"eval/loss": "2", "train/global_step": "10"}),
        history(2, {"extra": "3"}),
        history(3, {"train/loss": "4", "train/global_step": "20"}),
    ]
    found = said(drain(source(tmp_path, written(trl))))
    assert found["train/loss"] == {10: ["1.0"], 20: ["4.0"]}
    assert found["eval/loss"] == {10: ["2.0"]}
    assert found["extra"] == {10: ["3.0"]}
    assert found["train/global_step"][20] == ["20.0"]


@pytest.mark.parametrize("names", ["eval train", "train eval"])
def test_of_two_steps_that_disagree_the_trainings_holds_in_any_order(tmp_path, names):
    at = {"eval": "9", "train": "10"}
    steps = {f"{name}/global_step": at[name] for name in names.split()}
    found = said(drain(source(tmp_path, written([history(0, {**steps, "a": "1"})]))))
    assert found["a"] == {10: ["1.0"]}


@pytest.mark.parametrize(
    ("own", "stated", "name"),
    [(2**62, {}, "_step"), (2, {"train/global_step": str(2**62)}, "train/global_step")],
)
def test_a_step_that_is_too_large_is_said(tmp_path, own, stated, name):
    records = [history(1, {"a": "1"}), history(own, {"a": "2", **stated})]
    read = drain(source(tmp_path, written([*records, history(3, {"a": "3"})])))
    (bad,) = (one for one in read if isinstance(one, Unreadable))
    assert bad.reason.startswith(f'"{name}" is too large at byte ')
    rows = [one for one in read if not isinstance(one, Unreadable)]
    assert said(rows) == {"a": {1: ["1.0"], 3: ["3.0"]}}


def test_system_figures_stand_at_the_step_reached_and_are_no_progress(tmp_path):
    records = [
        stats(100.5, {"gpu.0.gpu": "10.0", "cpu": "1"}),
        history(4, {"a": "1"}),
        stats(115.5, {"cpu": "2", "gpu.0.gpu": "50.0"}),
        stats(130.5, {"gpu.0.gpu": "70.0", "cpu": "3"}),
    ]
    found = drain(source(tmp_path, written(records)))
    assert [(rows.progress, rows.mean, list(rows.times)) for rows in found] == [
        (False, True, [100.5, 115.5, 130.5]),
        (True, False, []),
    ]
    run = read_run(tmp_path)
    assert values(run, "system/gpu.0.gpu") == {0: 10.0, 4: 60.0}
    assert run.step == 4
    path = tmp_path / "young" / "run-y.wandb"
    path.parent.mkdir()
    path.write_bytes(written(records[:1]))
    assert read_run(path.parent).step is None


def test_who_the_run_is_and_what_it_was_set_to(tmp_path):
    config = field(1, field(1, "_wandb") + field(16, "{}")) + item(
        1, "actor", '{"lr": 1e-06, "x": [1, 2]}'
    )
    identity = {
        1: "abc",
        3: "proj",
        6: "grp",
        7: "train",
        8: "nice \x1b[31mname",
        12: "sw",
        13: "host-1",
    }
    run = b"".join(field(number, text) for number, text in identity.items())
    run += field(4, config)
    late = item(1, ("trainer", "n"), "8") + item(1, "odd", "{broken")
    records = drain(
        source(
            tmp_path,
            written([field(17, run), field(5, late), field(26, field(6, "main.py"))]),
        )
    )
    found = [record.values for record in records if isinstance(record, Settings)]
    assert found == [
        {"actor.lr": 1e-6, "actor.x": "[1, 2]"},
        {
            "wandb.id": "abc", "wandb.project": "proj", "wandb.group": "grp", "wandb.job_type": "train",
            "wandb.name": "nice name", "wandb.sweep": "sw", "wandb.host": "host-1",
        },
        {"trainer.n": 8, "odd": "{broken"},
        {"wandb.program": "main.py"},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("code", "kind", "how"),
    [(0, EventKind.EXITED, State.FINISHED), (-9, EventKind.FATAL, State.CRASHED)],
)
def test_the_exit_code_tells_how_it_ended(tmp_path, code, kind, how):
    exit_record = field(18, (field(1, code) if code else b"") + field(2, 60))
    found = drain(source(tmp_path, written([history(3, {"a": "1"}), exit_record])))
    assert found[-1] == Event(
        kind, f"W&B: the run exited with code {code}", 2, bare=code != 0
    )
    run = read_run(tmp_path)
    assert state(run, run.last_record or 0.0) is how


def test_the_cause_stands_behind_a_bar_that_was_cleared(tmp_path):
    printed = [
        "Traceback (most recent call last):\n",
        '  File "/a/train.py", line 3, in fit\n    step()\n',
        "\r\nServerGone: no answer\n",
    ]
    pieces = [field(4, field(3, text.encode())) for text in printed]
    end = field(18, field(1, 1))
    found = drain(source(tmp_path, written([history(3, {"a": "1"}), *pieces, end])))
    assert found[-1].text == "ServerGone: no answer"
