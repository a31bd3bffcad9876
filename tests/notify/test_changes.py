"""What is sent: each finding once an episode, each state once, and nothing that was there before."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from command_line import placed

from verl_tui.config import Config
from verl_tui.given_files import UsageError
from verl_tui.health.finding import Finding, Severity, Verdict
from verl_tui.monitor import Monitor, load
from verl_tui.notify.delivery import Destination, NotSentError
from verl_tui.notify.message import Message, of_guard
from verl_tui.notify.notifier import Changes, Notifier, Sender
from verl_tui.notify.notify_settings import Choice, NotifySettings
from verl_tui.records import Batch, SourceStatus

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


NOW = 1_800_000_000.0
HOUR = 3600.0
KL = Finding(
    "kl-high", Severity.CRITICAL, "KL is 0.31", step=46, since_step=40, key="kl"
)
LENGTH = replace(KL, id="length", key="length", consequence_of="kl-high")
CHOICE = Choice(Severity.WARNING, states=frozenset())


def monitored(*findings: Finding, run: str = "run_7") -> Monitor:
    monitor = Monitor(Config())
    monitor.apply(Batch(run, SourceStatus(path="log", format="verl console")), NOW)
    monitor.verdicts[run] = Verdict(findings)
    return monitor


def reported(messages: Sequence[Message]) -> list[str]:
    return [f"{one.event} {one.finding or one.state}" for one in messages]


class Steps:
    """A series of looks, an hour apart."""

    def __init__(self, settings: NotifySettings) -> None:
        self.changes = Changes(settings)
        self.now = NOW

    def __call__(self, *findings: Finding, news: bool = True) -> list[str]:
        self.now += HOUR
        return reported(
            self.changes.messages(monitored(*findings), self.now, lambda _run: news)
        )


def test_a_finding_is_reported_once_an_episode():
    look = Steps(NotifySettings(CHOICE))
    assert look(KL, LENGTH) == ["finding kl-high"], "what follows is not reported"
    assert look(replace(KL, message="KL is 0.35", step=50)) == []
    assert look() == []
    assert look(KL) == [], "it blinked"
    assert look(replace(KL, since_step=60)) == ["finding kl-high"]


def test_what_gets_worse_is_reported_again():
    look = Steps(NotifySettings(CHOICE))
    mild = replace(KL, severity=Severity.WARNING)
    assert look(replace(KL, severity=Severity.INFO)) == []
    assert [look(mild), look(mild), look(KL), look(mild), look(KL)] == [
        *(["finding kl-high"], [], ["finding kl-high"], [], []),
    ]


def test_a_finding_that_lasts_is_reported_again_after_a_time():
    look = Steps(NotifySettings(CHOICE, repeat_after=2 * HOUR))
    assert [look(KL), look(KL), look(KL), look(KL), look(KL)] == [
        *(["finding kl-high"], [], ["finding kl-high"], [], ["finding kl-high"]),
    ]


def test_what_was_there_before_is_not_reported():
    look = Steps(NotifySettings(replace(CHOICE, cleared=True), repeat_after=HOUR))
    assert look(KL, news=False) == []
    assert look(KL) == []
    other = replace(KL, id="entropy", key="entropy")
    assert look(KL, other) == ["finding entropy"]
    assert look() == ["cleared entropy"]


def test_what_the_user_has_acknowledged_is_not_reported():
    changes = Changes(NotifySettings(CHOICE, repeat_after=HOUR))
    assert (
        changes.messages(monitored(KL), NOW, is_seen=lambda _run, _finding: True) == []
    )
    assert reported(changes.messages(monitored(KL), NOW + 1)) == ["finding kl-high"]
    assert (
        changes.messages(monitored(KL), NOW + 2 * HOUR, is_seen=lambda *_: True) == []
    )


def test_json_has_the_documented_fields():
    about = {"run": "run", "finding": "kl-high", "message": ""}
    data = Message(event="finding", time=1_599_360_473.4, **about).as_data()
    assert " ".join(data) == (
        "version program id time event run run_id finding key severity state step since_step"
        " message advice repeated held_back title text"
    )
    assert data["time"] == "2020-09-06T02:47:53+00:00"
    assert data["title"] == "verl-tui: run: info: kl-high"


def test_texts_of_logs_are_made_safe_and_keys_are_hidden():
    token = "hf_" + "a1" * 15
    said = f"ValueError: \x1b[31mtoken {token}\nnext"
    finding = Finding("crash", Severity.CRITICAL, said, evidence=("a sample's text",))
    changes, run = Changes(NotifySettings(CHOICE)), f"run\u202e {token}"
    (message,) = changes.messages(monitored(finding, run=run), NOW)
    assert message.message == "ValueError: token *** next"
    assert message.run == "run\ufffd ***"
    assert "sample" not in message.text


def log(tmp_path: Path) -> Path:
    path = tmp_path / "verl_logs.jsonl"
    form = '{{"scope": "ppo", "step": {}, "kl_div": 0.03, "policy_loss": 0.1}}\n'
    path.write_text("".join(map(form.format, range(1, 21))))
    os.utime(path, (NOW, NOW))
    return path


def test_a_state_is_reported_once(tmp_path):
    path = log(tmp_path)
    states = frozenset({"running", "ended?"})
    changes = Changes(NotifySettings(Choice(None, states=states)))
    found = []
    for now in (NOW + 1, NOW + 2, NOW + 1e5):
        found += changes.messages(load([str(path)], Config(), now), now)
    assert reported(found) == ["state running", "state ended?"]
    assert found[1].message == "ended? at step 20"


def test_a_crash_is_reported_as_finding_or_as_state_not_as_both(tmp_path):
    path = tmp_path / "run.log"
    path.write_text(
        "step:1 - actor/ppo_kl:0.01\nTraceback (most recent call last):\nKeyError: 'x'\n"
    )
    os.utime(path, (NOW, NOW))
    monitor = load([str(path)], Config(), NOW + 1e5)
    settings = NotifySettings()
    assert reported(Changes(settings).messages(monitor, NOW + 1e5)) == ["finding crash"]
    only_states = NotifySettings(replace(settings.choice, severity=None))
    assert reported(Changes(only_states).messages(monitor, NOW + 1e5)) == [
        "state crashed"
    ]


# -- kept in a file -------------------------------------------------------------------------------


def notifier(
    settings: NotifySettings, *, fails: bool = False
) -> tuple[Notifier, list[Message]]:
    sent: list[Message] = []

    def deliver(message: Message) -> None:
        if fails:
            raise NotSentError("the webhook from X answers with HTTP 404")
        sent.append(message)

    to = Destination("https://host/SECRET", "VERL_TUI_NOTIFY_URL", "json")
    return Notifier(settings, to, sender=Sender(deliver)), sent


def check(
    path: Path,
    settings: NotifySettings,
    *findings: Finding,
    now: float,
    fails: bool = False,
) -> list[str]:
    """One check of a series, as cron would run it."""
    found, sent = notifier(settings, fails=fails)
    found.read_state(path)
    found.send_changes(monitored(*findings), now)
    found.close(keeps_held=True)
    found.write_state(path)
    return reported(sent)


def test_what_could_not_be_sent_is_reported_by_the_next_check(tmp_path):
    path = tmp_path / "state.json"
    settings = NotifySettings(replace(CHOICE, states=frozenset({"waiting"})))
    assert check(path, settings, KL, now=NOW, fails=True) == []
    sent = check(path, settings, KL, now=NOW + 1)
    assert sent == ["finding kl-high", "state waiting"]


KIND = '{"kind": "verl-tui notifications", "version": 1}'


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", KIND, "\xff", "[" * 9999])
def test_another_file_is_left_alone(tmp_path, text):
    path = tmp_path / "notes.txt"
    path.write_text(text, encoding="latin-1")
    wrong = r"notes\.txt: is not a file that `check --state` wrote"
    with pytest.raises(UsageError, match=wrong):
        notifier(NotifySettings())[0].read_state(path)


# -- the notifier ---------------------------------------------------------------------------------


def test_what_was_not_sent_is_counted_and_said():
    found, _ = notifier(NotifySettings(CHOICE), fails=True)
    found.send_changes(monitored(KL), NOW)
    (said,) = found.close()
    assert said.startswith("1 notification could not be sent: the webhook from X answ")
    assert found.news() == ""


@pytest.mark.parametrize(
    ("event", "message", "is_urgent"),
    [
        ({"event": "command", "argv": ["stop", "--key=s3cret"], "dry_run": False}, "runs stop", True),
        ({"event": "command", "argv": ["stop"], "dry_run": True}, "would run stop", True),
        ({"event": "command-ended", "code": 0}, "the command ended with code 0", False),
        ({"event": "command-ended", "code": 3}, "the command ended with code 3", True),
        ({"event": "best", "metric": "reward", "value": 2.5, "step": 7}, "best reward: 2.5 at step 7", False),
        ({"event": "problem", "message": "stop: no {such} file"},
         "the command could not be started: stop: no {such} file", True),
    ],
)  # fmt: skip
def test_the_guards_events_in_words(event, message, is_urgent):
    found = of_guard({"run": "run_7", **event}, NOW)
    assert (found.message, found.run) == (message, "run_7")
    assert found.severity is (Severity.CRITICAL if is_urgent else Severity.INFO)


def test_an_error_of_ours_is_reported_once_and_ends_nothing(monkeypatch):
    found, _ = notifier(NotifySettings())

    def fails(*_: object) -> None:
        raise ZeroDivisionError("no steps")

    monkeypatch.setattr(found.changes, "messages", fails)
    for expected in ("notifications fail: ZeroDivisionError in PLACE", ""):
        found.send_changes(Monitor(Config()), NOW)
        assert placed(found.news()) == expected
    found.close()
