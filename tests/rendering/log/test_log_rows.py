"""Lines of a log as rows: what they are, what is folded, and which are in sight."""

from __future__ import annotations

import pytest

from verl_tui.on_demand.log_blocks import LogLine
from verl_tui.rendering.log.line_rows import (
    Alarms,
    LineKind,
    TextQuery,
    rows,
    split_line,
)
from verl_tui.rendering.text.search import Search

TASK = "(TaskRunner pid=12, ip=10.0.0.2) "


@pytest.mark.parametrize(
    ("line", "tag", "kind"),
    [
        (f"{TASK}step:12 - actor/pg_loss:0.1 - critic/score/mean:0.5", "TaskRunner", LineKind.STEP),
        ("Training Progress:  12%|█▏ | 12/100 [01:00<09:00, 6s/it]step:12 - a:0.1 - b:2", "", LineKind.STEP),
        (f"{TASK}Training Progress:  12%|█▏ | 12/100 [01:00<09:00, 6s/it]", "TaskRunner", LineKind.PROGRESS),
        ("Traceback (most recent call last):", "", LineKind.ERROR),
        ("(WorkerDict pid=7) RuntimeError: CUDA error: an illegal memory access", "WorkerDict", LineKind.ERROR),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate", "", LineKind.ERROR),
        ("Error executing job with overrides: ['a=1']", "", LineKind.ERROR),
        (
            "[rank0]:[E1213 ProcessGroupNCCL.cpp] Watchdog caught collective operation timeout",
            "rank0",
            LineKind.ERROR,
        ),
        ("ERROR:2025-01-01 10:00:00,000:something failed", "", LineKind.ERROR),
        ("(WorkerDict pid=7) ERROR 06-19 16:30:39 [core.py:12] failed", "WorkerDict", LineKind.ERROR),
        ("[2025-12-17 10:00:00,123][root][WARNING] - Token mismatch detected!", "", LineKind.WARNING),
        ("(pid=9) WARNING 05-01 10:00:00 config.py:10] To see benefits", "pid", LineKind.WARNING),
        ("x.py:3: FutureWarning: this will change", "", LineKind.WARNING),
        ("(raylet) A worker died or was killed while executing a task", "raylet", LineKind.WARNING),
        (f"{TASK}Final validation metrics: {{'a': 1}}", "TaskRunner", LineKind.MARK),
        ("local_global_step_folder: /ckpt/global_step_20", "", LineKind.MARK),
        ("{'NCCL_DEBUG': 'WARN', 'x': 1}", "", LineKind.PLAIN),
        ('{"step": 3, "text": "Traceback (most recent call last): ERROR "}', "", LineKind.PLAIN),
        ("there were no errors and no warnings", "", LineKind.PLAIN),
        ("", "", LineKind.PLAIN),
    ],
)  # fmt: skip
def test_what_a_line_is(line, tag, kind):
    parts = split_line(line)
    assert (parts.tag, parts.kind) == (tag, kind)
    assert line.endswith(parts.text)
    alarming = kind in (LineKind.ERROR, LineKind.WARNING)
    assert not Alarms(LineKind.WARNING).found(line) or kind is LineKind.WARNING
    assert not Alarms().found(line) or kind is LineKind.ERROR
    assert Alarms().worth(line.encode()) or not alarming, (
        "what is one must not be passed over"
    )


@pytest.mark.parametrize(
    ("line", "text", "tag"),
    [
        (f"trainer-1  | {TASK}Traceback (most recent call last):", "trainer-1  | Trace", "TaskRunner"),
        ("(task, pid=3283) Traceback (most recent call last):", "(task, pid=3283) Trace", ""),
    ],
)  # fmt: skip
def test_a_line_that_a_container_keeps_is_what_was_printed(line, text, tag):
    parts = split_line(line)
    assert (parts.tag, parts.kind) == (tag, LineKind.ERROR)
    assert parts.text.startswith(text)


def test_errors_and_warnings_are_stops_of_their_own_and_a_traceback_is_one():
    lines = [
        "x.py:3: FutureWarning: this will change",
        "  warnings.warn(",
        f"{TASK}Traceback (most recent call last):",
        '  File "x.py", line 3, in f',
        f"{TASK}ValueError: no",
        "During handling of the above exception, another exception occurred:",
        "(pid=9) WARNING 05-01 10:00:00 config.py:10] To see benefits",
        "(WorkerDict pid=7) ERROR 06-19 16:30:39 [core.py:12] failed",
    ]
    assert [at for at, line in enumerate(lines) if Alarms().found(line)] == [4, 7]
    assert [
        at for at, line in enumerate(lines) if Alarms(LineKind.WARNING).found(line)
    ] == [0, 6]


def test_a_text_is_found_with_and_without_who_printed_it():
    assert TextQuery(Search("taskrunner.*loss")).found(f"{TASK}the loss")
    assert TextQuery(Search("^the")).found(f"{TASK}the loss")
    assert TextQuery(Search("^the")).worth(
        b"anything: only the line tells where it begins"
    )
    plain = TextQuery(Search("die Größe"))
    assert plain.worth("x\x1b[31mGröße\x1b[0m = 3\r7".encode())
    assert not plain.worth("größe".encode()), "capitals count where there are some"


def lines(*texts: str) -> list[LogLine]:
    return [
        LogLine(10 * at, 10 * at + 10, text, "%|" in text)
        for at, text in enumerate(texts)
    ]


def folded(*texts: str, fold: bool = True) -> list[tuple[int, str]]:
    return [(row.times, row.text) for row in rows(lines(*texts), fold=fold)]


def test_the_line_breaks_that_ray_prints_behind_a_bar_keep_no_bar_apart():
    bars = [
        f"Filtering prompts:  {n}%|█▏  | {n}/99 [00:02<00:02]" for n in (12, 24, 36)
    ]
    texts = [line for bar in bars for line in (bar, TASK)]
    (row,) = rows(lines(*texts), fold=True)
    assert (row.times, row.text, row.start, row.end) == (3, bars[-1], 0, 60)
    assert len(rows(lines(*texts), fold=False)) == 6
    assert len(rows(lines("a word", TASK, "another"), fold=True)) == 3, (
        "it may mean something"
    )
