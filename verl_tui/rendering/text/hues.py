"""Colours that a theme does not have, for each kind of ground."""

from __future__ import annotations

from typing import NamedTuple

from verl_tui.metrics import describe


class Hue(NamedTuple):
    """A colour for dark grounds, for light ones, and of the terminal's own sixteen."""

    dark: str
    light: str
    ansi: str

    def on_ground(self, *, ansi: bool, dark: bool) -> str:
        """Return the colour for a ground."""
        if ansi:
            return self.ansi
        return self.dark if dark else self.light


FAMILIES = {
    "reward": Hue("#9CD8E4", "#246C90", "ansi_cyan"),
    "validation": Hue("#F5F5F5", "#1A1A1A", "ansi_bright_white"),
    "kl": Hue("#C084C0", "#60246C", "ansi_bright_magenta"),
    "loss": Hue("#B4CC3C", "#5C6814", "ansi_bright_blue"),
    "entropy": Hue("#48B478", "#0C786C", "ansi_green"),
    "length": Hue("#789CFC", "#483C9C", "ansi_magenta"),
    "time": Hue("#9C909C", "#284050", "ansi_white"),
    "other": Hue("#CCC0B4", "#6C6048", "ansi_white"),
}
"""By role."""
_OF_FAMILY = {
    "reward": "reward",
    "validation": "validation",
    "kl": "kl policy_kl reference_kl",
    "loss": "loss policy_loss value_loss",
    "entropy": "entropy",
    "length": "length response_length",
    "time": "timing throughput step_time generation_time",
}
"""The groups of metrics, and the indicators, whatever a log calls them, of each family."""
_FAMILY = {name: role for role, names in _OF_FAMILY.items() for name in names.split()}


def family_role(key: str, indicator: str | None = None) -> str:
    """Return the role that colours a metric: its family's, or that of all others."""
    if indicator in _FAMILY:
        return _FAMILY[indicator]
    if key.rpartition("/")[2].startswith("entropy"):
        return "entropy"
    return _FAMILY.get(describe(key).group, "other")


DARK = ("#A8E4F0", "#8490FC", "#3CC090", "#D878B4", "#B4C018", "#F0FCF0")
"""Sky blue, periwinkle, bluish green, pink, lime, white: for dark grounds."""
LIGHT = ("#0C6CC0", "#4830A8", "#006C40", "#843078", "#5C6820", "#242424")
"""Blue, indigo, bluish green, plum, olive, black: for light grounds."""
ANSI = (
    "ansi_cyan",
    "ansi_bright_blue",
    "ansi_green",
    "ansi_bright_magenta",
    "ansi_magenta",
    "ansi_bright_white",
)
"""Colours of the terminal's own sixteen, without its reds and yellows and the bright cyan of the
chosen row.
"""
RUNS = tuple(f"run-{place}" for place in range(1, len(DARK) + 1))
"""Roles of the runs in their places."""
HUES = dict(zip(RUNS, map(Hue, DARK, LIGHT, ANSI), strict=True))


# -- parts of a step that stand side by side in one bar --------------------------------------------

# The hues are those of Paul Tol's scheme "light" for colour-blind people ("Colour Schemes", SRON
# technical note 3.2, 2021, https://personal.sron.nl/~pault/) and the reddish purple of Okabe and
# Ito, darker on light grounds. None is red or amber: these are findings.
PART_DARK = ("#77AADD", "#44BB99", "#BBCC33", "#D693B8", "#EEDD88", "#DDDDDD")
"""Blue, mint, pear, reddish purple, light yellow, grey: for dark grounds."""
PART_LIGHT = ("#225588", "#006650", "#4F5A00", "#8B3A78", "#7A6A00", "#3A3A3A")
PART_ANSI = (
    "ansi_bright_cyan",
    "ansi_bright_green",
    "ansi_bright_yellow",
    "ansi_bright_magenta",
    "ansi_bright_blue",
    "ansi_bright_white",
)
"""Colours of the terminal's own sixteen, used together with a sign for each part."""
PARTS = tuple(f"part-{number}" for number in range(len(PART_DARK)))
"""Roles of the parts, the longest first."""
PART_HUES = dict(zip(PARTS, map(Hue, PART_DARK, PART_LIGHT, PART_ANSI), strict=True))
