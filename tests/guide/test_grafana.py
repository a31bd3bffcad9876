"""The Grafana dashboard: what stands in it; whether its queries answer is asked of a real Prometheus elsewhere."""

from __future__ import annotations

import json
from typing import Any

from verl_tui.guide.grafana import dashboard
from verl_tui.health import load_guide
from verl_tui.indicators import INDICATORS

BOARD: dict[str, Any] = json.loads(dashboard(load_guide()))
PANELS = {panel["title"]: panel for panel in BOARD["panels"]}


def queries(title: str) -> list[str]:
    return [target["expr"] for target in PANELS[title]["targets"]]


def test_the_four_panels_of_the_tutorials_come_first() -> None:
    titles = [panel["title"] for panel in BOARD["panels"][:4]]
    assert titles == ["Steps per minute", "Generation latency, p95", "GPU memory by device", "Average reward"]
    assert PANELS["GPU memory by device"]["fieldConfig"]["defaults"]["unit"] == "decgbytes"
    assert "histogram_quantile(0.95" in queries("Generation latency, p95")[0]


def test_every_indicator_has_a_panel() -> None:
    assert len(PANELS) == len(BOARD["panels"])
    assert {one.label.casefold() for one in INDICATORS.values()} <= {title.casefold() for title in PANELS}


def test_every_query_heeds_the_variable() -> None:
    asked = [expr for title in PANELS for expr in queries(title) if not expr.startswith("verl_exporter")]
    assert all('=~"$run' in expr for expr in asked)
    assert any("rl_insight_monitor_" in expr for expr in asked)


def test_bands_are_those_of_the_guide() -> None:
    ours, theirs, band = queries("Policy KL")
    assert ours == 'verl_indicator{run=~"$run", indicator="policy_kl"}'
    assert theirs == 'rl_insight_monitor_actor_ppo_kl{experiment_name=~"$run"}'
    assert "vector(0.1)" in band
    assert len(queries("Value loss")) == 2


def test_what_rl_insight_writes_with_the_other_sign_is_turned() -> None:
    assert queries("Log-probability")[1].endswith(" * -1")


def test_panels_do_not_overlap() -> None:
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in BOARD["panels"]]
    assert len(set(places)) == len(places)
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(places)
