"""Consoles as containers, schedulers and log collectors keep them say the same as when printed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson
import pytest
from log_reading import drain, read_run, values

from verl_tui.records import MetricRows
from verl_tui.sources.formats.console import reader as console
from verl_tui.sources.formats.console.kept import printed_line
from verl_tui.sources.formats.console.line_parts import parted
from verl_tui.sources.source import FileSource
from verl_tui.times import parse_time

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from verl_tui.runs.run import Run

RAY = "(TaskRunner pid=7) "
TABLE = """\
╭──────────────── Step 3 ────────────────╮
│ ┏━━━━━━━━━━┳━━━━━━━━━━━━┳━━━━━━┳━━━━━━━━━━━┓ │
│ ┃ Prompt   ┃ Completion ┃ says ┃ Advantage ┃ │
│ ┡━━━━━━━━━━╇━━━━━━━━━━━━╇━━━━━━╇━━━━━━━━━━━┩ │
│ │ say it   │ it is said │ 0.50 │     -1.28 │ │
│ └──────────┴────────────┴──────┴───────────┘ │
╰──────────────────────────────────────────────╯
"""
FAILURE = (
    "Traceback (most recent call last):",
    '  File "/a/reward.py", line 3, in score',
    '    raise RuntimeError("judge is away")',
    "RuntimeError: judge is away",
)
VERL = [
    "INFO started",
    f"{RAY}Total training steps: 9",
    f"{RAY}step:1 - critic/score/mean:0.5 - actor/entropy:2.0 - actor/lr:1.0",
    f"{RAY}[prompt] what is 1+1",
    f"{RAY}2: an even number?",
    f"{RAY}[response] two",
    f"{RAY}[score] 1.0",
    f"{RAY}step:2 - critic/score/mean:0.75 - actor/entropy:1.5 - actor/lr:1.0",
    *FAILURE,
]
TRL = [
    "starting",
    "  5%|5         | 1/20 [00:01<00:19]\r                    \r{'loss': 0.5, 'reward': 0.25}",
    " 10%|#         | 2/20 [00:02<00:18]\r                    \r{'loss': 0.25, 'reward': 0.5}",
    *TABLE.splitlines(),
    " 15%|#         | 3/20 [00:03<00:17]",
    *FAILURE,
]
STAMP = "2026-11-20T10:00:{:02}.123456789Z"
LEADS: dict[str, Callable[[int, str], str]] = {
    "CRI": lambda i, line: f"{STAMP.format(i)} stdout F {line}",
    "kubectl --timestamps": lambda i, line: f"{STAMP.format(i)} {line}",
    "kubectl --prefix": lambda i, line: f"[pod/verl-head-0/ray] {line}",
    "compose": lambda i, line: f"trainer-1  | {line}",
    "compose in colour": lambda i, line: f"\x1b[36mtrainer-1  |\x1b[0m {line}",
    "srun --label": lambda i, line: f"0: {line}",
    "srun --label of many": lambda i, line: f" {i % 2}: {line}",
    "pdsh by address": lambda _, line: f"10.0.0.7: {line}",
    "mpirun --tag-output": lambda i, line: f"[1,0]<stdout>:{line}",
    "torchrun --tee": lambda i, line: f"[default0]:{line}",
    "journalctl": lambda i, line: f"Nov 20 10:00:{i:02} gpu01 python3[42]: {line}",
    "ts": lambda i, line: f"[2026-11-20 10:00:{i:02}] {line}",
    "SkyPilot": lambda i, line: f"(task, pid=3283) {line}",
    "SkyPilot's nodes": lambda i, line: (
        f"(worker1, rank=1, pid=3283, ip=10.0.0.1) {line}"
    ),
    "two": lambda i, line: f"trainer-1  | {STAMP.format(i)} {line}",
}


def wrapped(**more: Any) -> Callable[[int, str], str]:
    """Return how a collector writes a line that has the name `text` among more."""
    return lambda i, line: orjson.dumps(
        {
            name: line if value == "text" else value.format(i)
            for name, value in more.items()
        }
    ).decode()


COLLECTED: dict[str, Callable[[int, str], str]] = {
    "Docker": lambda i, line: wrapped(log="text", stream="stdout", time=STAMP)(
        i, f"{line}\n"
    ),
    "Fluent Bit": wrapped(log="text", stream="stderr", time=STAMP),
    "Loki": wrapped(timestamp=STAMP, line="text"),
    "Google Cloud": wrapped(textPayload="text", timestamp=STAMP, severity="INFO"),
    "journalctl -o json": wrapped(
        MESSAGE="text", __REALTIME_TIMESTAMP="17951234{:02}123456"
    ),
}
CONSOLES = {"verl": VERL, "TRL": TRL}


def kept(lines: Sequence[str], way: Callable[[int, str], str]) -> str:
    return "".join(f"{way(i, line)}\n" for i, line in enumerate(lines))


def said(run: Run) -> tuple[object, ...]:
    """Return what a console says but for the times of it."""
    timing = ("timing", "time")
    outcome = run.outcome
    return (
        {key: values(run, key) for key in run.keys if not key.startswith(timing)},
        (run.step, run.total_steps),
        (outcome.kind, outcome.text, outcome.line) if outcome is not None else None,
        [run.samples.kept(place) for place in run.samples.places],
    )


@pytest.mark.parametrize("way", {**LEADS, **COLLECTED})
@pytest.mark.parametrize("name", CONSOLES)
def test_what_stands_before_lines_changes_nothing(tmp_path, name, way):
    path = tmp_path / "train.log"
    path.write_text(kept(CONSOLES[name], lambda _, line: line))
    printed = said(read_run(path))
    path.write_text(kept(CONSOLES[name], {**LEADS, **COLLECTED}[way]))
    assert said(read_run(path)) == printed
    assert printed[2] is not None
    assert printed[3]


def test_one_process_may_stand_behind_another():
    ray, rank = "(Driver pid=4711) ", "[rank0]: "
    assert texts(f"{ray}{rank}a", f"{rank}{ray}a", f"{ray}{ray}a") == ["a"] * 3


# -- what is printed may look like a lead ----------------------------------------------------------


def texts(*lines: str) -> list[str]:
    return [parted(line.encode()).text.decode() for line in lines]


@pytest.mark.parametrize(
    "line",
    [
        "[INFO] a",
        "2026-11-20 10:00:00 a",
        "step:1 - a:1",
        "ETA 10:00",
        "A worker-2 died (pid=7)",
        "| a | b |",
        "(a, b) c",
    ],
)
def test_what_only_looks_like_a_lead_is_text(line):
    assert texts(line) == [line]


@pytest.mark.parametrize("prefix", ["", RAY])
def test_a_sample_that_began_without_a_lead_has_none(tmp_path, prefix):
    path = tmp_path / "train.log"
    answer = [
        "two",
        "[step1]: one",
        "node-1 | a table",
        "2026-11-20T10:00:00Z is a time",
    ]
    lines = [
        "[prompt] what is 1+1",
        f"[response] {answer[0]}",
        *answer[1:],
        "[score] 1.0",
    ]
    path.write_text(
        "".join(f"{prefix}{line}\n" for line in [*lines, "step:1 - a/b:1 - c/d:2"])
    )
    run = read_run(path)
    (sample,) = [one for place in run.samples.places for one in run.samples.kept(place)]
    assert sample.response == "\n".join(answer)


# -- collectors ------------------------------------------------------------------------------------


def test_pieces_of_a_long_line_are_put_together(tmp_path):
    """Docker cuts lines at 16 KiB; those of the other stream may come between."""
    path = tmp_path / "c0ffee-json.log"
    metrics = " - ".join(f"own/metric_{i}:{i}.5" for i in range(2000))
    line = f"step:1 - {metrics}\n"
    pieces = [line[at : at + 16384] for at in range(0, len(line), 16384)]
    assert len(pieces) > 2
    out = [{"log": piece, "stream": "stdout"} for piece in pieces]
    out.insert(1, {"log": "a warning\n", "stream": "stderr"})
    path.write_bytes(b"".join(orjson.dumps(one) + b"\n" for one in out))
    run = read_run(path)
    assert len(run.keys) == 2000
    assert values(run, "own/metric_1999") == {1: 1999.5}


def test_the_collectors_time_is_that_of_the_step(tmp_path):
    path = tmp_path / "train.log"
    path.write_text(kept(VERL, COLLECTED["Docker"]))
    source = FileSource(path, console)
    rows = [
        one for one in [*drain(source), *source.finish()] if isinstance(one, MetricRows)
    ]
    times = [time for one in rows for time in one.times]
    assert times == [parse_time(f"2026-11-20T10:00:{i:02}.123456Z") for i in (2, 7)]


def test_a_line_that_a_collector_did_not_write_is_counted(tmp_path):
    path = tmp_path / "train.log"
    lines = kept(VERL, COLLECTED["Loki"]).splitlines()
    path.write_text("\n".join([*lines[:3], '{"timestamp": "2026', *lines[3:], ""]))
    status = read_run(path).sources[str(path)].status
    assert status.unreadable == 1


@pytest.mark.parametrize("message", [[72, 256], [72, -1], [72, 2.5], [72, None], 7, {}])
def test_what_is_no_line_is_counted(message, tmp_path):
    path = tmp_path / "train.log"
    entries = [
        {"MESSAGE": VERL[0]},
        {"MESSAGE": message},
        *({"MESSAGE": one} for one in VERL[1:]),
    ]
    path.write_bytes(b"".join(orjson.dumps(one) + b"\n" for one in entries))
    run = read_run(path)
    assert run.sources[str(path)].status.unreadable == 1
    assert values(run, "critic/score/mean") == {1: 0.5, 2: 0.75}


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (
            b'{"log":"step:1\\n","stream":"stdout","time":"2026-11-20T10:00:00Z"}\n',
            b"step:1\n",
        ),
        (b'{"log":"step:1\\n","stream":"stdout"}\n', None),
        (b'{"time":"2026-11-20T10:00:00Z"}\n', None),
        (b"step:1\n", None),
    ],
)
def test_the_log_shows_what_was_printed_of_a_line_that_a_collector_timed(line, shown):
    assert printed_line(line) == (line if shown is None else shown)
