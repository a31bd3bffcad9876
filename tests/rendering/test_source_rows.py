"""The rows about sources: what is read, what is down, what was not understood."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from verl_tui.records import Batch, MetricRows, SourceStatus, Unreadable
from verl_tui.rendering.session.snapshot import View
from verl_tui.rendering.session.source_status import not_reached, passed_over
from verl_tui.rendering.source_rows import source_rows
from verl_tui.runs.run import Run
from verl_tui.sources.discovery.passed_over import PassedOver
from verl_tui.sources.http.addresses import Unreached

if TYPE_CHECKING:
    from verl_tui.monitor import Monitor

NOW = 10_000.0
LOG = SourceStatus(
    "/data/runs/grpo/train.log",
    "verl console",
    2,
    0,
    12_345,
    2,
    98_700_000,
    123_400_000,
    NOW - 70,
)
DOWN = SourceStatus(
    "/data/runs/grpo/m.jsonl",
    "verl file logger",
    3,
    1,
    120,
    0,
    3400,
    3400,
    NOW - 900,
    "no permission",
)
HOSTILE = "[red]x[/INST] [@click=app.quit] \x1b[2J\x9b \u202e 汉字👨\u200d👩\u200d👧 "


def add(run: Run, status: SourceStatus, *lines: Unreadable) -> None:
    run.apply(Batch(run.name, status, lines), NOW)


def grpo() -> Run:
    run = Run("grpo")
    add(
        run,
        LOG,
        Unreadable(812, "not JSON", '{"step": 12'),
        Unreadable(91_234, "no number", "[red] step:12 - x:y"),
    )
    add(run, DOWN)
    return run


def view_of(
    run: Run | None,
    *,
    problems: tuple[str, ...] = (),
    waiting: tuple[str, ...] = (),
    passed: tuple[PassedOver, ...] = (),
    unreached: tuple[Unreached, ...] = (),
    **more: Any,
) -> View:
    said = {
        "problems": problems,
        "waiting": waiting,
        "passed": passed,
        "unreached": unreached,
    }
    monitor = cast("Monitor", SimpleNamespace(verdicts={}, **said))
    return View(monitor, run, NOW, **more)


def test_what_is_passed_over_is_listed_with_its_reason() -> None:
    passed = (
        PassedOver("/data/runs/b.log", "of no known format"),
        PassedOver("/data/runs/c", "no log in it"),
    )
    assert texts(view_of(grpo(), passed=passed), 60)[:4] == [
        "not shown: 2",
        "/data/runs/b.log  of no known format",
        "/data/runs/c  no log in it",
        "",
    ]


def test_an_address_that_is_not_reached_is_no_path_passed_over() -> None:
    unreached = (
        Unreached(
            "http://head:9090/",
            "refuses the connection: nothing is listening there",
            NOW - 130,
        ),
        Unreached("http://node1:8000/metrics", "no answer so far", None),
    )
    view = view_of(grpo(), unreached=unreached)
    assert texts(view, 120)[:4] == [
        "not reached: 2",
        "http://head:9090/: refuses the connection: nothing is listening there, for 2m; it is asked again",
        "http://node1:8000/metrics: no answer so far",
        "",
    ]
    assert (passed_over(view), not_reached(view)) == ("", "1 address not reached (i)")


def texts(view: View, width: int) -> list[str]:
    return [
        "".join(text for text, _ in row).rstrip() for row in source_rows(view, width)
    ]


def roles(view: View, width: int) -> dict[str, str]:
    return {
        text.strip(): role for row in source_rows(view, width) for text, role in row
    }


def test_table() -> None:
    assert texts(view_of(grpo()), 120) == [
        "sources",
        "path                       format            state   records  metrics  unreadable            read  changed",
        "/data/runs/grpo/train.log  verl console      ● up     12,345        -           2  99 MB / 123 MB       1m",
        "/data/runs/grpo/m.jsonl    verl file logger  ✗ down      120        -           0          3.4 kB      15m",
        "  no permission",
        "",
        "unreadable lines: 2",
        "/data/runs/grpo/train.log",
        '  line 812  not JSON  {"step": 12',
        "  line 91,234  no number  [red] step:12 - x:y",
    ]


def test_what_a_source_gives_and_what_else_is_to_be_known_of_it() -> None:
    run = Run("r")
    status = LOG._replace(path="x.log", note="only half of it is read")
    run.apply(
        Batch("r", status, (MetricRows(("a", "b"), (1,), ((1.0,), (2.0,)), (0,)),)), NOW
    )
    shown = texts(view_of(run), 120)
    assert shown[2].split()[6:8] == ["2", "2"], "two metrics, two unreadable lines"
    assert shown[3] == "  only half of it is read"
    assert any("gives 2 metrics" in line for line in texts(view_of(run), 60))


def test_colours_are_not_all_that_tells_up_from_down() -> None:
    shown = roles(view_of(grpo()), 120)
    assert shown["● up"] == "up"
    assert shown["✗ down"] == shown["no permission"] == "down"
    assert {"+ up", "! down"} <= set(roles(view_of(grpo(), ascii_only=True), 120))


def test_narrow() -> None:
    assert texts(view_of(grpo()), 38)[:9] == [
        "sources",
        "/data/runs/grpo/train.log",
        "  ● up  verl console  12,345 records",
        "  2 unreadable  99 MB / 123 MB",
        "  changed 1m ago",
        "/data/runs/grpo/m.jsonl",
        "  ✗ down  verl file logger",
        "  120 records  0 unreadable  3.4 kB",
        "  changed 15m ago",
    ]
    assert "…a/runs/grpo/train.log" in texts(view_of(grpo()), 22)


def test_many_files_of_one_kind_share_a_row_unless_something_is_wrong() -> None:
    run = Run("grpo")
    for step in range(300):
        add(
            run,
            SourceStatus(
                f"/data/rollouts/{step}.jsonl",
                "rollout dump",
                4,
                0,
                64,
                0,
                1000,
                1000,
                NOW - step,
            ),
        )
    add(
        run,
        SourceStatus(
            "/data/rollouts/300.jsonl",
            "rollout dump",
            4,
            0,
            0,
            0,
            0,
            1000,
            NOW,
            "vanished",
        ),
    )
    shown = texts(view_of(run), 120)
    assert [line.split()[0] for line in shown[2:4]] == [
        "/data/rollouts/*.jsonl",
        "/data/rollouts/300.jsonl",
    ]
    assert "(300 files)" in shown[2]
    assert "19,200" in shown[2]
    assert "300 kB" in shown[2]
    assert shown[2].endswith("now")


def test_only_the_newest_unreadable_lines_are_listed() -> None:
    run = Run("grpo")
    status = SourceStatus("/data/train.log", "verl console", unreadable=5000)
    add(run, status, *(Unreadable(line, "not JSON", "x") for line in range(1000)))
    shown = texts(view_of(run), 100)
    assert "unreadable lines: 5,000" in shown
    assert "  4,800 more, not listed" in shown
    assert shown[-1] == "  line 999  not JSON  x"


def test_says_so_where_there_is_nothing() -> None:
    assert texts(view_of(None), 80) == ["No run yet, so nothing is being read."]
    assert texts(view_of(Run("new")), 80) == [
        "sources",
        "none",
        "",
        "No line was unreadable.",
    ]


def test_problems_and_what_is_waited_for() -> None:
    view = view_of(
        None, problems=("/none: no such file",), waiting=("/later: no log yet",)
    )
    assert texts(view, 80)[:5] == [
        "problems",
        "/none: no such file",
        "",
        "waiting for",
        "/later: no log yet",
    ]
    assert roles(view, 80)["/none: no such file"] == "down"


STATUS = st.builds(
    SourceStatus("", "")._replace,
    path=st.sampled_from(["/a/1.jsonl", "/a/2.jsonl", f"/{HOSTILE}/3", "/" + "汉" * 90])
    | st.text(),
    format=st.sampled_from(["verl console", "samples"]),
    records=st.integers(0, 10**12),
    unreadable=st.integers(0, 10**6),
    bytes_read=st.integers(0, 10**14),
    size=st.integers(0, 10**14),
    modified=st.none() | st.floats(-1e10, 1e10),
    problem=st.none() | st.just(HOSTILE) | st.text(),
)
UNREADABLE = st.builds(
    Unreadable,
    st.integers(1, 10**9),
    st.text() | st.just(HOSTILE),
    st.text() | st.just(HOSTILE),
)


@settings(deadline=None)
@given(
    st.lists(st.tuples(STATUS, st.lists(UNREADABLE, max_size=3)), max_size=8),
    st.integers(1, 200),
    st.booleans(),
)
def test_everything_fits(
    sources: list[tuple[SourceStatus, list[Unreadable]]], width: int, ascii: bool
) -> None:
    run = Run("grpo")
    for status, lines in sources:
        add(run, status, *lines)
    view = view_of(
        run, problems=(HOSTILE,), waiting=("[/] later " * 40,), ascii_only=ascii
    )
    for row in source_rows(view, width):
        text = "".join(text for text, _ in row)
        assert cell_len(text) <= width
        assert not {"\x1b", "\x9b", "\u202e", "\n"} & set(text)
