"""The topics of `verl-tui help`: pages that are installed beside the code, and pages made from the
declarations that the program itself uses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from verl_tui.config import Config
    from verl_tui.indicators import Indicator


class Topic(NamedTuple):
    """A subject that there is help on."""

    words: str
    """A line for the list of topics."""
    page: Callable[[Config], str]
    """Returns the page in Markdown."""


def _beside(folder: str) -> Callable[[Config], str]:
    def page(_config: Config) -> str:
        from verl_tui import pages

        return pages.page(folder)

    return page


def _keys(config: Config) -> str:
    from verl_tui.tui.all_keys import all_keys

    return all_keys(config.keys)


def ascii_only(config: Config) -> bool:
    """Return whether pages are for a terminal that shows only ASCII."""
    from verl_tui.rendering.text.ascii_table import ascii_locale

    if config.ascii is not None:
        return config.ascii
    return ascii_locale()


def _configuration(_config: Config) -> str:
    from verl_tui.config import documented_defaults

    head = (
        "# Configuration\n\n`verl-tui config` prints where the file is: `config.toml` in your "
        "configuration directory, `$VERL_TUI_CONFIG`, or `--config FILE`. These are all settings "
        "with their defaults:\n\n"
    )
    return f"{head}```\n{documented_defaults()}```\n"


def _metrics(_config: Config) -> str:
    from verl_tui.indicators import INDICATORS
    from verl_tui.pages import page_table

    every = INDICATORS.values()
    meanings = ((one.id, one.label, one.unit, _direction(one)) for one in every)
    names = ((one.id, _names(one)) for one in every)
    head = (
        "# Indicators\n\nMetrics that several frameworks log under names of their own. The ids can "
        "stand wherever a metric is named: in the configuration, in `--best-by`, in `--on-best`, "
        "in rules of your own."
    )
    parts = (
        head,
        page_table(("id", "means", "unit", "direction"), meanings),
        "## Names in logs",
        "Of several names in one log the first of the list is taken.",
        page_table(("id", "names in logs"), names),
    )
    return "\n\n".join(parts) + "\n"


def describe_indicator(id: str) -> str:
    """Describe an indicator, one fact per line."""
    from verl_tui.health.guide_settings import load_guide
    from verl_tui.indicators import INDICATORS

    one = INDICATORS[id]
    judged = dict.fromkeys(
        rule.id for rule in load_guide().rules if rule.indicator == id
    )
    facts = {
        "unit": one.unit,
        "direction": _direction(one),
        "names in logs": _names(one),
        "judged by": ", ".join(judged),
    }
    lines = (f"    {fact}: {words}" for fact, words in facts.items() if words)
    return "\n".join((f"{one.id} ({one.label})", *lines))


def _direction(one: Indicator) -> str:
    words = {
        "up": "more is better",
        "down": "less is better",
        "near": "has a healthy band",
    }
    return words.get(one.direction, "")


def _names(one: Indicator) -> str:
    from verl_tui.indicators import spellings

    return (
        ", ".join(spellings(one.id))
        or "scores below val-core/, val/, eval/ and the like"
    )


TOPICS: Mapping[str, Topic] = {
    "keys": Topic(
        "every key, with the ones you have set, and the signs in charts", _keys
    ),
    "screens": Topic("the screens and what their keys do, in words", _beside("tui")),
    "formats": Topic(
        "what is read, how it is recognised, what it gives", _beside("sources")
    ),
    "states": Topic(
        "running, stalled, crashed: how they are recognised", _beside("runs")
    ),
    "rules": Topic("the health rules and diagnoses", _beside("health")),
    "metrics": Topic("indicators, and their names in logs", _metrics),
    "configuration": Topic("every setting with its default", _configuration),
    "commands": Topic(
        "commands without a screen: exit codes, JSON fields, CSV columns",
        _beside("commands"),
    ),
}
"""Name -> topic, in the order of the list."""
