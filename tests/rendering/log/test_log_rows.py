"""Lines of a log as rows: what they are, what is folded, and which are in sight."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from verl_tui.on_demand.log import Log, LogLine, log_blocks
from verl_tui.rendering.log import pager as paging
from verl_tui.rendering.log.line_kinds import (
    Alarms,
    LineKind,
    StepLine,
    TextQuery,
    split_line,
)
from verl_tui.rendering.log.line_rows import LogRow, rows
from verl_tui.rendering.log.pager import LogLayout, NotReadYet, Pager, ScreenRow
from verl_tui.rendering.log.pieces import row_pieces
from verl_tui.rendering.text.search import Search, needle

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

TASK = "(TaskRunner pid=12, ip=10.0.0.2) "


@pytest.mark.parametrize(
    ("line", "tag", "kind"),
    [
        (
            f"{TASK}step:12 - actor/pg_loss:0.1 - critic/score/mean:0.5",
            "TaskRunner",
            LineKind.STEP,
        ),
        (
            "Training Progress:  12%|█▏ | 12/100 [01:00<09:00, 6s/it]step:12 - a:0.1 - b:2",
            "",
            LineKind.STEP,
        ),
        (
            f"{TASK}Training Progress:  12%|█▏ | 12/100 [01:00<09:00, 6s/it]",
            "TaskRunner",
            LineKind.PROGRESS,
        ),
        ("Traceback (most recent call last):", "", LineKind.ERROR),
        (
            "(WorkerDict pid=7) RuntimeError: CUDA error: an illegal memory access",
            "WorkerDict",
            LineKind.ERROR,
        ),
        (
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate",
            "",
            LineKind.ERROR,
        ),
        ("Error executing job with overrides: ['a=1']", "", LineKind.ERROR),
        (
            "[rank0]:[E1213 ProcessGroupNCCL.cpp] Watchdog caught collective operation timeout",
            "rank0",
            LineKind.ERROR,
        ),
        ("ERROR:2025-01-01 10:00:00,000:something failed", "", LineKind.ERROR),
        (
            "(WorkerDict pid=7) ERROR 06-19 16:30:39 [core.py:12] failed",
            "WorkerDict",
            LineKind.ERROR,
        ),
        (
            "[2025-12-17 10:00:00,123][root][WARNING] - Token mismatch detected!",
            "",
            LineKind.WARNING,
        ),
        (
            "(pid=9) WARNING 05-01 10:00:00 config.py:10] To see benefits",
            "pid",
            LineKind.WARNING,
        ),
        ("x.py:3: FutureWarning: this will change", "", LineKind.WARNING),
        (
            "(raylet) A worker died or was killed while executing a task",
            "raylet",
            LineKind.WARNING,
        ),
        (f"{TASK}Final validation metrics: {{'a': 1}}", "TaskRunner", LineKind.MARK),
        ("local_global_step_folder: /ckpt/global_step_20", "", LineKind.MARK),
        ("{'NCCL_DEBUG': 'WARN', 'x': 1}", "", LineKind.PLAIN),
        (
            '{"step": 3, "text": "Traceback (most recent call last): ERROR "}',
            "",
            LineKind.PLAIN,
        ),
        ("there were no errors and no warnings", "", LineKind.PLAIN),
        ("", "", LineKind.PLAIN),
    ],
)
def test_what_a_line_is(line: str, tag: str, kind: LineKind) -> None:
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
        (
            f"trainer-1  | {TASK}Traceback (most recent call last):",
            "trainer-1  | Trace",
            "TaskRunner",
        ),
        (
            "(task, pid=3283) Traceback (most recent call last):",
            "(task, pid=3283) Trace",
            "",
        ),
    ],
)
def test_a_line_that_a_container_keeps_is_what_was_printed(
    line: str, text: str, tag: str
) -> None:
    parts = split_line(line)
    assert (parts.tag, parts.kind) == (tag, LineKind.ERROR)
    assert parts.text.startswith(text)


def test_errors_and_warnings_are_stops_of_their_own_and_a_traceback_is_one() -> None:
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


@given(
    st.text(max_size=60),
    st.sampled_from(
        ["", "Error: ", "Traceback (most recent call last):", "[WARNING] ", "step:1 - "]
    ),
)
def test_no_alarm_is_passed_over(text: str, start: str) -> None:
    for line in (start + text, text + start, TASK + start + text):
        if Alarms().found(line):
            assert Alarms().worth(line.encode("utf-8", "replace"))


@given(
    st.text(r"aAb1.\*+?()[]|{}^$ é", min_size=1, max_size=8),
    st.text("aAb1.* é", max_size=12),
)
def test_no_hit_is_passed_over(expression: str, line: str) -> None:
    try:
        query = TextQuery(Search(expression))
    except ValueError:
        return
    if query.found(line):
        assert query.worth(line.encode())


@pytest.mark.parametrize(
    ("expression", "word"),
    [
        ("shard 50", "shard"),
        (r"loss: ?\d+\.5", "loss:"),
        (r"a\.py:\d+", "a.py:"),
        ("colou?r", "colo"),
        ("lo*ng(est)[abc]end", "end"),
        ("one|two", ""),
        ("(?i)one", ""),
        (r"\S+", ""),
    ],
)
def test_the_word_that_every_hit_has(expression: str, word: str) -> None:
    assert needle(expression) == word


def test_step_lines_are_found_by_step() -> None:
    query = StepLine(12)
    for line in (f"{TASK}step:12 - a:1", '{"step": 12, "data": {}}', '{"step":12}'):
        assert query.found(line)
        assert query.worth(line.encode())
    for line in (
        "step:123 - a:1",
        "step:1 - a:12",
        "global_step:12 - a:1",
        '{"step": 120}',
        "val_step:12 - x:1",
    ):
        assert not query.found(line)


def test_a_text_is_found_with_and_without_who_printed_it() -> None:
    assert TextQuery(Search("taskrunner.*loss")).found(f"{TASK}the loss")
    assert TextQuery(Search("^the")).found(f"{TASK}the loss")
    assert TextQuery(Search("^the")).worth(
        b"anything: only the line tells where it begins"
    )
    plain = TextQuery(Search("Größe\\b"))
    assert plain.worth("x\x1b[31mGröße\x1b[0m = 3\r7".encode())
    assert not plain.worth("größe".encode()), "capitals count where there are some"


def lines(*texts: str) -> list[LogLine]:
    return [
        LogLine(10 * at, 10 * at + 10, text, "%|" in text)
        for at, text in enumerate(texts)
    ]


def folded(*texts: str, fold: bool = True) -> list[tuple[int, str]]:
    return [(row.count, row.text) for row in rows(lines(*texts), fold=fold)]


def test_what_repeats_itself_is_counted() -> None:
    assert folded("a 1", "a 2", "a 30", "b", "a 1") == [
        (3, "a 30"),
        (1, "b"),
        (1, "a 1"),
    ]
    assert folded(
        "(W pid=1) hello", "(W pid=2) hello [repeated 7x across cluster]"
    ) == [(8, "hello")]
    assert folded("(W pid=1) hello", "(V pid=2) hello") == [(1, "hello"), (1, "hello")]
    assert folded("Train:  1%|# | 1/9", "Train:  2%|## | 2/9", "Eval: 1%|# |") == [
        (2, "Train:  2%|## | 2/9"),
        (1, "Eval: 1%|# |"),
    ]
    assert folded("", "", "x") == [(2, ""), (1, "x")]


def test_what_counts_each_is_not_folded() -> None:
    steps = [f"step:{n} - a:{n}" for n in range(3)]
    records = ['{"step": 1}', '{"step": 2}']
    figures = ["1 2 3", "4 5 6"]
    saved = [f"local_global_step_folder: /c/global_step_{n}" for n in range(2)]
    for texts in (steps, records, figures, saved):
        assert [count for count, _ in folded(*texts)] == [1] * len(texts)
    assert folded(*records) == [(1, "step 1"), (1, "step 2")]


def test_unfolded_lines_stand_as_they_were_printed() -> None:
    texts = ["(W pid=1) hello [repeated 7x across cluster]", "(W pid=1) hello", ""]
    assert folded(*texts, fold=False) == [(1, text) for text in texts]


def test_the_line_breaks_that_ray_prints_behind_a_bar_keep_no_bar_apart() -> None:
    bars = [
        f"Filtering prompts:  {n}%|█▏  | {n}/99 [00:02<00:02]" for n in (12, 24, 36)
    ]
    texts = [line for bar in bars for line in (bar, TASK)]
    (row,) = rows(lines(*texts), fold=True)
    assert (row.count, row.text, row.start, row.end) == (3, bars[-1], 0, 60)
    assert len(rows(lines(*texts), fold=False)) == 6
    assert len(rows(lines("a word", TASK, "another"), fold=True)) == 3, (
        "it may mean something"
    )


def test_hits_stand_apart() -> None:
    found = rows(
        lines("a 1", "a 2", "a 3", "a 4"), fold=True, apart=lambda text: "2" in text
    )
    assert [(row.count, row.text, row.start, row.end) for row in found] == [
        (1, "a 1", 0, 10),
        (1, "a 2", 10, 20),
        (2, "a 4", 20, 40),
    ]


def test_pieces_of_a_row() -> None:
    row = LogRow(0, 9, LineKind.ERROR, "WorkerDict", "it failed", 3, "whole")
    line = ScreenRow(row, "WD ×3 it failed", 6, first=True)
    pieces = row_pieces(line, 7, 5, Search("fail"), ascii_only=True)
    assert [piece for piece in pieces if piece[0]] == [
        ("X ", "error"),
        ("   7 ", "number"),
        ("WD ", "tag"),
        ("×3 ", "count"),
        ("it ", "error"),
        ("fail", "hit"),
        ("ed", "error"),
    ]


# -- which rows are in sight -----------------------------------------------------------------------


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_blocks, "BLOCK", 64)
    monkeypatch.setattr(log_blocks, "STRIDE", 256)


class Reading:
    """A pager, and what reads for it whenever it needs that."""

    def __init__(
        self,
        path: Path,
        width: int = 10,
        height: int = 5,
        *,
        wrap: bool = False,
        fold: bool = False,
    ) -> None:
        self.log = Log(str(path), threading.Condition())
        self._read()
        self.pager = Pager(self.log)
        self.look, self.height = LogLayout(width, wrap, fold), height

    def _read(self) -> None:
        while self.log.waits():
            self.log.read_on()

    def shown(self) -> Sequence[ScreenRow]:
        self.log.look()
        self._read()
        for _ in range(10_000):
            with suppress(NotReadYet):
                shown = self.pager.lines(self.look, self.height)
                if not self.log.waits():
                    return shown
            self._read()
        raise AssertionError("never read")

    def texts(self) -> list[str]:
        return [line.text for line in self.shown()]


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.text("abc 1\n训é", min_size=1, max_size=600),
    st.integers(1, 30),
    st.integers(1, 9),
    st.booleans(),
    st.booleans(),
    st.lists(
        st.tuples(st.sampled_from(["row", "page"]), st.integers(-3, 3)), max_size=8
    ),
)
def test_rows_in_sight_follow_each_other(
    small: None,
    tmp_path: Path,
    text: str,
    width: int,
    height: int,
    wrap: bool,
    fold: bool,
    moves: list[tuple[str, int]],
) -> None:
    (tmp_path / "train.log").write_text(text)
    reading = Reading(tmp_path / "train.log", width, height, wrap=wrap, fold=fold)
    newest = list(reading.shown())
    pager = reading.pager
    pager.go_home()
    every = list(reading.shown())
    for _ in range(2000):
        top = pager.top  # rows of a wrapped line may look alike
        pager.move(1)
        now = list(reading.shown())
        if pager.top == top:
            break
        assert now[:-1] == every[-len(now) + 1 :] if len(now) > 1 else True
        every.append(now[-1])
    assert newest == every[-len(newest) :]
    assert len(newest) == min(height, len(every))
    if not fold and not wrap and width == 30:
        assert len(every) == len(text.removesuffix("\n").split("\n"))
    assert all(cell_len(line.text) <= width for line in every if width > 1)
    at = len(every) - len(newest)
    for what, by in moves:
        pager.move(by) if what == "row" else pager.page(by)
        at = min(
            max(0, at + by * (1 if what == "row" else max(1, height - 1))),
            len(every) - len(newest),
        )
        assert list(reading.shown()) == every[at : at + height]


def test_follows_with_room_for_what_comes(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text("".join(f"line {n}\n" for n in range(20)))
    reading = Reading(path, height=8)
    assert reading.texts() == [f"line {n}" for n in range(12, 20)]
    tops = []
    for n in range(20, 26):
        with path.open("a") as file:
            file.write(f"line {n}\n")
        shown = reading.texts()
        assert shown[-1] == f"line {n}"
        tops.append(shown[0])
    assert len(set(tops)) == 2, "rows stay where they are until there is no more room"
    reading.pager.move(-1)
    stays = reading.texts()
    with path.open("a") as file:
        file.write("more\n" * 50)
    assert reading.texts() == stays
    reading.pager.go_end()
    assert reading.texts() == ["more"] * 8


def test_a_file_that_begins_anew_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text("".join(f"line {n}\n" for n in range(200)))
    reading = Reading(path)
    reading.pager.go_home()
    assert reading.texts()[0] == "line 0"
    path.write_text("new\n")
    assert reading.texts() == ["new"]
    assert reading.pager.follow
    path.write_text("")
    assert reading.texts() == []


def test_a_place_stays_when_rows_are_laid_out_otherwise(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text(
        "".join(
            f"(Worker pid={n % 3}) line {n // 5} {'x' * n}\n{chr(65 + n % 26) * 3}\n"
            for n in range(90)
        )
    )
    reading = Reading(path, width=20)
    start = reading.log.size // 2
    reading.shown()
    reading.pager.go_to(
        next(
            line.start
            for line in reading.log.block(0).lines
            if line.start > 1500 and "x" in line.text
        ),
        0,
    )  # type: ignore[union-attr]
    start = reading.shown()[0].row.start
    for look in (
        LogLayout(20, wrap=True),
        LogLayout(9, wrap=True, fold=False),
        LogLayout(20),
    ):
        reading.look = look
        row = reading.shown()[0].row
        assert row.start <= start < row.end


def test_long_names_give_way() -> None:
    row = rows(lines("(AgentLoopWorker pid=3) hello"), fold=True)
    assert [
        line.text for line in paging.screen_rows(row[0], LogLayout(30, tag=16))
    ] == ["AgentLoopWorker hello"]
    assert [line.text for line in paging.screen_rows(row[0], LogLayout(30, tag=5))] == [
        "ALW hello"
    ]
    assert [line.text for line in paging.screen_rows(row[0], LogLayout(6, tag=5))] == [
        "ALW h…"
    ]
    assert (
        "".join(
            line.text
            for line in paging.screen_rows(row[0], LogLayout(5, wrap=True, tag=5))
        )
        == "ALWhello"
    )
