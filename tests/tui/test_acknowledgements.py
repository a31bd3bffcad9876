"""Acknowledged findings, news, and the words to whoever does not look."""

from __future__ import annotations

import pytest

from verl_tui.config import Config
from verl_tui.health.finding import Episode, Finding, Severity, Verdict
from verl_tui.notify.message import Message
from verl_tui.rendering.session.acknowledgements import Acknowledgements
from verl_tui.tui.monitor_app import notices


def finding(id="kl-high", since=5, severity=Severity.WARNING, message="m"):
    return Finding(id, severity, message, since_step=since, key="k")


# -- acknowledging ---------------------------------------------------------------------------------


def test_acknowledged_until_raised_anew_or_worse():
    acknowledgements = Acknowledgements()
    assert acknowledgements.toggle("run", finding())
    assert acknowledgements.acknowledged("run", finding(message="other numbers"))
    assert not acknowledgements.acknowledged("other", finding())
    assert not acknowledgements.acknowledged("run", finding(since=50))
    assert not acknowledgements.acknowledged("run", finding(severity=Severity.CRITICAL))
    assert not acknowledgements.acknowledged("run", finding("hang"))
    assert not acknowledgements.toggle("run", finding())
    assert not acknowledgements.acknowledged("run", finding())


def test_what_was_cleared_is_no_longer_acknowledged_though_it_comes_back_at_the_same_step():
    acknowledgements = watching("run")
    crash = finding("crash", None)
    acknowledgements.toggle("run", crash)
    assert acknowledgements.acknowledged("run", crash)
    look(acknowledgements, 11.0)
    assert not acknowledgements.acknowledged("run", crash)


@pytest.mark.parametrize("key", ["k", None])
def test_history_marks_what_was_acknowledged_even_when_it_is_over(key):
    acknowledgements = watching("run")
    episode = Episode("kl-high", Severity.WARNING, 5, 9, key=key)
    assert not acknowledgements.marked("run", episode)
    acknowledgements.toggle("run", finding())
    look(acknowledgements, 11.0)
    assert acknowledgements.marked("run", episode)
    assert not acknowledgements.marked("other", episode)
    assert not acknowledgements.marked(
        "run", Episode("kl-high", Severity.WARNING, 50, 60, key=key)
    )
    acknowledgements.toggle("run", finding())
    acknowledgements.toggle("run", finding())
    assert not acknowledgements.marked("run", episode)


# -- news ------------------------------------------------------------------------------------------


def look(acknowledgements, now, *found):
    """Return whether new findings are news once the run has been judged."""
    acknowledgements.note_judged({"run": Verdict(found)}, now)
    return acknowledgements.watched("run")


def watching(run):
    """Return what there is after a run was read, and looked at twice."""
    acknowledgements = Acknowledgements()
    acknowledgements.old(run, 0.0)
    assert not look(acknowledgements, 0.1)
    assert look(acknowledgements, 10.0)
    return acknowledgements


def test_findings_are_news_once_a_run_was_read_and_judged():
    acknowledgements = watching("run")
    acknowledgements.old("run", 11.0)
    assert look(acknowledgements, 11.1), "what is watched stays so"
    assert not acknowledgements.watched("other")
    acknowledgements.start_over()
    acknowledgements.old("run", 20.0)
    assert [look(acknowledgements, now) for now in (20.1, 21.0, 22.1)] == [
        False,
        False,
        True,
    ]


# -- words -----------------------------------------------------------------------------------------


def message(finding, words, **more):
    event = "finding" if finding else "state"
    return Message(
        time=0.0, event=event, run="run", finding=finding, message=words, **more
    )


HANG = message("hang", "no\x1b[31m step; for\n9 min\x07\x9c")
SAID = "run: hang: no step, for 9 min␇�"


@pytest.mark.parametrize(
    ("config", "tmux", "said"),
    [
        (Config(), "", ""),
        (Config(bell=True), "", "\a"),
        (Config(desktop="osc9"), "", f"\x1b]9;{SAID}\a"),
        (Config(desktop="osc777"), "", f"\x1b]777;notify;verl-tui;{SAID}\a"),
        (Config(desktop="osc9"), "/tmp/x", f"\x1bPtmux;\x1b\x1b]9;{SAID}\a\x1b\\"),
        (Config(bell=True, desktop="osc9"), "", f"\a\x1b]9;{SAID}\a"),
        (
            Config(bell=True, desktop="osc9"),
            "/tmp/x",
            f"\a\x1bPtmux;\x1b\x1b]9;{SAID}\a\x1b\\",
        ),
    ],
)
def test_notices(config, tmux, said):
    assert notices([HANG], config, {"TMUX": tmux}) == said
    assert notices([], config, {}) == ""


def test_notices_never_come_in_heaps_and_are_not_long():
    many = [message(f"rule-{n}", "x" * 5000) for n in range(20)]
    said = notices(many, Config(bell=True, desktop="osc9"), {}).split("\x1b]9;")
    assert said[0] == "\a"
    assert len(said) == 5
    assert said[-1].startswith("17 more, the first of them run: rule-3: xxx")
    assert max(map(len, said)) <= 210
