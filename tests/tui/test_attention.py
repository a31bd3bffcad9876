"""Acknowledged findings, news, and the words to whoever does not look."""

from __future__ import annotations

import pytest

from verl_tui.config import Config
from verl_tui.health import Finding, Severity
from verl_tui.tui.attention import Attention
from verl_tui.tui.notice import notices


def finding(id: str = "kl-high", since: int = 5, severity: Severity = Severity.WARNING, message: str = "m") -> Finding:
    return Finding(id, severity, message, since_step=since, key="k")


def test_acknowledged_until_raised_anew_or_worse() -> None:
    attention = Attention()
    attention.toggle("run", finding())
    assert attention.acknowledged("run", finding(message="other numbers"))
    assert not attention.acknowledged("other", finding())
    assert not attention.acknowledged("run", finding(since=50))
    assert not attention.acknowledged("run", finding(severity=Severity.CRITICAL))
    assert list(attention.open("run", [finding(), finding("hang")])) == [finding("hang")]
    attention.toggle("run", finding())
    assert not attention.acknowledged("run", finding())


def test_what_is_news() -> None:
    attention = Attention()
    assert not attention.news([("run", finding())]), "what lay on disk is none"
    assert not attention.news([("run", finding(message="other numbers"))])
    assert attention.news([("run", finding()), ("run", finding("hang"))]) == [("run", finding("hang"))]
    assert not attention.news([("run", finding("hang"))])
    assert attention.news([("run", finding(since=90))]) == [("run", finding(since=90))]
    attention.toggle("run", finding("crash"))
    assert not attention.news([("run", finding("crash"))])


CRITICAL = finding("hang", severity=Severity.CRITICAL, message="no\x1b[31m step; for\n9 min")


@pytest.mark.parametrize(
    ("config", "tmux", "said"),
    [
        (Config(), "", ""),
        (Config(bell=True), "", "\a"),
        (Config(notify="osc9"), "", "\x1b]9;run: hang: no step; for 9 min\a"),
        (Config(notify="osc777"), "", "\x1b]777;notify;verl-tui;run: hang: no step, for 9 min\a"),
        (Config(notify="osc9"), "/tmp/x", "\x1bPtmux;\x1b\x1b]9;run: hang: no step; for 9 min\a\x1b\\"),
        (Config(bell=True, notify="osc9"), "", "\a\x1b]9;run: hang: no step; for 9 min\a"),
    ],
)
def test_notices(config: Config, tmux: str, said: str) -> None:
    assert notices([("run", CRITICAL)], config, {"TMUX": tmux}) == said
    assert notices([("run", finding())], config, {}) == "", "a warning, and only criticals are asked for"


def test_notices_of_warnings() -> None:
    both = [("run", finding()), ("run", CRITICAL)]
    assert notices(both, Config(notify="osc9", notify_from="warning"), {}).count("\x1b]9;") == 2
    assert notices(both, Config(bell=True, notify_from="warning"), {}) == "\a", "once is enough"
