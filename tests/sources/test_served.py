"""Addresses: what is asked there, and that every bad server comes to one sentence and nothing
else.
"""

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
import threading
import time
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

import pytest
from log_reading import follow_feed

from verl_tui.config import Config
from verl_tui.exporters.endpoint import MetricsServer, encryption
from verl_tui.exporters.prometheus import exposition
from verl_tui.monitor import Monitor, load
from verl_tui.records import Batch
from verl_tui.sources.feed import Feed
from verl_tui.sources.formats.prometheus_text.series import PrometheusSeries, StepRows
from verl_tui.sources.http import addresses
from verl_tui.sources.http.addresses import NoAnswerError
from verl_tui.sources.http.client import AUTHORIZATION, CA_FILE, ask
from verl_tui.sources.http.served import Poller, Served

if TYPE_CHECKING:
    from collections.abc import Iterator

    from verl_tui.sources.discovery.finder import Discovery

NOW = 1_790_000_000.0
Talk = "Callable[[socket.socket, str], None]"
BREAKS_OFF = "breaks off in the middle of its answer"
UNTOLD = b"HTTP/1.1 200 OK\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
PAGE = b"# TYPE verl_average_reward gauge\nverl_average_reward %b\nverl_training_steps_total %b\n"


def received(connection: socket.socket) -> str:
    """Return a request with its body, which comes after its head."""
    request = connection.recv(65536).decode("latin-1")
    while (
        "Content-Length: 0" not in request
        and "Content-Length:" in request
        and request.endswith("\r\n\r\n")
    ):
        request += connection.recv(65536).decode("latin-1")
    return request


@contextmanager
def listening(talk: Talk) -> Iterator[str]:
    """Run a server that does with each connection what it is told: what it asks for is handed over
    as text.
    """
    with socket.create_server(("127.0.0.1", 0)) as server:
        done = threading.Event()

        def serve() -> None:
            while not done.is_set():
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connection.settimeout(5)
                    try:
                        talk(connection, received(connection))
                    except OSError:
                        continue

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}"
        finally:
            done.set()
            server.shutdown(socket.SHUT_RDWR)
            thread.join(5)


def answer(body: bytes, status: str = "200 OK", *headers: str) -> bytes:
    head = "\r\n".join(
        (
            f"HTTP/1.1 {status}",
            f"Content-Length: {len(body)}",
            "Connection: close",
            *headers,
        )
    )
    return head.encode() + b"\r\n\r\n" + body


def always(reply: bytes) -> Talk:
    return lambda connection, _: connection.sendall(reply)


def asked(address: str, **settings: float) -> str:
    """Return the sentence that a server comes to."""
    place = addresses.parse_address(f"{address}/metrics")
    with pytest.raises(NoAnswerError) as error:
        ask(place, **settings)  # type: ignore[arg-type]
    return str(error.value)


def drips(connection: socket.socket, _: str) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    for _ in range(200):
        connection.sendall(b"#")
        threading.Event().wait(0.02)


def test_a_server_that_never_ends_its_answer_is_cut_off():
    with listening(drips) as address:
        assert asked(address, deadline=0.3) == "gives no complete answer within 0.3 s"


@pytest.mark.parametrize(
    ("reply", "sentence"),
    [
        (
            answer(b"", "401 Unauthorized"),
            f"asks for a login: put a header into {AUTHORIZATION}",
        ),
        (answer(b"", "403 Forbidden"), "refuses access (HTTP 403)"),
        (answer(b"", "404 Not Found"), "has no metrics at this address (HTTP 404)"),
        (answer(b"", "500 Oops"), "answers with HTTP 500"),
        (answer(b"", "799 What"), "answers with HTTP 799"),
        (b"", "closes the connection without an answer"),
        (answer(b"loss 0.5\nkl 0.25\n")[:-4], BREAKS_OFF),
        (answer(b"loss 0.5\n", "503 Busy")[:-1], BREAKS_OFF),
        (UNTOLD + b"loss 0.5\nkl 0.2", BREAKS_OFF),
        (CHUNKED + b"9\r\nloss 0.5\n\r\n8\r\nkl 0.", BREAKS_OFF),
        (CHUNKED + b"9\r\nloss 0.5\n\r\n", BREAKS_OFF),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "does not speak HTTP: SSH-2.0-OpenSSH_9.2"),
        (
            answer(b"", "302 Found", "Location: http://elsewhere.example/"),
            "redirects to http://elsewhere.example/: name that address if it is meant",
        ),
        (answer(b"", "302 Found"), "redirects to elsewhere"),
    ],
)
def test_a_bad_answer_is_one_sentence(reply, sentence):
    with listening(always(reply)) as address:
        assert asked(address).startswith(sentence)


def test_a_login_never_follows_a_redirect(monkeypatch):
    seen: list[str] = []
    with listening(lambda connection, request: seen.append(request)) as other:
        moved = answer(b"", "302 Found", f"Location: {other}/metrics")
        monkeypatch.setenv(AUTHORIZATION, "Bearer s3cret")
        with listening(always(moved)) as address:
            assert asked(address).startswith("redirects to ")
    assert seen == []


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ("http://me:secret@host:9090", "a login in an address"),
        ("http://", "has no host in it"),
        ("http://host:99999/", "is no address"),
        ("http://ho st/", "no spaces"),
        ("http://[::1", "is no address"),
    ],
)
def test_an_address_that_makes_no_sense_says_why(spec, why):
    served = Served([spec])
    (sentence,) = served.problems
    assert why in sentence
    assert "secret" not in sentence


# -- endpoints -------------------------------------------------------------------------------------


def look(*specs: str) -> Monitor:
    return load(specs, Config(), time.time())


@contextmanager
def page(text: bytes) -> Iterator[str]:
    """Serve a page of metrics at /metrics, and nothing else."""

    def talk(connection: socket.socket, request: str) -> None:
        there = request.startswith("GET /metrics ")
        connection.sendall(
            answer(text) if there else answer(b"<html>no</html>", "404 Not Found")
        )

    with listening(talk) as address:
        yield address


def test_an_endpoint_is_a_run():
    with page(PAGE % (b"0.5", b"12")) as address:
        for spec in (f"{address}/metrics", address):
            (run,) = look(spec).runs.values()
            assert (run.step, run.tail("verl_average_reward", 1)[0]) == (12, 0.5)
            (source,) = run.sources.values()
            assert source.status.path == spec.replace("/metrics", "") + (
                "/metrics" if "metrics" in spec else "/"
            )


def test_of_a_page_that_cannot_be_read_to_its_end_it_is_said():
    with page(PAGE % (b"0.5", b"12") + b"never } said\n") as address:
        (run,) = look(address).runs.values()
    (source,) = run.sources.values()
    assert run.step == 12
    assert (source.status.note or "").startswith(
        "line 4 of the page cannot be read from here on: "
    )


def test_each_endpoint_is_a_run_of_its_own():
    labelled = (
        b'verl_training_steps_total{run="grpo"} 5\n# TYPE r gauge\nr{run="grpo"} %b\n'
    )
    with (
        page(labelled % b"1") as first,
        page(labelled % b"3") as second,
        page(PAGE % (b"7", b"5")) as third,
    ):
        runs = look(first, second, third).runs
    places = [one.removeprefix("http://") for one in (second, third)]
    assert [*runs] == ["grpo", f"grpo ({places[0]})", places[1]]
    assert [run.tail("r", 1)[0] for run in runs.values() if "r" in run.keys] == [
        1.0,
        3.0,
    ]


def test_what_cannot_be_reached_is_said_and_costs_the_others_nothing(tmp_path):
    (tmp_path / "run.jsonl").write_text(
        '{"step": 1, "data": {"critic/score/mean": 0.5}}\n'
    )
    monitor = look(str(tmp_path), "http://127.0.0.1:1")
    assert [run.step for run in monitor.runs.values()] == [1]
    (sentence,) = monitor.sentences
    assert sentence.startswith(
        "http://127.0.0.1:1/: refuses the connection: nothing is listening there (since "
    )
    assert [(one.address, one.since is not None) for one in monitor.unreached] == [
        ("http://127.0.0.1:1/", True)
    ]
    assert monitor.waiting == ()


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (
            answer(b"<html><body>Login</body></html>"),
            "answers with a page without metrics",
        ),
        (
            answer(b'{"status": "success", "data": {"result": []}}'),
            "cannot be understood: ",
        ),
        (answer(b"\xff\xfe\x00 junk"), "answers with a page without metrics"),
    ],
)
def test_a_server_of_something_else_is_said(reply, why):
    with listening(always(reply)) as address:
        (sentence,) = look(address).sentences
    assert why in sentence


def test_a_prometheus_without_a_training_says_so():
    def talk(connection: socket.socket, request: str) -> None:
        found: object = [] if "/series" in request else {"result": []}
        data = {"status": "success", "data": found}
        connection.sendall(answer(json.dumps(data).encode()))

    with listening(talk) as address:
        (sentence,) = look(address).sentences
    assert "is a Prometheus server that has nothing of a training so far" in sentence


@pytest.mark.parametrize(
    ("every", "pauses"), [(None, [5.0, 10.0]), (30.0, [30.0, 60.0]), (2.0, [2.0, 4.0])]
)
def test_an_address_is_asked_as_often_as_the_user_wants_and_less_where_it_is_silent(
    every, pauses
):
    replies = [answer(PAGE % (b"1", b"1")), b""]
    with listening(lambda connection, _: connection.sendall(replies.pop(0))) as address:
        poller = Poller(addresses.parse_address(f"{address}/metrics"), every=every)
        found = []
        for _ in range(2):
            poller.ask()
            found.append(poller.pause)
    assert found == pauses


def test_a_source_that_went_away_says_since_when_and_why():
    replies = [answer(PAGE % (b"1", b"1")), b""]
    clock = iter((1000.0, 1010.0))
    with listening(lambda connection, _: connection.sendall(replies.pop(0))) as address:
        served = Served([f"{address}/metrics"], lambda: next(clock))
        served.settle()
        (source,) = served.sources()
        assert source.name == address.removeprefix("http://")
        (rows, _), up = source.read(), source.status()
        served.pollers[0].ask()
        down = source.status()
    assert rows
    assert up.problem is None
    assert (down.problem or "").startswith(
        "closes the connection without an answer (since "
    )
    assert down.modified == 1000.0
    assert (served.waiting, served.unreached) == ((), ())  # its source says it


def test_a_feed_follows_files_while_an_address_hangs(tmp_path):
    (tmp_path / "run.jsonl").write_text(
        '{"step": 1, "data": {"critic/score/mean": 0.5}}\n'
    )
    stop, reported = threading.Event(), []

    def deliver(news: Batch | Discovery) -> None:
        if isinstance(news, Batch) and news.records:
            reported.append(news.run)
            stop.set()

    with listening(lambda connection, _: stop.wait(10) and None) as address:
        follow_feed(Feed([str(tmp_path), address]), stop, deliver, time.monotonic)
    assert len(reported) == 1


# -- what a Prometheus server may answer -----------------------------------------------------------


def test_what_our_exporter_has_found_holds_until_it_is_over():
    rows = StepRows()
    labels = {"id": "kl-high", "severity": "warning"}
    for begin, on in ((0, "1"), (4, "0")):
        ats = [float(at) for at in range(begin, begin + 4)]
        steps = PrometheusSeries(
            "verl_training_steps_total", {}, dict(zip(ats, ats, strict=True))
        )
        active = PrometheusSeries("verl_finding_active", labels, dict.fromkeys(ats, on))
        assert list(rows.records([steps, active])) == []
        assert rows.findings == ((("kl-high", "warning"),) if on == "1" else ())


def test_a_server_that_finds_a_question_too_large_is_asked_for_less():
    asked: list[str] = []

    def talk(connection: socket.socket, request: str) -> None:
        asked.append(request)
        path = request.split()[1]
        form = request.rpartition("\r\n")[2]
        large = b'{"status": "error", "error": "query processing would load too many samples into memory"}'
        if "verl_training_step" in form and "max+by" in form:
            steps = {"metric": {"run": "a"}, "values": [[NOW - 3600, "1"], [NOW, "9"]]}
            data = {"status": "success", "data": {"result": [steps]}}
            connection.sendall(answer(json.dumps(data).encode()))
        elif "query_range" in path and "run%3D%22a%22" in form and "step=15" in form:
            connection.sendall(answer(large, "422 Unprocessable Entity"))
        else:
            found: object = {"result": [], "activeTargets": []}
            data = {"status": "success", "data": [] if "/series" in path else found}
            connection.sendall(answer(json.dumps(data).encode()))

    with listening(talk) as address:
        poller = Poller(addresses.parse_address(address), lambda: NOW)
        poller.ask()
    assert poller.problem is None
    forms = [parse_qs(one.rpartition("\r\n")[2]) for one in asked if "run%3D" in one]
    steps = [float(form["step"][0]) for form in forms]
    assert steps == [15.0, 60.0]


@pytest.mark.skipif(
    shutil.which("openssl") is None, reason="needs Debian's package openssl"
)
def test_our_own_exporter_is_read_through_tls_and_a_login(tmp_path, monkeypatch):
    certificate = tmp_path / "cert.pem"
    key = tmp_path / "key.pem"
    made = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost"
    files = [
        "-addext",
        "subjectAltName=IP:127.0.0.1",
        "-keyout",
        str(key),
        "-out",
        str(certificate),
    ]
    subprocess.run([*made.split(), *files], check=True, capture_output=True)
    log = tmp_path / "grpo.jsonl"
    log.write_text(
        "".join(
            f'{{"step": {at}, "data": {{"actor/ppo_kl": {at}}}}}\n'
            for at in range(1, 8)
        )
    )
    with closing(
        MetricsServer("127.0.0.1", 0, login="me:pw", tls=encryption(certificate, key))
    ) as endpoint:
        endpoint.show(exposition(look(str(log)), time.time()))
        # One that never greets holds up nobody.
        silent = socket.create_connection(endpoint.server_address[:2])  # type: ignore[arg-type]
        reported = [look(endpoint.address).sentences]
        monkeypatch.setenv(CA_FILE, str(certificate))
        reported.append(look(endpoint.address).sentences)
        monkeypatch.setenv(
            AUTHORIZATION, f"Basic {base64.b64encode(b'me:pw').decode()}"
        )
        monitor = look(endpoint.address)
        silent.close()
    assert "has a certificate that is not trusted" in reported[0][0]
    assert "asks for a login" in reported[1][0]
    assert monitor.sentences == ()
    assert monitor.runs["grpo"].step == 7
    assert monitor.runs["grpo"].tail("actor/ppo_kl", 1)[0] == 7.0
