"""`notify`, and `check` and `guard` with notifications, from the command line to a real server."""

from __future__ import annotations

import json
import os
import sys

import pytest
from command_line import write_log
from webhook_server import answer, webhook

from verl_tui.cli import main


@pytest.fixture(autouse=True)
def nothing_set(tmp_path, monkeypatch):
    """Neither an address nor a configuration nor a proxy of this machine's."""
    for name in ("URL", "SECRET", "TOKEN", "FILE"):
        monkeypatch.delenv(f"VERL_TUI_NOTIFY_{name}", raising=False)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("VERL_TUI_CONFIG", str(tmp_path / "config.toml"))
    (tmp_path / "config.toml").touch()


@pytest.fixture
def server(monkeypatch):
    with webhook() as found:
        monkeypatch.setenv("VERL_TUI_NOTIFY_URL", found.url)
        yield found


@pytest.fixture
def broken(tmp_path):
    """A run that has ended long ago, with a breaker tripped."""
    path = write_log(tmp_path, *[0.03] * 20, *[0.3] * 8, name="run_7")
    os.utime(path, (1_700_000_000, 1_700_000_000))
    return path


def test_a_test_message_is_sent(server, capsys):
    assert main(["notify", "--test"]) == 0
    said = "sent through the webhook from VERL_TUI_NOTIFY_URL as json: HTTP 200\n"
    assert capsys.readouterr().out == said
    assert server.received[0].data["event"] == "test"


def test_a_test_that_fails_says_why_and_not_where(server, capsys):
    server.answers[:] = [answer(403, body=b"/hooks/T0P-SECRET")]
    assert main(["notify", "--test"]) == 69
    said = "verl-tui: the webhook from VERL_TUI_NOTIFY_URL answers with HTTP 403\n"
    assert capsys.readouterr().err == said


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["notify", "--test"], "no address to notify: put it into VERL_TUI_NOTIFY_URL"),
        (["notify"], "either --test sends a message, or --show PATH shows"),
        (["notify", "--test", "log"], "--test sends one message and reads no PATH"),
        (["notify", "--show"], "--show needs one"),
        (["check", "--notify", "log"], "no address to notify"),
        (["check", "--state", "x", "log"], "--state goes with --notify"),
    ],
)
def test_what_makes_no_sense_is_refused(argv, message, asked):
    assert message in asked(*argv, code=64).err


def test_what_would_be_sent_is_shown_without_an_address(broken, capsys):
    assert main(["notify", "--show", str(broken)]) == 0
    assert "verl-tui: run_7: critical: circuit-breaker-kl\n" in capsys.readouterr().out
    assert main(["notify", "--show", str(broken), "--preset", "json"]) == 0
    shown = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert "circuit-breaker-kl" in {one["finding"] for one in shown}


def test_where_nothing_would_be_sent_only_that_is_said(tmp_path, asked):
    path = write_log(tmp_path, *[0.03] * 20)
    for form in ([], ["--preset", "json"]):
        _, out, err = asked("notify", "--show", path, *form, code=0)
        assert out == ""
        assert err.startswith("verl-tui: nothing would be sent: ")


def test_the_next_check_sends_what_changed(server, broken, tmp_path, capsys):
    argv = ["check", "--notify", "--state", str(tmp_path / "state.json"), str(broken)]
    assert main(argv) == 2
    sent = len(server.received)
    assert sent
    assert main(argv) == 2
    assert len(server.received) == sent
    assert capsys.readouterr().err == ""


def test_a_run_is_known_by_its_id_and_not_by_its_name(server, tmp_path):
    def crash(place: str) -> str:
        log = tmp_path / place / "run_7" / "train.log"
        log.parent.mkdir(parents=True)
        log.write_text(
            "".join(f"step:{at} - critic/score/mean:0.5\n" for at in range(1, 9))
            + "Traceback (most recent call last):\nValueError: bad\n"
        )
        os.utime(log, (1_700_000_000, 1_700_000_000))
        return str(log.parent)

    def sent(*paths: str) -> list[tuple[str, str]]:
        before = len(server.received)
        state = str(tmp_path / "state.json")
        main(["check", "--notify", "--state", state, *paths])
        return [
            (one.data["run"], one.data["finding"]) for one in server.received[before:]
        ]

    first = crash("a")
    assert sent(first) == [("run_7", "crash")]
    second = crash("b")
    assert sent(second) == [("run_7", "crash")], "of the same name, with the same crash"
    assert sent(first, second) == [], "both have another name now"
    third = crash("c")
    assert sent(first, second, third) == [("run_7 (c)", "crash")]
    assert sent(first) == []


def test_a_state_that_cannot_be_kept_is_said(server, broken, tmp_path, asked):
    path = tmp_path / "nowhere" / "state.json"
    assert asked("check", "--notify", "--state", path, broken, code=2).err == (
        f"verl-tui: {path}: no such file or directory; the next check sends the same again\n"
    )
    assert server.received


def test_a_state_is_neither_read_nor_written_through_a_link(
    server, broken, tmp_path, capsys
):
    path = tmp_path / "state.json"
    path.symlink_to("elsewhere")
    assert main(["check", "--notify", "--state", str(path), str(broken)]) == 64
    assert f"{path}: is a link" in capsys.readouterr().err
    assert not (tmp_path / "elsewhere").exists()
    assert not server.received


def test_a_check_whose_messages_fail_keeps_its_exit_code(server, broken, asked):
    server.answers[:] = [answer(410)]
    err = asked("check", "--notify", broken, code=2).err
    assert (
        "could not be sent: the webhook from VERL_TUI_NOTIFY_URL answers with HTTP 410"
        in err
    )
    assert "T0P-SECRET" not in err


def test_the_guard_tells_of_a_finding_before_the_command_that_it_set_off(
    server, broken, monkeypatch
):
    monkeypatch.setattr("signal.signal", lambda *_: None)
    os.utime(broken)
    assert main(["guard", str(broken), "--", sys.executable, "-c", "pass"]) == 2
    sent_events = [one.data["event"] for one in server.received]
    assert sent_events[0] == "finding"
    assert sent_events[1:3] == ["guard", "guard"]


def test_the_guard_sends_by_itself(server, broken, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("signal.signal", lambda *_: None)
    assert main(["guard", str(broken)]) == 2
    assert "circuit-breaker-kl" in [one.data["finding"] for one in server.received]
    sent = len(server.received)
    (tmp_path / "config.toml").write_text('[notify]\ncommands = ["watch"]\n')
    assert main(["guard", str(broken)]) == 2
    assert len(server.received) == sent


def test_the_app_sends_unless_it_is_a_page_or_is_not_to(
    server, broken, tmp_path, monkeypatch
):
    notifiers: list[object] = []

    def watch(*_what: object, notifier: object, **_how: object) -> int:
        notifiers.append(notifier)
        return 0

    monkeypatch.setattr("verl_tui.tui.watch", watch)
    monkeypatch.setattr("verl_tui.commands.watch.need_terminal", lambda _paths: None)
    monkeypatch.delenv("TEXTUAL_DRIVER", raising=False)
    assert main([str(broken)]) == 0
    monkeypatch.setenv("TEXTUAL_DRIVER", "textual_serve")
    assert main([str(broken)]) == 0
    monkeypatch.delenv("TEXTUAL_DRIVER")
    (tmp_path / "config.toml").write_text('[notify]\ncommands = ["guard"]\n')
    assert main([str(broken)]) == 0
    assert [one is not None for one in notifiers] == [True, False, False]
    assert server.received == []


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_other_addresses_go_through_apprise(server, monkeypatch, asked):
    monkeypatch.setenv("VERL_TUI_NOTIFY_URL", server.url.replace("http://", "json://"))
    assert asked("notify", "--test", code=0).out == (
        "sent through the address from VERL_TUI_NOTIFY_URL as apprise: taken by apprise\n"
    )
    assert server.received[0].data["title"] == "verl-tui: test"
    monkeypatch.setenv("VERL_TUI_NOTIFY_URL", "unknown://T0P-SECRET")
    assert asked("notify", "--test", code=69).err == (
        "verl-tui: the address from VERL_TUI_NOTIFY_URL is none that apprise knows\n"
    )


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_apprise_follows_no_redirect_and_calls_nobody(server, broken, monkeypatch):
    crashed = broken.with_name("train.log")
    crashed.write_text(
        "step:1 - critic/score/mean:0.5\nTraceback (most recent call last):\n"
        'ValueError: <at user_id="all"> @everyone\n'
    )
    monkeypatch.setattr("verl_tui.notify.notifier.PAUSES", ())
    monkeypatch.setenv("VERL_TUI_NOTIFY_URL", server.url.replace("http://", "json://"))
    with webhook() as other:
        server.answers[:] = [answer(307, f"Location: {other.url}")]
        main(["check", "--notify", str(crashed)])
        assert other.received == []
    sent = " ".join(one.data["message"] for one in server.received)
    assert "@\u200beveryone" in sent
    assert "<\u200bat" in sent
