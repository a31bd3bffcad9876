"""The metrics of a run: its log's keys, their values, and what they mean."""

from __future__ import annotations

from math import isclose
from operator import itemgetter
from typing import TYPE_CHECKING

from verl_tui.distributions import DistributionKeys, one_each, spreads
from verl_tui.indicators import dialect, loss_alone, resolve
from verl_tui.patterns import NamePattern
from verl_tui.runs.cached import cached_by_keys, cached_by_revision
from verl_tui.runs.series import Series, merged
from verl_tui.runs.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from verl_tui.records import MetricRows


_ENOUGH = 8
"""Rows from which a value may be called constant: with fewer it is unknown."""
_SINGLE = 2.0**-23
"""Logs of one run may differ by so much of a value: event files round to 24 bits."""


class LoggedMetrics:
    """The metrics that a run's sources have logged; only those that are looked at become series."""

    def __init__(self) -> None:
        self._tables: dict[str, list[tuple[Table, int]]] = {}
        self._names: dict[str, str] = {}
        """Spelling -> the name of its metric: of two spellings the first that came."""
        self._paths: dict[str, str] = {}
        """The source in which each spelling came first."""
        self._series: dict[str, Series] = {}
        self.keys_revision = 0
        """Grows with every new key."""

    def add_table(self, rows: MetricRows, path: str) -> Table:
        """Return a new table, known by the names of its keys.

        Args:
            rows: The first that it will hold.
            path: Of their source.
        """
        table = Table(rows.keys, mean=rows.mean, estimated=rows.estimated)
        for column, key in enumerate(rows.keys):
            if key not in self._names:
                other = _other(key)
                # A source with both spellings means two metrics.
                same = self._paths.get(other, path) != path
                self._names[key] = self._names[other] if same else key
                self._paths[key] = path
            name = self._names[key]
            if name not in self._tables:
                self._tables[name] = []
                self.keys_revision += 1
            self._tables[name].append((table, column))
        return table

    @property
    @cached_by_keys
    def keys(self) -> tuple[str, ...]:
        """The log's own metric keys, in the order of first appearance; for two spellings of one
        metric, the first.
        """
        return tuple(self._tables)

    @property
    @cached_by_keys
    def spreads(self) -> Mapping[str, DistributionKeys]:
        """The distributions among the metrics, by the key of what is drawn of them as a line."""
        return {spread.line: spread for spread in spreads(self._tables).values()}

    @property
    @cached_by_keys
    def metrics(self) -> Sequence[str]:
        """The keys that are metrics of their own: of a distribution, only the key of its line."""
        return tuple(one_each(self._tables))

    @property
    def non_finite(self) -> Sequence[str]:
        """Keys that have had a value that is not finite."""
        return [
            key
            for key, parts in self._tables.items()
            if not all(table.is_finite(at) for table, at in parts)
        ]

    @property
    def constants(self) -> frozenset[str]:
        """Keys that have had only one value, in several rows."""
        return frozenset(filter(self.is_constant, self._tables))

    def is_constant(self, key: str) -> bool:
        """Return whether one of the keys is among the `constants`.

        Values count that a restart or a better log has replaced, too.
        """
        columns = [table.columns[at] for table, at in self._tables[key] if len(table)]
        enough = max(map(len, columns), default=0) >= _ENOUGH
        # Another log may hold the same value rounded.
        return enough and all(
            column[0] == column[-1]
            and column.count(column[0]) == len(column)
            and isclose(column[0], columns[0][0], rel_tol=_SINGLE)
            for column in columns
        )

    @property
    @cached_by_revision
    def logged_once(self) -> frozenset[str]:
        """Keys that have been logged at one step only."""
        return frozenset(
            key
            for key, parts in self._tables.items()
            if len({step for table, _ in parts if len(table) for step in table.span})
            == 1
        )

    @property
    @cached_by_keys
    def dialect(self) -> str:
        """Whose names the log uses: `tutorial`, `verl` or `other`."""
        return dialect(self._tables)

    @property
    @cached_by_keys
    def indicators(self) -> dict[str, str]:
        """Indicator id -> the log's own key."""
        return resolve(self._tables)

    @property
    @cached_by_keys
    def meanings(self) -> dict[str, str]:
        """The log's own key -> indicator id."""
        return {key: indicator for indicator, key in self.indicators.items()}

    @property
    @cached_by_keys
    def loss_alone(self) -> str | None:
        """The loss of a training without rewards, whose fall is what it learns."""
        return loss_alone(self._tables)

    def series(self, key: str) -> Series | None:
        """Return the values of a metric by any of its spellings, None where the log has no such
        key.
        """
        key = self._names.get(key, key)
        tables = self._tables.get(key)
        if not tables:
            return None
        series = self._series.get(key)
        if series is None:
            series = self._series[key] = Series(key)
        series.catch_up(tables)
        return series

    def forget_series(self) -> None:
        """Forget all series; one that is asked for again is rebuilt from what was logged."""
        self._series.clear()

    def measured(self, key: str, count: int, *, times: bool = False) -> Sequence[float]:
        """Return the last `count` values of a metric as they were measured, or when they were: of
        several in one step each.
        """
        parts = self._tables.get(self._names.get(key, key), ())
        stated = [part for part in parts if not part[0].estimated]
        rows: list[tuple[int, float]] = []
        for table, at in (stated or parts) if count > 0 else ():
            values = table.times if times else table.columns[at]
            rows += zip(table.orders[-count:], values[-count:], strict=True)
        return [value for _, value in sorted(rows, key=itemgetter(0))[-count:]]

    def precedences(self) -> Iterator[int]:
        """Yield the highest precedence among the rows of each metric, see
        `verl_tui.runs.table.precedence`.
        """
        for tables in self._tables.values():
            yield max(table.orders[0] for table, _ in tables if len(table))

    def orders(self, key: str) -> Sequence[int]:
        """Return the precedence of each point of a metric."""
        parts = self._tables.get(self._names.get(key, key))
        return merged(parts)[0].orders if parts else ()

    def indicator(self, indicator: str) -> Series | None:
        """Return the values of an indicator, None where the log has nothing of that meaning."""
        return self.series(self.indicators.get(indicator, ""))


_TRAIN, _SPLIT = NamePattern(r"train/(.+)"), NamePattern(r"(eval|test)([/_])(.+)")


def _other(key: str) -> str:
    """Return the other spelling of a metric: trainers report what they call `loss` and `eval_loss`
    as `train/loss` and `eval/loss`.
    """
    if found := _SPLIT.fullmatch(key):
        return f"{found[1]}{'_' if found[2] == '/' else '/'}{found[3]}"
    found = _TRAIN.fullmatch(key)
    return found[1] if found else f"train/{key}"
