"""Delivery to a real server that answers well, badly, endlessly or not at all: every message ends
in an answer or in a sentence, and no sentence shows the address.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from command_line import placed
from webhook_server import HANGING, answer, webhook

from verl_tui.health.finding import Severity
from verl_tui.notify.delivery import Destination, NotSentError, deliver
from verl_tui.notify.message import Message
from verl_tui.notify.notifier import Sender

NOW = 1_800_000_000.0
NAME = "the webhook from VERL_TUI_NOTIFY_URL"
MESSAGE = Message(
    event="finding",
    time=NOW,
    message="policy KL was above 0.2",
    run="run_7",
    finding="kl-high",
    severity=Severity.CRITICAL,
    step=46,
)


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def to(url: str, preset: str = "json", **access: str) -> Destination:
    return Destination(url, "VERL_TUI_NOTIFY_URL", preset, **access)


class Pauses(list[float]):
    """Notes pauses instead of making them."""

    def __call__(self, seconds: float) -> None:
        self.append(seconds)


def sent(url: str, preset: str = "json", **access: str) -> tuple[Sender, Pauses]:
    """Send one message to the end."""
    pauses = Pauses()
    destination = to(url, preset, **access)
    sender = Sender(lambda one: deliver(destination, one), pause=pauses)
    sender.send(MESSAGE)
    sender.close(30)
    return sender, pauses


def test_a_message_arrives_as_json():
    with webhook() as server:
        sender, pauses = sent(server.url, token="t0k3n-of-mine")
    assert (sender.unsent, pauses) == ([], [])
    (received,) = server.received
    assert received.target == "/hooks/T0P-SECRET"
    assert received.headers["authorization"] == "Bearer t0k3n-of-mine"
    assert received.headers["content-type"] == "application/json; charset=utf-8"
    assert received.data == MESSAGE.as_data()


def test_a_redirect_is_not_followed():
    with webhook() as other, webhook([answer(307, f"Location: {other.url}")]) as server:
        sender, pauses = sent(server.url, token="t0k3n-of-mine")
    assert other.received == []
    assert pauses == []
    assert sender.problem.endswith("redirects (HTTP 307), which is not followed")


def test_a_server_that_hangs_costs_no_more_than_the_deadline():
    with webhook([HANGING]) as server, pytest.raises(NotSentError) as caught:
        deliver(to(server.url), MESSAGE, 0.1)
    assert str(caught.value) == f"{NAME} gives no complete answer within 0.1 s"
    assert caught.value.passing


def test_a_plain_server_is_no_encrypted_one():
    with webhook([b"no TLS here"]) as server:
        sender, _ = sent(f"https://127.0.0.1:{server.port}/hooks/T0P-SECRET")
    assert "TLS" in sender.problem
    assert "T0P-SECRET" not in sender.problem


def test_a_proxy_of_the_environment_is_used(monkeypatch):
    with webhook() as proxy:
        monkeypatch.setenv("http_proxy", f"http://me:p%40ss@127.0.0.1:{proxy.port}")
        sender, _ = sent("http://hooks.invalid/T0P-SECRET")
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        with webhook() as direct:
            sent(direct.url)
    assert sender.unsent == []
    (received,) = proxy.received
    assert received.target == "http://hooks.invalid/T0P-SECRET"
    assert received.headers["proxy-authorization"] == "Basic bWU6cEBzcw=="
    assert len(direct.received) == 1


def test_a_full_queue_gives_up_what_is_new_and_nobody_waits():
    with webhook([HANGING]) as server:
        destination = to(server.url)
        sender = Sender(lambda one: deliver(destination, one), most=1)
        for id in "abcde":
            sender.send(replace(MESSAGE, id=id))
        assert len(sender.unsent) >= 3
        assert sender.problem == "1 messages wait already"
        sender.close(0.05)
    assert len(sender.unsent) == 5


def test_what_fails_in_another_way_ends_nothing():
    answers = iter([KeyError("x"), None])

    def fails_once(_message: Message) -> None:
        if (error := next(answers)) is not None:
            raise error

    sender = Sender(fails_once)
    sender.send(MESSAGE)
    sender.send(replace(MESSAGE, id="other"))
    sender.close(30)
    assert (len(sender.unsent), placed(sender.problem)) == (
        1,
        "failed: KeyError in PLACE",
    )
