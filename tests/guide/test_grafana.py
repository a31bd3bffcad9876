"""The Grafana dashboard: what stands in it; whether its queries answer is asked of a real
Prometheus elsewhere.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from verl_tui.exporters.guide import dashboard
from verl_tui.health.guide_settings import load_guide
from verl_tui.indicators import INDICATORS

if TYPE_CHECKING:
    from collections.abc import Iterator

BOARD: dict[str, Any] = json.loads(dashboard(load_guide()))
PANELS = {panel["title"]: panel for panel in BOARD["panels"]}


UNMODELLED = ["templating.list.1.definition"]
"""What Grafana's pages write of a variable's query, and its model does not have."""


def queries(title: str) -> list[str]:
    return [target["expr"] for target in PANELS[title]["targets"]]


def test_the_four_panels_of_the_tutorials_come_first():
    titles = [panel["title"] for panel in BOARD["panels"][:4]]
    assert titles == [
        "Steps per minute",
        "Generation latency, p95",
        "GPU memory by device",
        "Average reward",
    ]
    assert (
        PANELS["GPU memory by device"]["fieldConfig"]["defaults"]["unit"] == "decgbytes"
    )
    assert "histogram_quantile(0.95" in queries("Generation latency, p95")[0]


def test_every_indicator_has_a_panel():
    assert len(PANELS) == len(BOARD["panels"])
    assert {one.label.casefold() for one in INDICATORS.values()} <= {
        title.casefold() for title in PANELS
    }


def test_bands_are_those_of_the_guide():
    ours, theirs, band = queries("Policy KL")
    assert ours == 'verl_indicator{run=~"$run", indicator="policy_kl"}'
    assert theirs == 'rl_insight_monitor_actor_ppo_kl{experiment_name=~"$run"}'
    assert band == 'verl_indicator_band{run=~"$run", indicator="policy_kl"}'
    assert len(queries("Value loss")) == 2


def test_what_rl_insight_writes_with_the_other_sign_is_turned():
    assert queries("Log-probability")[1].endswith(" * -1")


def test_grafanas_own_model_reads_all_of_it():
    models = pytest.importorskip(
        "grafana_foundation_sdk.models.dashboard", reason="needs grafana-foundation-sdk"
    )
    from grafana_foundation_sdk.cog.encoder import JSONEncoder
    from grafana_foundation_sdk.cog.plugins import register_default_plugins

    register_default_plugins()
    read = json.loads(JSONEncoder().encode(models.Dashboard.from_json(BOARD)))
    assert list(lost(BOARD, read)) == UNMODELLED


def lost(written: object, read: object, place: str = "") -> Iterator[str]:
    """Yield the places of what was written and has not been read as it was."""
    if isinstance(written, dict) and isinstance(read, dict):
        pairs = [
            (str(key), value, read.get(key, Ellipsis)) for key, value in written.items()
        ]
    elif (
        isinstance(written, list)
        and isinstance(read, list)
        and len(written) == len(read)
    ):
        pairs = [
            (str(at), *pair) for at, pair in enumerate(zip(written, read, strict=True))
        ]
    else:
        pairs = []
        if written != read:
            yield place
    for key, before, after in pairs:
        yield from lost(before, after, f"{place}.{key}".removeprefix("."))
