"""Words to whoever is not looking: the terminal's bell, and notifications that the terminal shows on the desktop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from verl_tui.config import Config
    from verl_tui.health.finding import Finding

_LONGEST = 200
"""Characters: terminals and desktops cut longer ones themselves, each in its own way."""
_TITLE = "verl-tui"
_BELL = "\a"


def notices(news: Sequence[tuple[str, Finding]], config: Config, environment: Mapping[str, str]) -> str:
    """Return what is written to the terminal to tell of new findings; empty where nothing is to be told.

    Args:
        news: New findings with the names of their runs.
        config: Says what the user wants to hear of, and how.
        environment: The process's environment variables: in tmux sequences must be wrapped.
    """
    told = [(run, one) for run, one in news if one.severity.word in _FROM[config.notify_from]]
    if not told:
        return ""
    out = _BELL if config.bell else ""
    for run, finding in told:
        sequence = _sequence(config.notify, one_line(f"{run}: {finding.id}: {finding.message}", _LONGEST))
        out += _through_tmux(sequence) if environment.get("TMUX") and sequence else sequence
    return out


_FROM = {"warning": ("warning", "critical"), "critical": ("critical",)}


def _sequence(kind: str, text: str) -> str:
    if kind == "osc9":
        return f"\x1b]9;{text}\a"
    # Its fields are parted by semicolons.
    return f"\x1b]777;notify;{_TITLE};{text.replace(';', ',')}\a" if kind == "osc777" else ""


def _through_tmux(sequence: str) -> str:
    """Wrap a sequence so that tmux hands it on; it does so where `allow-passthrough` is on."""
    return "\x1bPtmux;" + sequence.replace("\x1b", "\x1b\x1b") + "\x1b\\"
