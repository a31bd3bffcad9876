"""The rows about sources: what is read, what is down, what was not understood."""

from __future__ import annotations

from run_views import NOW, logged, make_view

from verl_tui.records import MetricRows, SourceStatus, Unreadable
from verl_tui.rendering.session.snapshot import not_shown
from verl_tui.rendering.source_rows import source_rows
from verl_tui.rendering.text.piece import text_of
from verl_tui.runs.run import Run
from verl_tui.sources.discovery.passed_over import PassedOver
from verl_tui.sources.http.addresses import Unreached

LOG = SourceStatus(
    "/data/runs/grpo/train.log", "verl console", 2, 0, 12_345, 2, 98_700_000, 123_400_000, NOW - 70
)  # fmt: skip
DOWN = SourceStatus(
    "/data/runs/grpo/m.jsonl", "verl file logger", 3, 1, 120, 0, 3400, 3400, NOW - 900, "no permission"
)  # fmt: skip
UNREADABLE = (
    Unreadable(812, "not JSON", '{"step": 12'),
    Unreadable(91_234, "no number", "[red] step:12 - x:y"),
)


def grpo():
    run = logged(Run("grpo"), *UNREADABLE, **LOG._asdict())
    return logged(run, **DOWN._asdict())


def test_what_is_passed_over_is_listed_with_its_reason():
    passed = (
        PassedOver("/data/runs/b.log", "of no known format"),
        PassedOver("/data/runs/c", "no log in it"),
    )
    assert texts(make_view(grpo(), passed=passed), 60)[:4] == [
        "not shown: 2",
        "/data/runs/b.log: of no known format",
        "/data/runs/c: no log in it",
        "",
    ]


def test_an_address_that_is_not_reached_is_no_path_passed_over():
    unreached = (
        Unreached("http://head:9090/", "refuses the connection: nothing is listening there", NOW - 130),
        Unreached("http://node1:8000/metrics", "no answer so far", None),
    )  # fmt: skip
    view = make_view(grpo(), unreached=unreached)
    assert texts(view, 120)[:4] == [
        "not reached: 2",
        "http://head:9090/: refuses the connection: nothing is listening there, for 2m; it is asked again",
        "http://node1:8000/metrics: no answer so far",
        "",
    ]
    assert [*not_shown(view)] == ["1 address not reached (sources)"]


def texts(view, width):
    return [text_of(row).rstrip() for row in source_rows(view, width)]


def test_table():
    assert texts(make_view(grpo()), 120) == [
        "sources",
        "path                       format            state     records  metrics  unreadable             read  changed",
        "/data/runs/grpo/train.log  verl console      ● up       12,345        -           2   99 MB / 123 MB       1m",
        "/data/runs/grpo/m.jsonl    verl file logger  ✗ down        120        -           0           3.4 kB      15m",
        "  no permission",
        "",
        "unreadable lines: 2",
        "/data/runs/grpo/train.log",
        '  line 812  not JSON  {"step": 12',
        "  line 91,234  no number  [red] step:12 - x:y",
    ]


def test_what_a_source_gives_and_what_else_is_to_be_known_of_it():
    status = LOG._replace(path="x.log", note="only half of it is read")
    rows = MetricRows(("a", "b"), (1,), ((1.0,), (2.0,)), (0,))
    run = logged(Run("r"), rows, **status._asdict())
    shown = texts(make_view(run), 120)
    assert shown[2].split()[6:8] == ["2", "2"], "two metrics, two unreadable lines"
    assert shown[3] == "  only half of it is read"


def test_many_files_of_one_kind_share_a_row_unless_something_is_wrong():
    run, dump = Run("grpo"), {"format": "rollout dump", "size": 1000}
    for n in range(300):
        read = {"records": 64, "bytes_read": 1000, "modified": NOW - n}
        logged(run, path=f"/data/rollouts/{n}.jsonl", **dump, **read)
    logged(run, path="/data/rollouts/300.jsonl", **dump, problem="vanished")
    shown = texts(make_view(run), 120)
    assert [line.split()[0] for line in shown[2:4]] == [
        "/data/rollouts/*.jsonl",
        "/data/rollouts/300.jsonl",
    ]
    assert "(300 files)" in shown[2]
    assert "19,200" in shown[2]
    assert "300 kB" in shown[2]
    assert shown[2].endswith("now")
