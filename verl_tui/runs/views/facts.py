"""Facts that settings state about a run, each with the setting that it was read from."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.runs.stated_sizes import stated_setting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.runs.settings import RunSettings


class Fact(NamedTuple):
    """One fact about a run."""

    label: str
    value: str
    key: str
    """The settings (or the metric) that state it."""


def fact(settings: RunSettings, label: str, names: Sequence[str]) -> Fact | None:
    """Return the first of these settings that is stated, as a fact."""
    found = stated_setting(settings, names)
    if found is None:
        return None
    return Fact(label, short(found[1]), found[0])


def short(value: object) -> str:
    """Return a setting's value in few characters: `1e-06`, `off`."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, str) and re.fullmatch(
        r"[-+]?\d+(?:\.\d*)?[eE][-+]?\d+", value
    ):
        return f"{float(value):.6g}"  # YAML reads `1e-6` as text
    return str(value)
