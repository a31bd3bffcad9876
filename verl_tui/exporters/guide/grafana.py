"""A Grafana dashboard: the panels of `grafana.toml`, and one for each indicator with its band."""

from __future__ import annotations

import json
from string import ascii_uppercase
from typing import TYPE_CHECKING

from verl_tui import prometheus_names as names
from verl_tui.exporters.guide.alerts import RL_INSIGHT
from verl_tui.indicators import INDICATORS, Indicator, dialect, factor, spellings
from verl_tui.prometheus_names import named
from verl_tui.toml_tables import toml_table

if TYPE_CHECKING:
    from verl_tui.health.guide import Guide
    from verl_tui.plain_data import Data

_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_THEIRS = 'experiment_name=~"$run"'
_WIDTH, _HEIGHT, _COLUMNS = 6, 8, 4
_UNITS = {"s": "s", "share": "percentunit", "percent": "percentunit", "tokens": "short"}
"""Unit of an indicator -> Grafana's name of its base unit."""


def dashboard(guide: Guide) -> str:
    """Return the dashboard as JSON, to be imported as it is.

    Args:
        guide: Bands are those of the rules in force.
    """
    table = toml_table(__file__, "grafana.toml")
    panels = [
        *table["panels"],
        *(_indicator(one, guide) for one in INDICATORS.values()),
    ]
    lines = table["lines_of_bands"]
    drawn = [_drawn(number, panel, lines) for number, panel in enumerate(panels)]
    return json.dumps({**table["board"], "panels": drawn}, indent=2, ensure_ascii=False)


def _indicator(indicator: Indicator, guide: Guide) -> Data:
    """Return the panel of an indicator, as `grafana.toml` has them."""
    which = f'run=~"$run", indicator="{indicator.id}"'
    queries = [(f"{names.INDICATOR}{{{which}}}", "{{run}}")]
    theirs = _key_of_verl(indicator)
    if theirs is not None:
        queries.append((theirs, "{{experiment_name}}"))
    if any(band.indicator == indicator.id for band in guide.bands):
        queries.append((f"{names.BAND}{{{which}}}", "{{run}} band, {{bound}}"))
    unit = _UNITS.get(indicator.unit, "short")
    return {"title": indicator.label, "unit": unit, "queries": queries}


def _key_of_verl(indicator: Indicator) -> str | None:
    if indicator.id == "validation":
        return f'{{__name__=~"{RL_INSIGHT}val_core_.+", {_THEIRS}}}'
    keys = (one for one in spellings(indicator.id) if dialect((one,)) == "verl")
    key = next(keys, None)
    if key is None:
        return None
    times = named(key).factor * factor(indicator.id, key)
    flat = "".join(one if one.isalnum() else "_" for one in key)
    scaled = f" * {times:g}" if times != 1 else ""
    return f"{RL_INSIGHT}{flat}{{{_THEIRS}}}{scaled}"


def _drawn(number: int, panel: Data, lines: object) -> Data:
    """Return a panel in Grafana's fields; `lines`: how bands are drawn."""
    row, column = divmod(number, _COLUMNS)
    x, y = column * _WIDTH, row * _HEIGHT
    targets = [
        {"refId": id, "datasource": _SOURCE, "expr": expr, "legendFormat": legend}
        for id, (expr, legend) in zip(ascii_uppercase, panel["queries"], strict=False)
    ]
    return {
        "id": number + 1,
        "type": panel.get("kind", "timeseries"),
        "title": panel["title"][:1].upper() + panel["title"][1:],
        "description": panel.get("words", ""),
        "datasource": _SOURCE,
        "gridPos": {"x": x, "y": y, "w": _WIDTH, "h": _HEIGHT},
        "fieldConfig": {
            "defaults": {"unit": panel.get("unit", "short")},
            "overrides": [lines],
        },
        "options": {},
        "targets": targets,
    }
