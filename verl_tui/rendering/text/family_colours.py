"""Colours of the families of metrics: reward, validation, KL, loss, entropy, lengths, times.

The hues began as those of Paul Tol's schemes for colour-blind people ("Colour Schemes", SRON
technical note 3.2, 2021, https://personal.sron.nl/~pault/) and were moved until the tests' measures
held: to the ground, from critical, warning and info, and from each other, for people who see red
and green alike, too. The title of a chart names its metric, so that no information is in the hue
alone.
"""

from __future__ import annotations

from verl_tui.metrics import describe
from verl_tui.rendering.text.hues import Hue

FAMILIES = {
    "reward": Hue("#9CD8E4", "#246C90", "ansi_cyan"),
    "validation": Hue("#F5F5F5", "#1A1A1A", "ansi_bright_white"),
    "kl": Hue("#B478B4", "#60246C", "ansi_bright_magenta"),
    "loss": Hue("#B4CC3C", "#6C7824", "ansi_bright_blue"),
    "entropy": Hue("#48B478", "#0C786C", "ansi_green"),
    "length": Hue("#789CFC", "#483C9C", "ansi_magenta"),
    "time": Hue("#9C909C", "#284050", "ansi_white"),
    "other": Hue("#CCC0B4", "#6C6048", "ansi_white"),
}
"""By role."""
_GROUPS = {
    "reward": "reward",
    "validation": "validation",
    "kl": "kl",
    "loss": "loss",
    "length": "length",
    "timing": "time",
    "throughput": "time",
}
"""The family of each group of metrics that has one."""


_INDICATORS = {
    "reward": "reward",
    "validation": "validation",
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
    """Return the role that colours a metric: its family's, or that of all others."""
    if indicator in _INDICATORS:
        return _INDICATORS[indicator]
    if key.rpartition("/")[2].startswith("entropy"):
        return "entropy"
    return _GROUPS.get(describe(key).group, "other")
