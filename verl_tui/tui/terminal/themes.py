"""Themes for people who do not see all colours and for terminals that have few; what every theme
must keep to.

The hues of the two are those of Okabe and Ito, "Color Universal Design", 2008
(https://jfly.uni-koeln.de/color/), lighter or darker where the ground asks for it. That good,
warning, critical, accent, the curves and plain text stay apart for each kind of colour blindness is
computed by the tests with the matrices of Machado, Oliveira and Fernandes, "A Physiologically-based
Model for Simulation of Color Vision Deficiency", IEEE TVCG 15, 2009.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

from rich.color import Color as RichColor
from rich.color import ColorSystem
from textual.color import BLACK, WHITE, Color, ColorParseError
from textual.theme import Theme

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from verl_tui.rendering.session.preferences import UserState

TEXT_ROLES = (
    *(
        "text-primary",
        "text-secondary",
        "text-success",
        "text-warning",
        "text-error",
        "text-accent",
    ),
    *(
        "text-muted",
        "text-disabled",
        "foreground",
        "accent",
        "success",
        "footer-key-foreground",
    ),
)
"""Variables that colour text, the edge of the focused panel, or the healthy band."""
GROUNDS = ("background", "surface", "panel")
"""Variables of the backgrounds."""
LEAST_OF_TEXT = 4.5
"""Least contrast of those to each background: WCAG 2.2, 1.4.3."""
LEAST = 3.0
"""Least contrast of curves to the background: WCAG 2.2, 1.4.11."""
_REDS, _AMBERS = (-12.0, 28.0), (28.0, 57.0)
"""Hues, in degrees, of what is critical and of what is a warning: Textual's own red is a pink."""
_RED, _AMBER = ("#FF6B63", "#B3160F"), ("#FFB938", "#8A5200")
"""Their replacements where a theme has others: on dark grounds, on light ones."""
_VIVID = 0.45
"""Least saturation of these, and of a row's ground: paler red is pink."""
_CALM = 0.75
"""Most saturation of a row's ground."""
FRAME = "panel-lighten-2"
"""Variable that colours the edges of panels; lighter than a light background they would vanish."""
LEAST_OF_FRAMES = 1.3
HERE, CHOSEN = "primary-muted", "block-cursor-blurred-background"
"""Variables of the ground of the row that the keys are at, and of a chosen one elsewhere."""
_OF_CHOSEN = (0.6, 0.8)
"""How much of the former the latter has, as far as a terminal can show that."""
_CURSOR = ("block-cursor-foreground", "block-cursor-background")
_STEP = 0.05
_SHADES = 40
"""Shades of the cursor's colour that are tried."""


def _theme(
    name: str,
    *,
    dark: bool,
    good: str,
    warning: str,
    critical: str,
    accent: str,
    line: str,
) -> Theme:
    """Return a theme whose texts have just these colours; Textual would mix them with white or
    black.
    """
    return Theme(
        name=name,
        dark=dark,
        primary=line,
        secondary=line,
        success=good,
        warning=warning,
        error=critical,
        accent=accent,
        foreground="#F0F0F0" if dark else "#000000",
        background="#121212" if dark else "#FAFAFA",
        surface="#1E1E1E" if dark else "#F5F5F5",
        panel="#2A2A2A" if dark else "#E6E6E6",
        variables={
            "text-primary": line,
            "text-secondary": line,
            "text-success": good,
            "text-warning": warning,
            "text-error": critical,
            "text-accent": accent,
        },
    )


DARK = _theme(
    "colour-blind-dark",
    dark=True,
    good="#009E73",
    warning="#F0E442",
    critical="#DD7E33",
    accent="#D186B0",
    line="#89CBF0",
)
"""Bluish green, yellow, vermillion, reddish purple, sky blue."""
LIGHT = _theme(
    "colour-blind-light",
    dark=False,
    good="#005C43",
    warning="#4A3300",
    critical="#C22700",
    accent="#9A4F7A",
    line="#0072B2",
)
"""Bluish green, orange as dark as brown, vermillion, reddish purple, blue."""
PLAIN = Theme(
    name="sixteen-colours",
    ansi=True,
    primary="ansi_bright_cyan",
    secondary="ansi_cyan",
    success="ansi_bright_green",
    warning="ansi_bright_yellow",
    error="ansi_bright_red",
    accent="ansi_bright_magenta",
    foreground="ansi_white",
    background="ansi_black",
    variables={
        "ansi-background": "ansi_black",
        "ansi-foreground": "ansi_white",
        "block-cursor-background": "ansi_white",
        "block-cursor-foreground": "ansi_black",
        "block-cursor-blurred-background": "ansi_white",
        "block-cursor-blurred-foreground": "ansi_black",
        "block-hover-background": "ansi_black",
        "input-selection-background": "ansi_white",
        "input-selection-foreground": "ansi_black",
        "text": "ansi_white",
        "panel-lighten-2": "ansi_white",
        "text-muted": "ansi_white",
        "text-disabled": "ansi_white",
        "footer-foreground": "ansi_white",
        "footer-background": "ansi_black",
        "footer-key-foreground": "ansi_bright_cyan",
        "footer-description-foreground": "ansi_white",
        "footer-description-background": "ansi_black",
        "footer-item-background": "ansi_black",
        "scrollbar": "ansi_white",
        "scrollbar-background": "ansi_black",
        "scrollbar-corner-color": "ansi_black",
    },
)
"""Colours that terminals of sixteen have, on a ground of its own: the terminal's may be light. Any
other theme's would become those that happen to be nearest, white mostly. Without colours it does as
well: what is chosen is reversed.
"""
OURS = (DARK, LIGHT, PLAIN)


def in_force(configured: str, state: UserState, available: Collection[str]) -> str:
    """Return the theme to begin with: the one chosen in the app last, until the configuration names
    another.

    Args:
        configured: The theme in the configuration now.
        state: What is remembered of the user.
        available: Names of all themes there are.
    """
    remembered = state.theme if state.theme_instead_of == configured else ""
    return remembered if remembered in available else configured


def with_chosen_theme(state: UserState, *, name: str, configured: str) -> UserState:
    """Return the state with a theme chosen in the app, instead of the one in the configuration
    now.
    """
    return replace(state, theme=name, theme_instead_of=configured)


def exactly(colour: Color) -> Color:
    """Return what a terminal of all colours shows."""
    return colour


def of_256(colour: Color) -> Color:
    """Return what a terminal of 256 colours shows."""
    red, green, blue = colour.rgb
    known = RichColor.from_rgb(red, green, blue).downgrade(ColorSystem.EIGHT_BIT)
    return Color(*known.get_truecolor())


def readable(
    variables: Mapping[str, str], shown: Callable[[Color], Color] = exactly
) -> dict[str, str]:
    """Return a theme's variables with every role as far from its grounds as it takes to be read.

    A theme's own colours are kept as far as that allows; the terminal's own colours are left as
    they are.

    Args:
        variables: Those of the theme.
        shown: What the terminal makes of a colour.
    """
    changed = dict(variables)
    grounds = [shown(ground) for ground in _grounds(variables)]
    if not grounds:
        return changed
    changed |= _severities(variables, grounds)
    for role in TEXT_ROLES:
        changed[role] = _contrasting(changed[role], grounds, LEAST_OF_TEXT, shown)
    changed[FRAME] = _contrasting(variables[FRAME], grounds[:1], LEAST_OF_FRAMES, shown)
    ink, ground = _CURSOR
    below = _opaque(variables[ground], grounds[0])
    if below is not None:
        changed[ink] = _contrasting(variables[ink], [shown(below)], LEAST, shown)
    return changed | _row_grounds(changed, grounds, shown)


def _row_grounds(
    variables: Mapping[str, str], grounds: list[Color], shown: Callable[[Color], Color]
) -> dict[str, str]:
    """Return the cursor's hue as light or dark as it takes to read every text on it, and weaker."""
    texts = [shown(look) for look in _texts(variables, grounds)]
    cursor = _opaque(variables[_CURSOR[1]], grounds[0]) or grounds[0]
    here = _first_read(texts, map(shown, _shades(cursor, grounds[0]))) or grounds[0]
    weaker = (shown(grounds[0].blend(here, share, 1.0)) for share in _OF_CHOSEN)
    apart = (colour for colour in weaker if colour != grounds[0])
    return {HERE: here.hex, CHOSEN: (_first_read(texts, apart) or here).hex}


def _texts(variables: Mapping[str, str], grounds: list[Color]) -> Iterator[Color]:
    """Yield the colour of every text on each ground."""
    for role, ground in product(TEXT_ROLES, grounds):
        look = seen(variables[role], ground)
        if look is not None:
            yield look


def _shades(cursor: Color, ground: Color) -> Iterator[Color]:
    """Yield a colour ever darker on a dark ground, ever lighter on a light one."""
    hue, own, lightness = cursor.hsl
    saturation = min(max(own, _VIVID), _CALM)
    pole = 0.0 if contrast(ground, WHITE) > contrast(ground, BLACK) else 1.0
    for step in range(_SHADES):
        yield Color.from_hsl(
            hue, saturation, lightness + (pole - lightness) * step / _SHADES
        )


def _first_read(texts: Collection[Color], grounds: Iterable[Color]) -> Color | None:
    """Return the first ground that all texts can be read on."""
    for ground in grounds:
        if all(contrast(text, ground) >= LEAST_OF_TEXT for text in texts):
            return ground
    return None


def _severities(variables: Mapping[str, str], grounds: list[Color]) -> dict[str, str]:
    """Return the colours of critical and warning where the theme's are no red and no amber."""
    light = contrast(grounds[0], BLACK) > contrast(grounds[0], WHITE)
    found: dict[str, str] = {}
    for name, hues, ours in (("error", _REDS, _RED), ("warning", _AMBERS, _AMBER)):
        own = seen(variables[f"text-{name}"], grounds[0])
        fits = (
            own is not None
            and own.hsl.s >= _VIVID
            and _is_within(own.hsl.h * 360, hues)
        )
        if own is not None and not fits:
            found[f"text-{name}"] = ours[light]
    return found


def _is_within(hue: float, hues: tuple[float, float]) -> bool:
    return hues[0] <= hue <= hues[1] or hues[0] <= hue - 360 <= hues[1]


def contrast(one: Color, other: Color) -> float:
    """Return the contrast ratio of two opaque colours: WCAG 2.2, definition of `contrast ratio`."""
    bright, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def seen(value: str, ground: Color) -> Color | None:
    """Return what a variable looks like on an opaque ground, None for one of the terminal's own
    colours.
    """
    if value.startswith("auto"):
        share = value.partition(" ")[2].rstrip("%")
        return ground + ground.get_contrast_text(float(share) / 100 if share else 1.0)
    return _opaque(value, ground)


def _grounds(variables: Mapping[str, str]) -> list[Color]:
    base = _opaque(variables[GROUNDS[0]], BLACK)
    if base is None:
        return []
    grounds = [_opaque(variables[name], base) for name in GROUNDS]
    return [ground for ground in grounds if ground is not None]


def _opaque(value: str, ground: Color) -> Color | None:
    try:
        colour = Color.parse(value)
    except ColorParseError:
        return None
    return None if colour.ansi is not None else ground + colour


def _contrasting(
    value: str, grounds: list[Color], least: float, shown: Callable[[Color], Color]
) -> str:
    """Return a colour, moved towards white or black until each ground is far enough from it."""
    looks = [seen(value, ground) for ground in grounds]
    if any(
        look is None or contrast(shown(look), ground) < least
        for look, ground in zip(looks, grounds, strict=True)
    ):
        first = looks[0]
        if first is None:
            return value
        pole = max(
            (WHITE, BLACK),
            key=lambda end: min(contrast(end, ground) for ground in grounds),
        )
        share = 0.0
        while share < 1.0:
            share += _STEP
            moved = shown(first.blend(pole, min(1.0, share), 1.0))
            if all(contrast(moved, ground) >= least for ground in grounds):
                return moved.hex
    return value


def _luminance(colour: Color) -> float:
    """Return the relative luminance, as WCAG 2.2 defines it."""
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in colour.normalized
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
