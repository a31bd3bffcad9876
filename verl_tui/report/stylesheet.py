"""The stylesheet of a report and of its charts, for light and dark grounds and for paper.

It stands in the file itself, and the file's policy names it by its hash: nothing else is allowed.
"""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

from verl_tui.rendering.text.hues import FAMILIES, HUES


def _written(name: str) -> str:
    """Return the rules of a file beside this one."""
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _hues() -> str:
    """Return the screen's colours of runs and families, on light grounds and on dark ones."""
    hues = HUES | {f"of-{role}": hue for role, hue in FAMILIES.items()}
    on_light, on_dark = (
        "".join(
            f"--{name}:{hue.on_ground(ansi=False, dark=dark)};"
            for name, hue in hues.items()
        )
        for dark in (False, True)
    )
    return (
        f":root{{{on_light}}}\n"
        f"@media screen and (prefers-color-scheme:dark){{:root{{{on_dark}}}}}\n"
        + "".join(f".{role}{{color:var(--{role})}}\n" for role in hues)
    )


CHART_STYLE = _written("colours.css") + _hues() + _written("chart.css")
"""Of a chart in a file of its own."""
PAGE_STYLE = CHART_STYLE + _written("page.css")
"""Of a page."""


def policy(style: str) -> str:
    """Return the content security policy under which only this style holds, and nothing is
    loaded.
    """
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
