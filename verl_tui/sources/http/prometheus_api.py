"""Questions to a Prometheus server, and its answers as series
(https://prometheus.io/docs/prometheus/latest/querying/api).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import orjson

from verl_tui import prometheus_names
from verl_tui.patterns import pattern
from verl_tui.sources.formats.prometheus_text.names import PrometheusSeries
from verl_tui.sources.http.addresses import NoAnswerError
from verl_tui.text import one_line

if TYPE_CHECKING:
    from verl_tui.sources.http.addresses import Address
    from verl_tui.sources.http.client import Client

_UNITS = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_PIECE = pattern(r"(\d{1,15})(ms|[smhd])")
"""A part of a duration, and its units in seconds."""


class PrometheusApi:
    """Asks one server; what cannot be used is a `NoAnswerError`."""

    def __init__(self, address: Address, client: Client) -> None:
        self.address = address
        self.client = client

    def is_there(self) -> bool:
        """Return whether the server speaks Prometheus's API.

        Raises:
            NoAnswerError: It does not answer at all.
        """
        try:
            data_of(self.client.ask(self.address.below("/api/v1/status/buildinfo")))
        except NoAnswerError as error:
            if error.status is None and not str(error).startswith("answers with"):
                raise
            return False
        return True

    def keys(self, first: float, last: float) -> dict[str, str]:
        """Return which keys of logs the names of our exporter stood for in a period, in seconds
        since the epoch.
        """
        period = [("start", f"{first:.0f}"), ("end", f"{last:.0f}")]
        form = urlencode([("match[]", prometheus_names.INFO), *period])
        found = _dicts(data_of(self._ask("/api/v1/series", form)))
        return {str(one.get("name", "")): str(one.get("key", "")) for one in found}

    def scrape_interval(self) -> float | None:
        """Return the seconds between two scrapes of the targets that are scraped most often."""
        data = data_of(self._ask("/api/v1/targets?state=active"))
        targets = _dicts(data.get("activeTargets") if isinstance(data, dict) else None)
        stated = [promql_duration(target.get("scrapeInterval")) for target in targets]
        return min(filter(None, stated), default=None)

    def range(
        self, query: str, first: float, last: float, every: float
    ) -> list[PrometheusSeries]:
        """Return the values of a query in a period, the newest moment always among them.

        Args:
            query: In PromQL.
            first: The period's begin, in seconds since the epoch.
            last: Its end.
            every: Seconds between two values.
        """
        first = last - math.floor((last - first) / every) * every
        period = {"start": f"{first:.3f}", "end": f"{last:.3f}", "step": f"{every:g}"}
        form = urlencode({"query": query, **period})
        return parsed_series(self._ask("/api/v1/query_range", form))

    def _ask(self, path: str, form: str | None = None) -> bytes:
        try:
            return self.client.ask(self.address.below(path), form=form)
        except NoAnswerError as error:
            if error.body.startswith(b"{"):
                data_of(error.body)  # says why in the server's own words
            raise


def data_of(body: bytes) -> Any:
    """Return the data in an answer of Prometheus's API.

    Raises:
        NoAnswerError: It reports an error, or is not an answer of the API.
    """
    try:
        answer = orjson.loads(body)
    except ValueError as error:
        kind = "a web page" if b"<html" in body[:2000].lower() else "something else"
        raise NoAnswerError(
            f"answers with {kind} in place of Prometheus's JSON"
        ) from error
    if not isinstance(answer, dict) or answer.get("status") not in ("success", "error"):
        raise NoAnswerError("answers with JSON that is not Prometheus's")
    if answer["status"] == "error":
        raise NoAnswerError(f"cannot answer: {one_line(str(answer.get('error')), 160)}")
    return answer.get("data")


def parsed_series(body: bytes) -> list[PrometheusSeries]:
    """Return the series of an answer to a range query; invalid entries are left out.

    Raises:
        NoAnswerError: It is none.
    """
    data = data_of(body)
    result = data.get("result") if isinstance(data, dict) else None
    if not isinstance(result, list):
        raise NoAnswerError("answers with JSON that is not Prometheus's")
    return [series for one in result if (series := _series(one)) is not None]


def _series(entry: Any) -> PrometheusSeries | None:
    try:
        points = dict(entry["values"])
        labels = {str(name): str(value) for name, value in entry["metric"].items()}
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    if not set(map(type, points)) <= {int, float}:
        return None
    return PrometheusSeries(labels.pop("__name__", ""), labels, points)


def _dicts(data: object) -> list[dict[Any, Any]]:
    return (
        [one for one in data if isinstance(one, dict)] if isinstance(data, list) else []
    )


def promql_duration(text: object) -> float | None:
    """Return a duration as Prometheus writes it: `15s`, `1m`, `1m30s`, `500ms`."""
    pieces = _PIECE.findall(text) if isinstance(text, str) else []
    if "".join(map("".join, pieces)) != text:
        return None
    return sum(int(number) * _UNITS[unit] for number, unit in pieces) or None
