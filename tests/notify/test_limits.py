"""Never more messages than so many an hour, in quiet hours none but critical ones, and none lost."""

from __future__ import annotations

from datetime import datetime

from hypothesis import given
from hypothesis import strategies as st

from verl_tui.health.finding import Severity
from verl_tui.notify.message import Message
from verl_tui.notify.notify_settings import Limits, NotifySettings, QuietHours

DAY = 1440
MINUTES = st.integers(0, DAY - 1)


def message(severity: Severity = Severity.WARNING, run: str = "run_1") -> Message:
    about = {"run": run, "finding": "kl-high", "key": None, "severity": severity}
    return Message(event="finding", time=0.0, message="KL is high", **about)


def clock(minute: int) -> str:
    return f"{minute // 60}:{minute % 60:02}"


def quiet_hours(begin: int, end: int) -> QuietHours:
    return QuietHours.of(f"{clock(begin)}-{clock(end)}")


def at(minute: int) -> float:
    """A time of a day on which no clock is changed."""
    return datetime(2026, 1, 15, minute // 60, minute % 60).timestamp()  # noqa: DTZ001


@given(MINUTES, MINUTES, MINUTES)
def test_quiet_hours_are_the_minutes_from_begin_to_end(begin, end, minute):
    if begin == end:
        return
    hours = quiet_hours(begin, end)
    now = at(minute)
    assert hours.contain(now) == ((minute - begin) % DAY < (end - begin) % DAY)
    # the other way round is the rest
    assert hours.contain(now) != quiet_hours(end, begin).contain(now)


SEVERITIES = st.lists(st.sampled_from(list(Severity)), max_size=6)
LOOKS = st.lists(st.tuples(st.floats(0.0, 4000.0), SEVERITIES), max_size=40)


@given(LOOKS, st.integers(1, 5), st.booleans(), st.none() | st.tuples(MINUTES, MINUTES))
def test_any_messages_at_any_times(looks, per_hour, critical_passes, span):
    quiet = None if span is None or span[0] == span[1] else quiet_hours(*span)
    passes = {"critical_passes": critical_passes}
    limits = Limits(NotifySettings(per_hour=per_hour, quiet=quiet, **passes))
    now, sent, given_in, passed_on = 0.0, [], 0, 0
    for wait, severities in looks:
        now += wait
        given_in += len(severities)
        for one in limits.due([message(severity) for severity in severities], now):
            sent.append(now)
            passed_on += sum(one.held_back.values()) or 1
            if quiet is not None and quiet.contain(now):
                assert critical_passes
                assert one.severity is Severity.CRITICAL
        assert passed_on + limits.waiting == given_in
    for time in sent:
        assert sum(time - 3600 < other <= time for other in sent) <= per_hour


def test_what_is_beyond_the_limit_of_an_hour_is_summed_up():
    limits = Limits(NotifySettings(per_hour=2))
    assert len(limits.due([message(run=f"run_{i}") for i in range(5)], 0.0)) == 2
    assert limits.due([], 3599.0) == []
    (summed,) = limits.due([], 3600.0)
    assert (summed.event, summed.severity) == ("summary", Severity.WARNING)
    assert sum(summed.held_back.values()) == 3
    assert summed.message == "run_2: kl-high, run_3: kl-high, run_4: kl-high"
    assert summed.title == "verl-tui: 3 held back"


def test_a_clock_that_is_set_back_holds_nothing_back():
    limits = Limits(NotifySettings(per_hour=1))
    assert limits.due([message()], 1e9)
    assert limits.due([message()], 1e6)
