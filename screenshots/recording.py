"""Frames of the screen as one moving picture: an SVG that plays by its styles alone, small enough
for a README.

A row of the screen that several frames share is in the file once, and so is a colour.
"""

from __future__ import annotations

import re
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_PITCH, _RISE = 24.4, 20.0
"""Units from row to row, and from the top of a row to the line that its letters stand on, as Rich
draws them.
"""
_STYLE = re.compile(r"\.terminal-\d+-(r\d+) \{ (.*?);? \}")
_RECT = re.compile(
    r'<rect fill="([^"]+)" x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="24.65"'
)
_TEXT = re.compile(
    r'<text class="terminal-\d+-(r\d+)" x="([\d.]+)" y="[\d.]+" '
    r'textLength="([\d.]+)" clip-path="[^"]*line-(\d+)\)">'
    r"([^<]*)</text>"
)
_BLANK = re.compile(r"(?:&#160;|\s|\u2800)*")


class Frame(NamedTuple):
    """What the screen shows for some time."""

    svg: str
    """As Rich draws it."""
    seconds: float


def recording(frames: Sequence[Frame], poster: int = -1) -> str:
    """Return frames as one picture that shows them one after the other, for ever.

    Args:
        frames: All of the same size.
        poster: The frame to be seen where nothing moves.
    """
    colours: dict[str, str] = {}
    rows: dict[str, str] = {}
    drawn: list[list[str]] = []
    for frame in frames:
        drawn.append([])
        for y, row in _rows(frame.svg, colours):
            name = rows.setdefault(row, f"r{len(rows)}")
            drawn[-1].append(f'<use href="#{name}" y="{y:g}"/>')
    shown = [
        f'<g class="f" id="f{at}">{"".join(uses)}</g>' for at, uses in enumerate(drawn)
    ]
    kept = [f'<g id="{name}">{row}</g>' for row, name in rows.items()]
    return "\n".join(
        (
            *_head(frames[0].svg),
            "<style>",
            "text{font:20px Fira Code,monospace;white-space:pre}",
            *(f".{name}{{{style}}}" for style, name in colours.items()),
            *_play([frame.seconds for frame in frames], poster % len(frames)),
            f"</style><defs>{''.join(kept)}</defs>",
            '<g transform="translate(9 41)">',
            *shown,
            "</g></svg>\n",
        )
    )


def _head(svg: str) -> Iterator[str]:
    """Yield the beginning of the picture and the window around the screen."""
    box = re.search(r'viewBox="([^"]+)"', svg)
    window = re.search(r'<rect fill="#292929".*?</g>', svg, re.DOTALL)
    assert box is not None
    assert window is not None
    yield f'<svg viewBox="{box[1]}" xmlns="http://www.w3.org/2000/svg">'
    title = re.sub(r'class="[^"]*-title"', 'style="font:bold 18px arial"', window[0])
    yield re.sub(r">\s+<", "><", title)


def _play(seconds: Sequence[float], poster: int) -> Iterator[str]:
    """Yield the styles that show each frame in its time."""
    whole = sum(seconds)
    yield (
        f".f{{visibility:hidden;animation:{whole:g}s step-end "
        f"infinite}}#f{poster}{{visibility:visible}}"
    )
    ends = [100 * end / whole for end in accumulate(seconds)]
    for at, (begin, end) in enumerate(zip([0.0, *ends], ends, strict=False)):
        yield f"#f{at}{{animation-name:k{at}}}"
        hidden = "" if at == 0 else "0%{visibility:hidden}"
        yield (
            f"@keyframes "
            f"k{at}{{{hidden}{begin:.4g}%{{visibility:visible}}{end:.4g}%{{visibility:hidden}}}}"
        )


def _rows(svg: str, colours: dict[str, str]) -> Iterator[tuple[float, str]]:
    """Yield where each row of the screen begins, and what is in it."""
    styles = dict(_STYLE.findall(svg))
    found: dict[int, list[str]] = {}
    for fill, x, y, width in _merged(_RECT.findall(svg)):
        row = round((y - 1.5) / _PITCH)
        found.setdefault(row, []).append(
            f'<rect fill="{fill}" x="{x:g}" y="1.5" width="{width:g}" height="24.65"/>'
        )
    for style, x, length, row, text in _TEXT.findall(svg):
        if not _BLANK.fullmatch(text) or "underline" in styles[style]:
            colour = colours.setdefault(styles[style], f"c{len(colours)}")
            shown = text.replace("&#160;", "\xa0")
            found.setdefault(int(row), []).append(
                f'<text class="{colour}" x="{float(x):g}" y="{_RISE:g}" '
                f'textLength="{float(length):g}">{shown}</text>'
            )
    for row in sorted(found):
        yield row * _PITCH, "".join(found[row])


def _merged(
    rects: list[tuple[str, str, str, str]],
) -> Iterator[tuple[str, float, float, float]]:
    """Yield grounds, those that touch in one row as one."""
    last: tuple[str, float, float, float] | None = None
    for fill, *numbers in rects:
        x, y, width = map(float, numbers)
        if (
            last is not None
            and last[0] == fill
            and last[2] == y
            and abs(last[1] + last[3] - x) < 0.1
        ):
            last = fill, last[1], y, last[3] + width
            continue
        if last is not None:
            yield last
        last = fill, x, y, width
    if last is not None:
        yield last
