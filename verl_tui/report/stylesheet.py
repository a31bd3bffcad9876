"""The stylesheet of a report and of its charts, for light and dark grounds and for paper.

It stands in the file itself, and the file's policy names it by its hash: nothing else is allowed.
"""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

from verl_tui.rendering.text import hues
from verl_tui.rendering.text.hues import FAMILIES

_GROUNDS = (
    {
        "ground": "#ffffff",
        "card": "#f6f8fa",
        "edge": "#d5dae0",
        "text": "#1b2027",
        "muted": "#55606c",
        "grid": "#e3e7eb",
        "band": "#cdebd6",
        "healthy": "#176437",
        "info": "#1B5E9E",
        "warning": "#8A5200",
        "critical": "#B3160F",
        "grey": "#b9c1c9",
    },
    {
        "ground": "#12161b",
        "card": "#1a2027",
        "edge": "#36404b",
        "text": "#e8ebef",
        "muted": "#a3aeba",
        "grid": "#2a323b",
        "band": "#1d3d2b",
        "healthy": "#67d391",
        "info": "#84BEF5",
        "warning": "#FFB938",
        "critical": "#FF6B63",
        "grey": "#4e5a66",
    },
)
"""Colours on light grounds and on dark ones. Text has a contrast of 4.5 or more to ground and card
(WCAG 2.2, 1.4.3); warning and critical are the screen's.
"""


def grounds() -> tuple[dict[str, str], dict[str, str]]:
    """Return all colours on light grounds and on dark ones, by name."""
    light = dict(_GROUNDS[0])
    dark = dict(_GROUNDS[1])
    for role, on_light, on_dark in zip(hues.RUNS, hues.LIGHT, hues.DARK, strict=True):
        light[role] = on_light
        dark[role] = on_dark
    for role, hue in FAMILIES.items():
        light[f"of-{role}"] = hue.light
        dark[f"of-{role}"] = hue.dark
    return light, dark


def _written(name: str) -> str:
    """Return the rules of a file beside this one."""
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _variables(root: str) -> str:
    light, dark = map(_declared, grounds())
    return (
        f"{root}{{color-scheme:light dark;{light}}}\n"
        f"@media screen and (prefers-color-scheme:dark){{{root}{{{dark}}}}}\n"
    )


def _declared(colours: dict[str, str]) -> str:
    return "".join(f"--{name}:{colour};" for name, colour in colours.items())


def _roles() -> str:
    """Return the colours of roles: of runs, of families, of severities."""
    own = ("healthy", "info", "warning", "critical", *hues.RUNS)
    lines = [f".{role}{{color:var(--{role})}}" for role in own]
    lines += [f".of-{role}{{color:var(--of-{role})}}" for role in FAMILIES]
    return "\n".join([*lines, ".grey{color:var(--grey)}"]) + "\n"


_CHART = _written("chart.css")
CHART_STYLE = _variables("svg") + _roles() + _CHART
"""Of a chart in a file of its own."""
PAGE_STYLE = _variables(":root") + _roles() + _CHART + _written("page.css")
"""Of a page."""


def policy(style: str) -> str:
    """Return the content security policy under which only this style holds, and nothing is
    loaded.
    """
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
