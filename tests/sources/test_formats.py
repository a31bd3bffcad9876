"""Every format on a small file of its own, and on any bytes in any pieces."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import pytest
from file_writing import write_file
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from log_reading import feed_in_pieces, own_keys, read_run, values

from verl_tui.records import EventKind, Sample
from verl_tui.runs.samples import Place
from verl_tui.runs.time.step_clocks import clocks
from verl_tui.runs.views.state import State, state
from verl_tui.sources.formats import filelogger, rollouts, tutorial
from verl_tui.sources.formats.catalog import FORMATS
from verl_tui.sources.formats.console import reader as console
from verl_tui.sources.formats.console.decoder import ConsoleDecoder

DATA = Path(__file__).parents[1] / "data"
FILES = {
    "console_v01.log": console,
    "console_v04.log": console,
    "console_v09.log": console,
    "console_sft.log": console,
    "filelogger_v06.jsonl": filelogger,
    "filelogger_v07.jsonl": filelogger,
    "tutorial.jsonl": tutorial,
    "rollout_v1.jsonl": rollouts,
    "rollout_v06.jsonl": rollouts,
}
UNSAFE = {
    *range(0x20),
    *range(0x7F, 0xA0),
    *range(0x202A, 0x202F),
    *range(0x2066, 0x206A),
} - {0x0A}
nan = math.nan


def texts(record: object) -> list[str]:
    """Return every text of a record."""
    found: list[str] = []
    for name in getattr(record, "__slots__", ()):
        value = getattr(record, name)
        if isinstance(value, str):
            found.append(value)
        elif isinstance(value, tuple):
            found.extend(part for part in value if isinstance(part, str))
        elif isinstance(value, dict):
            found.extend(
                part for pair in value.items() for part in pair if isinstance(part, str)
            )
    return found


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_recognised(name, tmp_path):
    path = tmp_path / ("7.jsonl" if FILES[name] is rollouts else name)
    head = (DATA / name).read_bytes()
    assert next(f for f in FORMATS if f.matches(path, head)) is FILES[name]


def test_console_of_v09():
    run = read_run(DATA / "console_v09.log")
    assert run.dialect == "verl"
    assert values(run, "val-core/math/acc/mean@1") == {0: 0.25}
    assert values(run, "actor/lr") == {1: 1e-6, 2: 1e-6}
    assert values(run, "training/num_turns/mean") == {1: 2.0, 2: 2.0}
    assert repr(values(run, "actor/pg_loss")) == repr({1: -0.01, 2: nan})
    assert values(run, "flag") == {1: 1.0, 2: 0.0}
    assert values(run, "odd") == {2: math.inf}
    assert run.total_steps == 20
    assert run.settings["actor_rollout_ref.actor.kl_loss_coef"] == 0.001
    assert run.settings["data.max_response_length"] == 1024
    assert run.checkpoints == {2: "checkpoints/p/e/global_step_2/actor"}
    assert state(run, 0.0) is State.FINISHED
    assert [e.kind for e in run.events] == [
        EventKind.STARTED, EventKind.STARTED, EventKind.CHECKPOINT, EventKind.FINISHED,
    ]  # fmt: skip


def test_a_data_source_with_the_separator_in_its_name_costs_no_other_metric():
    run = read_run(DATA / "console_v09.log")
    assert values(run, "critic/score/mean")[1] == 0.5
    assert any(key.endswith("c/acc/mean@1") for key in run.keys)


def test_file_logger_of_both_eras():
    new = read_run(DATA / "filelogger_v07.jsonl")
    assert list(new.keys) == [
        "val-core/math/acc/mean@1", "critic/score/mean", "actor/pg_loss", "actor/kl_loss", "training/epoch",
    ]  # fmt: skip
    assert repr(values(new, "actor/kl_loss")) == repr({1: nan, 2: 0.001})
    assert values(new, "val-core/math/acc/mean@1") == {0: 0.25, 2: 0.5}
    old = read_run(DATA / "filelogger_v06.jsonl")
    assert values(old, "actor/grad_norm") == {1: math.inf, 2: -math.inf}
    assert math.isnan(values(old, "actor/pg_loss")[1])


@pytest.mark.parametrize(
    ("name", "line"),
    [
        (
            "metrics.jsonl",
            '{"step": 1, "data": {"a/b": "0.5", "c/d": "1e-3", "e/f": "text"}}',
        ),
        (
            "log.jsonl",
            '{"step": 1, "time": 1.7e9, "metrics": {"a/b": 0.5, "c": {"d": 0.001}}}',
        ),
        (
            "log.jsonl",
            '{"step": 1, "scalars": {"a": {"b": 0.5}, "c/d": 0.001, "time": 3.5}}',
        ),
    ],
)
def test_numbers_as_texts_and_metrics_in_a_field_of_their_own(tmp_path, name, line):
    path = write_file(tmp_path / name, f"{line}\n")
    run = read_run(path)
    assert values(run, "a/b") == {1: 0.5}
    assert values(run, "c/d") == {1: 0.001}
    assert own_keys(run) == {"a/b", "c/d"}


def test_a_step_of_the_file_logger_that_is_too_large_is_said(tmp_path):
    path = tmp_path / "log.jsonl"
    form = '{{"step": {}, "data": {{"critic/score/mean": 0.5}}}}\n'
    path.write_text("".join(map(form.format, (1, 2**62, "true"))))
    (source,) = (one for one in read_run(path).sources.values() if one.unreadable)
    assert [one.reason for one in source.unreadable] == [
        '"step" is too large', 'no "step" with "data"',
    ]  # fmt: skip


def test_tutorial_records():
    run = read_run(DATA / "tutorial.jsonl")
    assert run.dialect == "tutorial"
    assert values(run, "rollout/reward_mean") == {120: 2.41, 121: 2.5}
    assert values(run, "ppo/policy_loss") == {120: -0.182, 121: -0.3}, (
        "in ppo the last record of a step holds"
    )
    assert values(run, "reward/reward") == {120: 1.5}, (
        "rewards of one step are averaged"
    )
    assert values(run, "system/gpu_util") == {0: 50.0, 120: 85.0}, (
        "no step: the last one seen"
    )
    assert run.series("reward/reward").counts[-1] == 2
    assert values(run, "train/epoch") == {122: 1.0}, "global_step beats step"
    assert run.indicators["policy_kl"] == "ppo/kl_div"
    assert [
        (s.prompt, s.response, s.score, s.ground_truth)
        for s in run.samples.kept(Place(120, validation=False))
    ] == [("2+2?", "4", 2.0, "4")]
    (source,) = [s for s in run.sources.values() if s.status.format == "tutorial JSONL"]
    assert [(u.line, u.excerpt) for u in source.unreadable] == [
        (14, "this is no record")
    ]
    assert run.restarts == []


def test_steps_that_restart_each_epoch_are_no_restart(tmp_path):
    path = tmp_path / "verl_logs.jsonl"
    lines = []
    for whole in range(6):
        lines.append({"scope": "ppo", "step": whole % 3, "policy_loss": -whole})
        lines.append(
            {
                "scope": "train",
                "epoch": whole // 3,
                "step": whole % 3,
                "global_step": whole,
                "x": 1,
            }
        )
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    run = read_run(path)
    assert run.restarts == []
    assert values(run, "ppo/policy_loss") == {n: -float(n) for n in range(6)}


def test_samples_that_reward_managers_print():
    text = (
        b"(T pid=1) [prompt] Count.\nstep:9 - a:1\n(T pid=1) [response] step:3 - a:1 - b:2\n"
        b"(T pid=1) Traceback (most recent call last):\n(T pid=1) [ground_truth] 3\n(T pid=1) [score] 1.0\n"
    )
    decoder = ConsoleDecoder()
    found = [
        r
        for n, line in enumerate(text.splitlines(), 1)
        for r in decoder.decode(line, n)
    ]
    found += decoder.held()
    (sample,) = [r for r in found if isinstance(r, Sample)]
    assert sample.response == "step:3 - a:1 - b:2\nTraceback (most recent call last):"
    assert (sample.ground_truth, sample.score, sample.step) == ("3", 1.0, 10)
    assert not [r for r in found if getattr(r, "kind", None)]


MEMORY = "Memory on the node (IP: 10.0.0.1) where the task was running was 479.66GB / 503.51GB (0.952641), which is much\n"
WORKERS = "1 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed due to other reasons\n"


def test_what_rays_memory_monitor_says_is_a_warning():
    decoder = ConsoleDecoder()
    lines = [
        MEMORY,
        f"\x1b[33m(raylet)\x1b[0m [2026 E 9 9] node_manager.cc:3069: {WORKERS}",
        "uses 3.5 of 4 GB\n",
    ]
    found = [
        record
        for n, line in enumerate(lines, 1)
        for record in decoder.decode(line.encode(), n)
    ]
    assert [(event.kind, event.line) for event in found] == [
        (EventKind.WARNING, 1),
        (EventKind.WARNING, 2),
    ]


@pytest.mark.parametrize(
    ("tail", "expected"),
    [
        ("", State.ENDED),
        ("Error executing job with overrides: ['a=b']\nTraceback (most recent call last):\nE: bad\n", State.CRASHED),
        ("(T pid=1) Traceback (most recent call last):\n(T pid=1) ImportError: optional\nstep:2 - a:1\n", State.ENDED),
        ("\x1b[33m(raylet)\x1b[0m A worker died or was killed while executing a task by an …\n", State.ENDED),
        ("Exception ignored in: <x>\nTraceback (most recent call last):\nAttributeError: x\n", State.ENDED),
        ('tool says isError: true and "Error" in a sentence\n', State.ENDED),
        ("训练完成！\n", State.ENDED),
        ("'Final validation metrics: None'\nTraceback (most recent call last):\nOSError: at exit\n", State.FINISHED),
        ("[rank7]:[E1 X.cpp:616] [Rank 7] Watchdog caught collective operation timeout: WorkNCCL\n", State.CRASHED),
        ("ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.\n", State.CRASHED),
        (f"ray.exceptions.OutOfMemoryError: {MEMORY}", State.CRASHED),
        (MEMORY, State.ENDED),
        (f"(raylet) [2026-11-02 10:00:00,1 E 9 9] (raylet) node_manager.cc:3069: {WORKERS}", State.ENDED),
    ],
)  # fmt: skip
def test_what_ends_a_run_and_what_only_looks_like_it(tmp_path, tail, expected):
    path = write_file(tmp_path / "train.log", "step:1 - a:1\n" + tail)
    run = read_run(path)
    assert state(run, path.stat().st_mtime + 5 * 3600) is expected


ODD = st.binary(max_size=300) | st.text(max_size=200).map(
    lambda text: text.encode("utf-8", "surrogatepass")
)


def scoped(key: str, text: str) -> bytes:
    record = {
        "scope": "sample",
        "step": 1,
        "prompt": text,
        "response": text,
        key: 1.5,
        "x": {"y": text},
    }
    return json.dumps(record).encode()


def printed(text: str) -> bytes:
    return b"[prompt] " + text.encode("utf-8", "replace") + b"\n[response] a\n[score] 1"


LINES = st.lists(
    ODD
    | st.sampled_from([(DATA / name).read_bytes()[:500] for name in FILES])
    | st.builds(scoped, st.text(max_size=10), st.text(max_size=30))
    | st.builds(printed, st.text(max_size=20)),
    max_size=8,
)


@pytest.mark.parametrize("format_", [*FORMATS], ids=lambda f: f.name)
@given(lines=LINES, cuts=st.lists(st.integers(0, 10**6), max_size=4))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_are_survived_and_made_safe(tmp_path, format_, lines, cuts):
    path = tmp_path / ("3.jsonl" if format_ is rollouts else "any.log")
    run, records = feed_in_pieces(path, format_, b"\n".join(lines) + b"\n", cuts)
    for record in records:
        for text in texts(record):
            assert not {ord(c) for c in text} & UNSAFE, (record, text)
    for key in run.keys:
        run.series(key)


def test_bars_tell_when_steps_were_reached(tmp_path):
    path = tmp_path / "train.log"
    bars = "".join(
        f"\rTraining Progress:  {n}%|x  | {n}/100 [{spent}<1:00:00, 40.00s/it]step:{n} - a:{n}.0\n"
        for n, spent in ((1, "00:50"), (2, "01:30"), (3, "1:00:00"))
    )
    path.write_text(bars)
    os.utime(path, (50_000, 50_000))
    (clock,) = clocks(read_run(path))
    assert clock.at_each([1, 2, 3]) == [46_450.0, 46_490.0, 50_000.0]
