"""The run as rules see it, prepared once per judgement."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.means import finite
from verl_tui.metrics import modern
from verl_tui.runs.time.forecast import pace
from verl_tui.runs.time.step_clocks import logged_seconds
from verl_tui.runs.views.state import State, state
from verl_tui.toml_tables import toml_table
from verl_tui.words import counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from verl_tui.health.guide import Guide, Rule
    from verl_tui.runs.run import Run
    from verl_tui.runs.series import Series

METRICS = {
    what: tuple(names.split())
    for what, names in toml_table(__file__, "metrics.toml").items()
}
"""What trainers call the metrics that exemptions and diagnoses look for."""


class RuleContext(NamedTuple):
    """A run as it is judged at one time, with its state and names."""

    run: Run
    guide: Guide
    now: float
    """Seconds since the epoch."""
    state: State
    indicators: dict[str, str]
    names: Mapping[str, str]
    """verl's present name, and the log's own key itself -> the log's own key."""
    end: int | None
    """Step that the newest segment of a restarted run has reached: what lies beyond was abandoned.
    None = no end.
    """
    rule: Rule
    """The rule that judges, the first one before any does."""
    key: str = ""
    """The metric that is judged, for exemptions."""

    @property
    def step_seconds(self) -> float:
        """The usual seconds from one step to the next, 0 where they are unknown."""
        usual = pace(self.run)
        return usual.seconds if usual else 0.0

    def duration(self, since: int, step: int) -> str:
        """Return how many steps a stretch has, and how long they took: `35 steps (40 min)` by the
        log, `≈` where the usual pace stands in for some.
        """
        before = since - 1
        dated, seconds = logged_seconds(self.run, before, step)
        seconds += (dated - before) * self.step_seconds
        about = "≈ " if dated > before else ""
        long = f" ({about}{minutes(seconds)})" if seconds else ""
        return counted(step - before, "step") + long

    def key_of(self, indicator: str, metrics: Sequence[str]) -> str | None:
        """Return the log's own key of an indicator, or of a metric if no indicator is named."""
        if indicator:
            return self.indicators.get(indicator)
        return self.first_key(metrics)

    def first_key(self, metrics: Sequence[str]) -> str | None:
        """Return the log's own key of the first of several metrics that it has."""
        return next(filter(None, map(self.names.get, metrics)), None)

    def known(self, name: str | None) -> Series | None:
        """Return the values of a metric, by its key or by verl's present name, up to the step
        `end`; None where there are none.
        """
        series = self.run.series(self.names.get(name or "", ""))
        return (series.until(self.end) or None) if series else None

    def indicator(self, id: str) -> Series | None:
        """Return the values of an indicator up to the step `end`, None where there are none."""
        return self.known(self.indicators.get(id))

    def finite(self, name: str | None, newest: int = 0) -> list[float]:
        """Return the numbers among the values of `known`, or among so many newest ones."""
        series = self.known(name)
        return [] if series is None else finite(series.values[-newest:])

    def at(self, step: int) -> RuleContext:
        """Return the context with the numbers known at a step; settings, names and state are those
        of now.
        """
        return self._replace(end=step)


def rule_context(run: Run, guide: Guide, now: float) -> RuleContext:
    """Return the context of a run now.

    Args:
        run: The run.
        guide: The rules in force.
        now: Seconds since the epoch.
    """
    return RuleContext(
        run,
        guide,
        now,
        state(run, now),
        run.indicators,
        present_names(run.keys),
        run.end,
        guide.rules[0],
    )


@lru_cache(256)
def present_names(keys: tuple[str, ...]) -> Mapping[str, str]:
    """Return verl's present name of each key, and the key itself -> the key."""
    # Called at each judgement, while keys hardly ever change.
    names: dict[str, str] = {}
    for key in keys:
        names.setdefault(modern(key), key)
    # Where two keys mean the same, the present name itself wins.
    return names | {key: key for key in keys}


def minutes(seconds: float) -> str:
    """Return a rough duration: `0.5 s`, `50 s`, `40 min`, `3.5 h`, `2.1 days`."""
    if seconds < 9.95:
        return f"{seconds:.2g} s"
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 120 * 60:
        return f"{seconds / 60:.0f} min"
    if seconds < 48 * 3600:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 86400:.1f} days"
