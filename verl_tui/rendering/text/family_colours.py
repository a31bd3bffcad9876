"""Colours of the families of metrics: reward, KL, loss, entropy, lengths, times.

The hues are those of Paul Tol's schemes for colour-blind people (light and dark ones; "Colour
Schemes", SRON technical note 3.2, 2021, https://personal.sron.nl/~pault/) and the reddish purple of
Okabe and Ito, lighter or darker where the ground asks for it. None is red or amber: these are
findings. The title of a chart says what it is of, so that a hue is never alone to tell.
"""

from __future__ import annotations

from typing import NamedTuple

from verl_tui.metrics import describe


class Hue(NamedTuple):
    """A colour for dark grounds, for light ones, and of the terminal's own sixteen."""

    dark: str
    light: str
    ansi: str


FAMILIES = {
    "reward": Hue("#99DDFF", "#005F87", "ansi_bright_cyan"),
    "kl": Hue("#D693B8", "#8B3A78", "ansi_bright_magenta"),
    "loss": Hue("#BBCC33", "#4F5A00", "ansi_bright_blue"),
    "entropy": Hue("#44BB99", "#006650", "ansi_cyan"),
    "length": Hue("#DDDDDD", "#3A3A3A", "ansi_bright_white"),
    "time": Hue("#A3B4C9", "#4A5666", "ansi_white"),
}
"""By role."""
FAINT = "-raw"
"""Ending of the role of a family's values behind their average."""
_GROUPS = {
    "reward": "reward",
    "validation": "reward",
    "kl": "kl",
    "loss": "loss",
    "length": "length",
    "timing": "time",
    "throughput": "time",
}
"""The family of each group of metrics that has one."""


_INDICATORS = {
    "reward": "reward",
    "policy_kl": "kl",
    "reference_kl": "kl",
    "policy_loss": "loss",
    "value_loss": "loss",
    "entropy": "entropy",
    "response_length": "length",
    "step_time": "time",
    "generation_time": "time",
    "throughput": "time",
}
"""The family of each indicator that has one, whatever a log calls it."""


def family_role(key: str, indicator: str | None = None) -> str:
    """Return the role that colours a metric: its family's, or that of any line."""
    if indicator in _INDICATORS:
        return _INDICATORS[indicator]
    if key.rpartition("/")[2].startswith("entropy"):
        return "entropy"
    return _GROUPS.get(describe(key).group, "line")


def rules(widget: str, prefix: str) -> str:
    """Return the stylesheet that colours the component classes of the families in a widget."""
    return "\n".join(
        f"{widget}:{kind} > .{prefix}--{role} {{ color: {colour}; }}\n"
        f"{widget}:{kind} > .{prefix}--{role}{FAINT} {{ color: {colour}{faint}; }}"
        for at, (kind, faint) in enumerate((("dark", " 50%"), ("light", " 50%"), ("ansi", "")))
        for role, hue in FAMILIES.items()
        for colour in (hue[at],)
    )
