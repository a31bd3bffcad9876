"""Every theme can be read, and two can be told apart by people who do not see all colours."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from colours import contrast, linear
from inside_textual import screen_strips
from rich.color import Color as RichColor
from rich.color import ColorSystem
from textual.color import Color
from textual.theme import BUILTIN_THEMES
from watching import press, settle, showing

from verl_tui.config import Config
from verl_tui.rendering.session.preferences import StateFile, UserState
from verl_tui.rendering.text import hues as run_hues
from verl_tui.tui import base_app as themes
from verl_tui.tui.widgets.chart import Chart
from verl_tui.tui.widgets.rows import LOOKS_IN, ROLES

ALL = (*BUILTIN_THEMES.values(), *themes.OURS)
LEAST_OF_TEXT = 4.5
"""Least contrast of text to each background: WCAG 2.2, 1.4.3."""
LEAST = 3.0
"""Least contrast of curves to the background: WCAG 2.2, 1.4.11."""
LEAST_OF_FRAMES = 1.3
TEXT_ROLES = (
    *("text-primary", "text-secondary", "text-success", "text-warning", "text-error"),
    *("text-accent", "text-muted", "text-disabled", "foreground", "accent", "success"),
    "footer-key-foreground",
)
GROUNDS = ("background", "surface", "panel")
SURFACES = (*GROUNDS, "footer-background", "scrollbar-background", "scrollbar")
"""What is wide: navy, which it would be without greys of its own, is louder than any text."""
ROWS = ("primary-muted", "block-cursor-blurred-background")
"""The ground of the row that the keys are at, and of a chosen one elsewhere."""
MEANINGS = (
    "text-success",
    "text-warning",
    "text-error",
    "text-accent",
    "text-primary",
    "foreground",
)
"""What only a colour tells where there is no mark: good, warning, critical, accent, the curve,
plain text.
"""
SIGHTS = {
    "usual": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protan": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deutan": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritan": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}  # fmt: skip
"""Machado, Oliveira, Fernandes 2009, severity 1.0, on linear sRGB:
https://www.inf.ufrgs.br/~oliveira/pubs_files/CVD_Simulation/CVD_Simulation.html"""
APART = 15.0
"""Distance in CIELAB (CIE 1976): 2.3 can just be noticed side by side (Mahy et al. 1994); this can
across a screen.
"""

SEEN = 6.0
"""Least distance of a row's ground to that of the screen."""


XYZ = (
    (0.4124564, 0.3575761, 0.1804375),
    (0.2126729, 0.7151522, 0.0721750),
    (0.0193339, 0.1191920, 0.9503041),
)
WHITE = (0.95047, 1.0, 1.08883)


def lab(colour, sight):
    rgb = np.clip(np.array(SIGHTS[sight]) @ linear(colour), 0, 1)
    shares = np.array(XYZ) @ rgb / WHITE
    x, y, z = np.where(
        shares > 216 / 24389, np.cbrt(shares), (24389 / 27 * shares + 16) / 116
    )
    return np.array((116 * y - 16, 500 * (x - y), 200 * (y - z)))


def distance(one, other, sight):
    one_lab, other_lab = (lab(Color.parse(each), sight) for each in (one, other))
    return float(np.linalg.norm(one_lab - other_lab))


def exactly(colour):
    """Return what a terminal of all colours shows."""
    return colour


def of_256(colour):
    """Return what a terminal of 256 colours shows."""
    known = RichColor.from_rgb(*colour.rgb).downgrade(ColorSystem.EIGHT_BIT)
    return Color(*known.get_truecolor())


def seen(value, ground):
    """Return what a variable looks like on an opaque ground."""
    if value.startswith("auto"):
        share = value.partition(" ")[2].rstrip("%")
        return ground + ground.get_contrast_text(float(share) / 100 if share else 1.0)
    return ground + Color.parse(value)


def variables(theme, shown=exactly):
    made = {**theme.to_color_system().generate(), **theme.variables}
    return themes.readable(made, theme.name, few=shown is of_256)


@pytest.mark.parametrize("sight", SIGHTS)
@pytest.mark.parametrize("theme", themes.OURS[:2], ids=lambda theme: theme.name)
def test_colour_blind_people_tell_the_meanings_apart(theme, sight):
    shown = variables(theme)
    for one, other in combinations(MEANINGS, 2):
        assert distance(shown[one], shown[other], sight) >= APART, (one, other)


def grounds_of(theme, shown):
    """What a terminal shows of a theme's grounds, the first that of the whole screen."""
    known = variables(theme, shown)
    base = Color.parse(known["background"])
    return [shown(base + Color.parse(known[name])) for name in GROUNDS]


def texts_of(theme, ground, shown):
    """What a terminal shows of a theme's texts on a ground, by role."""
    known = variables(theme, shown)
    looks = {role: seen(known[role], ground) for role in TEXT_ROLES}
    return {role: shown(look) for role, look in looks.items()}


@pytest.mark.parametrize(
    ("theme", "shown"), [(theme, shown) for theme in ALL for shown in (exactly, of_256)]
)
def test_everything_can_be_read_in_every_theme(theme, shown):
    known = variables(theme, shown)
    if theme.ansi:
        assert known["text-error"] != known["text-warning"] != known["text-success"]
        return  # the terminal's own colours: what they look like is the user's
    grounds = grounds_of(theme, shown)
    base = Color.parse(known["background"])
    rows = [shown(Color.parse(known[row])) for row in ROWS]
    for row in rows:  # it is wide, and what is in front of it is bold
        assert distance(row.hex, grounds[0].hex, "usual") >= SEEN
    for ground in grounds:
        texts = texts_of(theme, ground, shown)
        for role, look in texts.items():
            for below in (ground, *rows):
                assert contrast(look, below) >= LEAST_OF_TEXT, (role, below)
    frame = seen(known["panel-lighten-2"], grounds[0])
    assert contrast(shown(frame), grounds[0]) >= LEAST_OF_FRAMES
    below = shown(base + Color.parse(known["block-cursor-background"]))
    ink = seen(known["block-cursor-foreground"], below)
    assert contrast(shown(ink), below) >= LEAST
    bar, track = (
        Color.parse(known[name]) for name in ("scrollbar", "scrollbar-background")
    )
    assert contrast(shown(bar), shown(track)) >= LEAST
    last = shown(base + Color.parse(known["footer-background"]))
    for role in ("footer-key-foreground", "footer-description-foreground"):
        assert contrast(shown(seen(known[role], last)), last) >= LEAST_OF_TEXT, role


@pytest.mark.parametrize("theme", [one for one in ALL if not one.ansi])
def test_wide_surfaces_are_grey_in_256_colours(theme):
    known = variables(theme, of_256)
    for name in (*SURFACES, *ROWS):
        assert len({*of_256(Color.parse(known[name])).rgb}) == 1, name


@pytest.mark.parametrize("theme", ["textual-light", "textual-dark"])
async def test_every_word_on_the_screen_can_be_read(demo, theme):
    app = showing(demo)
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot)
        app.theme = theme
        await settle(pilot)
        for keys in ["f4", "f2 space", "escape m v", "escape o", "escape c"]:
            await press(pilot, *keys.split())
            assert not set(unread(app)), keys


async def test_sixteen_colours_stand_on_a_ground_of_their_own(demo):
    """On a light terminal they could not be read."""
    app = showing(demo)
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot)
        app.theme = themes.PLAIN
        await settle(pilot)
        for keys in (
            *("f4", "f2 space", "slash k", "escape escape ctrl+p", "escape question_mark"),
            *("escape C", "escape m v", "escape o", "escape c"),
        ):  # fmt: skip
            await press(pilot, *keys.split())
            assert not set(of_the_terminal(app)), keys


def of_the_terminal(app):
    """Yield what is on the screen in the terminal's own colour, or on its own ground."""
    for strip in screen_strips(app):
        for text, style, _ in strip:
            ground = style and style.bgcolor
            ink = style and style.color
            if (
                not ground
                or ground.is_default
                or (text.strip() and (not ink or ink.is_default))
            ):
                yield text


def unread(app):
    """Yield the words on the screen whose contrast is too low, and how low it is."""
    for strip in screen_strips(app):
        for text, style, _ in strip:
            if (
                style is None
                or style.color is None
                or style.bgcolor is None
                or not words(text)
            ):
                continue
            ink, ground = (
                Color.from_rich_color(one) for one in (style.color, style.bgcolor)
            )
            if (apart := contrast(ink, ground)) < LEAST_OF_TEXT:
                yield text, round(apart, 2)


def words(text):
    """Whether there is more than the letter of a run, whose colour is that of its curve."""
    return sum(sign.isalnum() for sign in text) > 1


@pytest.mark.parametrize("shown", [exactly, of_256])
@pytest.mark.parametrize("theme", [one for one in ALL if not one.ansi])
def test_curves_can_be_seen_in_every_theme(theme, shown):
    known = variables(theme, shown)
    base = Color.parse(known["background"])
    # the shade between the least and the most, too
    text = Color.parse(known["foreground"])
    grounds = [base, base + text.with_alpha(0.12)]
    hues = (*run_hues.HUES.values(), *run_hues.FAMILIES.values())
    for colour in (one.on_ground(ansi=False, dark=theme.dark) for one in hues):
        for ground in grounds:
            apart = contrast(shown(Color.parse(colour)), shown(ground))
            assert apart >= LEAST, (colour, ground)


async def test_no_role_is_a_block_in_sixteen_colours(demo):
    """As a shade of a colour would be, which is the colour itself there."""
    app = showing(demo)
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot)
        app.theme = themes.PLAIN
        await settle(pilot)
        chart = app.screen.query(Chart).first()
        for role in {**ROLES, **LOOKS_IN[Chart.LOOKS]}:
            style = chart.role_style(role)
            assert style.color != style.bgcolor, role
            assert style.bgcolor == chart.rich_style.bgcolor, role


# -- which one is in force -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("configured", "state", "expected"),
    [
        ("nord", UserState(), "nord"),
        ("nord", UserState(theme="dracula", theme_instead_of="nord"), "dracula"),
        ("gruvbox", UserState(theme="dracula", theme_instead_of="nord"), "gruvbox"),
        ("nord", UserState(theme="gone", theme_instead_of="nord"), "nord"),
    ],
)
def test_a_choice_holds_until_the_configuration_changes(configured, state, expected):
    assert (
        themes.in_force(configured, state, {"nord", "dracula", "gruvbox"}) == expected
    )


async def test_the_theme_that_was_chosen_is_there_at_the_next_start(demo, tmp_path):
    path, usual = tmp_path / "state.json", Config().theme
    for there, saved, chosen in (
        (usual, "", "colour-blind-dark"),
        ("colour-blind-dark", "colour-blind-dark", usual),
        (usual, None, ""),
    ):
        app = showing(demo, state_file=StateFile(path))
        async with app.run_test(size=(80, 24)) as pilot:
            await press(pilot)
            assert app.theme == there
            assert saved is None or StateFile(path).state.theme == saved, (
                "nothing else was chosen"
            )
            if chosen:
                app.theme = chosen
                await settle(pilot)
