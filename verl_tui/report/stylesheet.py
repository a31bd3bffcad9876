"""The stylesheet of a report and of its charts, for light and dark grounds and for paper.

It stands in the file itself, and the file's policy names it by its hash: nothing else is allowed.
"""

from __future__ import annotations

import base64
import hashlib

from verl_tui.rendering.text import run_colours
from verl_tui.rendering.text.family_colours import FAMILIES

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
    for role, on_light, on_dark in zip(
        run_colours.RUNS, run_colours.LIGHT, run_colours.DARK, strict=True
    ):
        light[role] = on_light
        dark[role] = on_dark
    for role, hue in FAMILIES.items():
        light[f"of-{role}"] = hue.light
        dark[f"of-{role}"] = hue.dark
    return light, dark


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
    own = ("healthy", "info", "warning", "critical", *run_colours.RUNS)
    lines = [f".{role}{{color:var(--{role})}}" for role in own]
    lines += [f".of-{role}{{color:var(--of-{role})}}" for role in FAMILIES]
    return "\n".join([*lines, ".grey{color:var(--grey)}"]) + "\n"


_CHART = """\
.chart{display:block;width:100%;height:auto}
.chart text{font:11px system-ui,sans-serif;fill:var(--muted);font-variant-numeric:tabular-nums}
.chart .end{font-weight:700;font-size:12px;fill:currentColor;stroke:var(--card);stroke-width:3px;
paint-order:stroke}
.chart path{fill:none;stroke:currentColor;vector-effect:non-scaling-stroke;stroke-width:1.7px;
stroke-linejoin:round;stroke-linecap:round}
.chart .behind{opacity:.32;stroke-width:1px}
.chart .grey{stroke-width:1px;opacity:.75}
.chart .critical,.chart .warning{stroke-width:2.6px}
.chart .behind.critical,.chart .behind.warning{stroke-width:1.4px;opacity:.5}
.chart .grid{stroke:var(--grid);stroke-width:1px}
.chart .axis{stroke:var(--edge);stroke-width:1px}
.chart .ground{fill:var(--ground)}
.chart .band{fill:var(--band)}
.chart .target{stroke:var(--healthy);stroke-width:1.3px;stroke-dasharray:7 4}
.chart .restart{stroke:var(--muted);stroke-width:1px;stroke-dasharray:2 3}
.chart .area{fill:currentColor;stroke:none;opacity:.13}
.chart .mark{fill:currentColor;stroke:none}
.chart .checkpoint{color:var(--muted)}
.chart .odd{fill:var(--critical);font-size:10px}
.chart .sign{fill:currentColor;font-size:13px}
.chart .dot{fill:var(--card);stroke:currentColor;stroke-width:1.5px}
"""

_PAGE = """\
*{box-sizing:border-box}
body{margin:0 auto;max-width:1180px;padding:28px 20px 60px;background:var(--ground);
color:var(--text);font:15px/1.5 system-ui,sans-serif;overflow-wrap:anywhere}
h1{font-size:1.7em;line-height:1.2;margin:0 0 4px}
h2{font-size:1.25em;margin:42px 0 12px;padding-bottom:6px;border-bottom:1px solid var(--edge)}
h3{font-size:1em;margin:22px 0 8px}
p{margin:6px 0}
nav ul{display:flex;flex-wrap:wrap;gap:4px 18px;list-style:none;margin:14px 0 0;padding:0}
a{color:var(--info)}
.muted,.note{color:var(--muted);font-size:.9em}
.scroll{overflow-x:auto;border:1px solid var(--edge);border-radius:8px}
.scroll:focus-visible,a:focus-visible{outline:2px solid var(--info);outline-offset:2px}
table{border-collapse:collapse;width:100%;font-size:.9em;font-variant-numeric:tabular-nums}
th,td{padding:6px 12px;text-align:left;vertical-align:top;border-bottom:1px solid var(--edge);
overflow-wrap:normal}
td{min-width:5em;max-width:32em;overflow-wrap:break-word}
tbody tr:last-child>*{border-bottom:0}
thead th{background:var(--card);color:var(--muted);font-weight:600;white-space:nowrap}
tbody th{font-weight:600}
table.numbers td{text-align:right;white-space:nowrap}
table.numbers thead th:not(:first-child){text-align:right}
.verdicts{list-style:none;margin:0;padding:0}
.verdicts li{padding:8px 0;border-bottom:1px solid var(--edge);break-inside:avoid}
.verdicts li:last-child{border-bottom:0}
.verdicts p{margin:2px 0 0}
.verdicts .word{margin:0 6px}
.sign{font-weight:700}
.word{font-weight:700;white-space:nowrap}
.word.healthy::before{content:"\\2713\\00a0"}
.word.warning::before{content:"\\25b3\\00a0"}
.word.critical::before{content:"\\25b2\\00a0"}
.word.info::before{content:"\\24d8\\00a0"}
.legend{display:flex;flex-wrap:wrap;gap:4px 20px;list-style:none;margin:0 0 8px;padding:0}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,430px),1fr));gap:16px}
figure{margin:0;padding:12px 14px 10px;background:var(--card);border:1px solid var(--edge);
border-radius:8px;min-width:0;break-inside:avoid}
figure h3{margin:0 0 6px}
figure h3 .muted{font-weight:400}
figcaption{color:var(--muted);font-size:.8em;line-height:1.35;margin-top:4px}
article{border:1px solid var(--edge);border-left:4px solid currentColor;border-radius:8px;
padding:10px 16px;margin:10px 0;break-inside:avoid}
article>*{color:var(--text)}
article h4,article .word{display:inline;margin:0;font-size:1em}
article.critical .word{color:var(--critical)}
article.warning .word{color:var(--warning)}
article.info .word{color:var(--info)}
article ul{margin:6px 0;padding-left:20px}
code,pre{font:.88em/1.45 ui-monospace,monospace}
pre{margin:4px 0 12px;padding:10px 12px;background:var(--card);border:1px solid var(--edge);
border-radius:8px;white-space:pre-wrap}
h4{font-size:.95em;margin:14px 0 4px}
.label{color:var(--muted);font-size:.82em;margin:0}
dl{display:grid;grid-template-columns:max-content 1fr;gap:4px 18px;margin:0}
dt{color:var(--muted)}
dd{margin:0;min-width:0}
@media(max-width:600px){.chart text{font-size:14px}.chart .end{font-size:15px}
body{padding:18px 12px 40px}th,td{padding:5px 8px}dl{display:block}
dd{margin-bottom:6px}}
@media print{body{max-width:none;padding:0;font-size:11px}nav{display:none}
.scroll{overflow:visible}.charts{grid-template-columns:1fr 1fr}h2,h3{break-after:avoid}
table.numbers td,thead th{white-space:normal}th,td{padding:3px 5px;min-width:0;
overflow-wrap:anywhere}}
"""

CHART_STYLE = _variables("svg") + _roles() + _CHART
"""Of a chart in a file of its own."""
PAGE_STYLE = _variables(":root") + _roles() + _CHART + _PAGE
"""Of a page."""


def policy(style: str) -> str:
    """Return the content security policy under which only this style holds, and nothing is
    loaded.
    """
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
