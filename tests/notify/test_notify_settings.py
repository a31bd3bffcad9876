"""The table [notify]: every setting, and sentences where one makes no sense."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from verl_tui.config import Config, documented_defaults
from verl_tui.health.finding import Finding, Severity
from verl_tui.notify.notify_settings import (
    Choice,
    NotifySettings,
    QuietHours,
    parse_settings,
)

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

KNOWN = {"kl-high", "hang", "crash"}


def wants(choice: Choice, id: str, severity: Severity) -> bool:
    return choice.wants(Finding(id, severity, ""))


def test_an_empty_table_is_the_default():
    assert parse_settings(Config().notify, KNOWN) == NotifySettings()


def test_every_setting_is_read():
    text = """
        severity = "warning"
        states = ["crashed", "ended?"]
        cleared = true
        repeat_after = 90
        per_hour = 5
        quiet = "22:00-07:30"
        critical_passes = false
        commands = ["guard"]
        guard = ["tripped", "best"]
        preset = "json"
        file = "/etc/address.toml"
        [runs."debug_*"]
        severity = "none"
        states = []
        [runs.main]
        ids = ["hang"]
    """
    found = parse_settings(tomllib.loads(text), KNOWN)
    assert found.choice.severity is Severity.WARNING
    assert found.choice.cleared
    assert (found.repeat_after, found.per_hour) == (5400.0, 5)
    assert (found.quiet, found.critical_passes) == (
        QuietHours.of("22:00-7:30"),
        False,
    )
    assert (found.commands, found.guard) == ({"guard"}, {"tripped", "best"})
    assert (found.preset, found.file) == ("json", Path("/etc/address.toml"))
    debug, main, other = map(found.choice_for, ("debug_7", "main", "other"))
    assert not wants(debug, "crash", Severity.CRITICAL)
    assert debug.states == frozenset()
    assert wants(main, "hang", Severity.INFO)
    assert not wants(main, "crash", Severity.CRITICAL)
    assert main.states == other.states == {"crashed", "ended?"}
    assert wants(other, "kl-high", Severity.WARNING)
    assert not wants(other, "kl-high", Severity.INFO)


def test_the_example_of_the_manual_is_understood():
    text = documented_defaults()
    start = text.index("#[notify]")
    example = text[start : text.index("\n# ", start)]
    table = tomllib.loads(
        "\n".join(line.removeprefix("#") for line in example.splitlines())
    )
    settings = parse_settings(table["notify"], KNOWN)
    assert not wants(settings.choice_for("debug_1"), "crash", Severity.CRITICAL)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"severty": "info"}, "unknown key `notify.severty`; did you mean severity?"),
        (
            {"url": "https://SECRET"},
            "unknown key `notify.url`; an address and what gives access stand in the environment or in `file` only",
        ),
        ({"severity": "bad"}, "`notify.severity` must be one of none, info, warning, critical"),
        ({"severity": ["info"]}, "`notify.severity` must be one of none, info, warning, critical"),
        ({"ids": "hang"}, "`notify.ids` must be a list of texts"),
        ({"ids": ["hangs"]}, "`notify.ids`: no finding is called hangs; did you mean hang?"),
        ({"cleared": 1}, "`notify.cleared` must be true or false"),
        ({"repeat_after": 0}, "`notify.repeat_after` must be a number of minutes, at least 1"),
        ({"repeat_after": True}, "`notify.repeat_after` must be a number of minutes, at least 1"),
        ({"per_hour": 1.5}, "`notify.per_hour` must be a whole number, at least 1"),
        ({"quiet": "at night"}, "`notify.quiet` must be two times of the day, such as 22:00-07:30"),
        ({"commands": ["check"]}, "`notify.commands` must be a list of watch, guard"),
        ({"file": ""}, "`notify.file` must be the path of a file"),
        (
            {"runs": {"a": {"per_hour": 3}}},
            'unknown key `notify.runs."a".per_hour`; known are severity, ids, states, cleared',
        ),
        ({"runs": 3}, "`notify.runs` must be a table with a table for each pattern of names"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_said(table, message):
    with pytest.raises(ValueError, match=r".") as caught:
        parse_settings(table, KNOWN)
    assert str(caught.value).partition(", not ")[0] == message
    assert "SECRET" not in str(caught.value)
