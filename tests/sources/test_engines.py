"""Engines that a console names: which lines name one, and that nobody is asked unless the
configuration wants it.
"""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from log_reading import follow_feed
from prometheus_client import CollectorRegistry, Counter, Gauge, make_wsgi_app

from verl_tui.config import Config
from verl_tui.monitor import Monitor, load
from verl_tui.records import Batch, SourceStatus
from verl_tui.sources.feed import Feed
from verl_tui.sources.formats.console import reader as console
from verl_tui.sources.http.address_run import MOST
from verl_tui.sources.http.client import AUTHORIZATION
from verl_tui.sources.http.served import Served

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from verl_tui.sources.discovery.finder import Discovery

NOW = 1_800_000_000.0
ASKING = replace(Config(), scrape_engines=True)
TASK = b"(TaskRunner pid=44095) "
STEPS = "step:{0} - critic/score/mean:0.5 - actor/grad_norm:0.1\n"


def named(*lines: bytes) -> tuple[str, ...]:
    """Return the engines that a console names."""
    reader = console.reader(None)  # type: ignore[arg-type]
    reader.feed(b"\n".join((*lines, b"")))
    return reader.decoder.engines


# -- lines -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "places"),
    [
        ([TASK + b"AgentLoopManager: ['172.26.237.243:42991', '172.26.237.243:44745']"],
         ["172.26.237.243:42991", "172.26.237.243:44745"]),
        ([b"\x1b[36m(TaskRunnerV1 pid=8673)\x1b[0m LLMServerManager: ['[fd00::1]:43211']"], ["[fd00::1]:43211"]),
        ([b"LLMServerManager: ['10.0.0.1:1']\r"], ["10.0.0.1:1"]),
        ([b"(FullyAsyncRollouter pid=7) AgentLoopManager Hybrid: ['10.0.0.1:8000']"], ["10.0.0.1:8000"]),
        ([b"INFO 11-22 10:00:00 [api_server.py:1971] Starting vLLM API server 0 on http://0.0.0.0:8000"],
         ["127.0.0.1:8000"]),
        ([b"(APIServer pid=12) INFO 11-22 10:00:00 [entrypoints/openai/api_server.py:19] Starting vLLM API server 0 on "
          b"http://[::]:8000"], ["[::1]:8000"]),
        ([b"(RolloutServer pid=4, ip=10.0.0.9) INFO 04-01 12:00:00 api_server.py:100] Starting vLLM API server on "
          b"http://0.0.0.0:8000"], ["10.0.0.9:8000"]),
        # started anew: another process of the same actor
        ([TASK + b"AgentLoopManager: ['10.0.0.1:1']", b"(TaskRunner pid=9) AgentLoopManager: ['10.0.0.1:2']"],
         ["10.0.0.1:2"]),
        # one process with two lists: the engines of another model
        ([TASK + b"LLMServerManager: ['10.0.0.1:1']", TASK + b"LLMServerManager: ['10.0.0.1:2']"],
         ["10.0.0.1:1", "10.0.0.1:2"]),
    ],
)  # fmt: skip
def test_lines_that_name_engines(lines: list[bytes], places: list[str]) -> None:
    assert named(*lines) == tuple(f"http://{place}/metrics" for place in places)


@pytest.mark.parametrize(
    "line",
    [
        # verl's own stand-in
        b"(TaskRunnerV1 pid=8673) LLMServerManager: ['cpu_server_0']",
        b"LLMServerManager: ['gateway.example.com:80']",
        b"LLMServerManager: ['10.0.0.1:80/admin']",
        b"LLMServerManager: ['user@10.0.0.1:80']",
        b"LLMServerManager: ['10.0.0.1:0', '10.0.0.1:65536', '300.0.0.1:80']",
        b"LLMServerManager: ['169.254.169.254:80', '[::ffff:169.254.169.254]:80', '[fe80::1]:80', '224.0.0.1:80']",
        b"LLMServerManager: []",
        b"the answer is LLMServerManager: ['10.0.0.1:80']",
        # another machine's loopback
        b"(TaskRunner pid=3, ip=10.0.0.7) LLMServerManager: ['127.0.0.1:80']",
        # a reward model's, say
        b"INFO:     Uvicorn running on http://10.0.0.1:8000 (Press CTRL+C to quit)",
        b"Started a local Ray instance. View the dashboard at http://127.0.0.1:8265",
        b"INFO:2025-12-13 23:52:38,472:WebshopInteraction initialized with server: http://127.0.0.1:36001",
        b"(main_task pid=2)  'retriever': {'topk': 3, 'url': 'http://127.0.0.1:8009/retrieve'},",
    ],
)
def test_lines_that_name_none(line: bytes) -> None:
    assert named(line) == ()


# -- which of them are asked -----------------------------------------------------------------------


def console_of(count: int, modified: float = NOW) -> Batch:
    places = tuple(f"http://127.0.0.1:{port}/metrics" for port in range(1, count + 1))
    return Batch(
        "grpo",
        SourceStatus("train.log", console.name, modified=modified, engines=places),
    )


def test_at_most_sixteen_of_a_run_are_asked() -> None:
    served = Served((), engines=True)
    served.heed(console_of(MOST + 3))
    served.look(NOW)
    (run,) = served.sources()
    assert len(run.workers) == MOST
    assert served.sources() == []
    served.settle()
    assert "3 further engines are not asked" in (run.note or "")
    assert "; http://127.0.0.1:2/metrics: refuses the connection" in (run.note or "")


def test_engines_that_are_named_no_longer_are_let_go_and_taken_up_again() -> None:
    served, runs = Served((), engines=True), []
    for count, now in ((2, NOW), (0, NOW), (2, NOW), (2, NOW + 4000.0)):
        served.heed(console_of(count))
        served.look(now)
        runs = served.sources() or runs
        paused = not count or now > NOW
        assert [one.is_paused for one in runs[0].workers] == [paused] * 2
        assert (runs[0].note or "").startswith("no longer asked") is paused


# -- from a console to figures ---------------------------------------------------------------------


@contextmanager
def engine(
    name: str = "vllm:num_requests_running",
) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """Serve the page of an engine; yield where, and the requests that came."""
    from wsgiref.simple_server import WSGIRequestHandler, make_server

    registry, requests = CollectorRegistry(), []
    Gauge(name, "", ["engine"], registry=registry).labels("0").set(7)
    Gauge("verl_average_reward", "", registry=registry).set(99)
    Counter("vllm:generation_tokens", "", registry=registry).inc(100)
    app = make_wsgi_app(registry)

    class Silent(WSGIRequestHandler):
        def log_message(self, *_: object) -> None: ...

    def noted(environment: dict[str, str], start: object) -> object:
        requests.append(dict(environment))
        return app(environment, start)

    with make_server("127.0.0.1", 0, noted, handler_class=Silent) as server:  # type: ignore[arg-type]
        thread = threading.Thread(
            target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}", requests
        finally:
            server.shutdown()
            thread.join(5)


def written(folder: Path, place: str, age: float = 5.0) -> str:
    path = folder / "train.log"
    path.write_text(
        f"(TaskRunner pid=5) LLMServerManager: ['{place}']\n"
        + "".join(map(STEPS.format, (1, 2, 3)))
    )
    os.utime(path, (NOW - age, NOW - age))
    return str(path)


def test_an_engines_figures_are_those_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(AUTHORIZATION, "Bearer secret")
    with engine() as (place, requests):
        monitor = load([written(tmp_path, place)], ASKING, NOW)
    (run,) = monitor.runs.values()
    assert run.step == 3
    series = run.series("vllm:num_requests_running")
    assert (list(series.steps), list(series.values)) == ([3], [7.0])
    assert "verl_average_reward" not in run.keys  # of a page only what engines say
    status = run.sources[f"http://{place}/metrics"].status
    assert (status.problem, status.modified) == (None, None)
    assert [one["PATH_INFO"] for one in requests] == ["/metrics"]
    assert "HTTP_AUTHORIZATION" not in requests[0]


def test_without_the_setting_nobody_is_asked(tmp_path: Path) -> None:
    with engine() as (place, requests):
        path = written(tmp_path, place)
        monitor = load([path], Config(), NOW)
        follow(path, scrape_engines=False)
        assert requests == []
    (run,) = monitor.runs.values()
    assert not [one for one in run.sources if one.startswith("http")]


def test_an_engine_that_does_not_answer_is_a_state_with_its_reason(
    tmp_path: Path,
) -> None:
    monitor = load([written(tmp_path, "127.0.0.1:1")], ASKING, NOW)
    (run,) = monitor.runs.values()
    assert run.step == 3
    problem = run.sources["http://127.0.0.1:1/metrics"].status.problem or ""
    assert problem.startswith(
        "refuses the connection: nothing is listening there (since "
    )


def test_a_page_without_figures_of_an_engine_says_what_to_set(tmp_path: Path) -> None:
    from http import HTTPStatus

    def bare(_: object, start: object) -> list[bytes]:
        start(f"{HTTPStatus.OK.value} OK", [])  # type: ignore[operator]
        return [b"python_info 1\n"]

    from wsgiref.simple_server import make_server

    with make_server("127.0.0.1", 0, bare) as server:
        thread = threading.Thread(target=server.handle_request, daemon=True)
        thread.start()
        monitor = load(
            [written(tmp_path, f"127.0.0.1:{server.server_port}")], ASKING, NOW
        )
        thread.join(5)
    (run,) = monitor.runs.values()
    status = run.sources[f"http://127.0.0.1:{server.server_port}/metrics"].status
    assert "rollout.disable_log_stats=false" in (status.problem or "")


def follow(path: str, *, scrape_engines: bool) -> Monitor:
    """Follow a log until an engine's figures are there; without engines until it has been read."""
    stop, monitor = threading.Event(), Monitor(ASKING)

    def deliver(news: Batch | Discovery) -> None:
        monitor.apply(news, NOW)
        if (
            isinstance(news, Batch)
            and news.records
            and news.status.path.startswith("http") is scrape_engines
        ):
            stop.set()

    feed = Feed([path], scrape_engines=scrape_engines)
    follow_feed(feed, stop, deliver, lambda: NOW)
    return monitor


def test_a_log_that_is_followed_has_its_engines_asked(tmp_path: Path) -> None:
    with engine("sglang:num_running_reqs") as (place, _):
        monitor = follow(written(tmp_path, place), scrape_engines=True)
    (run,) = monitor.runs.values()
    assert run.tail("sglang:num_running_reqs", 1)[0] == 7.0
