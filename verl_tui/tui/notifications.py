"""Words to whoever is not looking: the terminal's bell, and notifications that the terminal shows
on the desktop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.health.finding import Severity
from verl_tui.rendering.text.printable import printable
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from verl_tui.config import Config
    from verl_tui.rendering.session.acknowledgements import News

_LONGEST = 200
"""Characters: terminals and desktops cut longer ones themselves, each in its own way."""
_MOST = 4
"""Notifications at a time: a run that collapses breaks many rules at once."""
_TITLE = "verl-tui"
_BELL = "\a"


def notices(
    news: Sequence[News],
    config: Config,
    environment: Mapping[str, str],
    *,
    ascii_only: bool = False,
) -> str:
    """Return what is written to the terminal to tell of news; empty where nothing is to be told.

    Args:
        news: What has happened; that a run has finished is told whatever the severity that is asked
            for.
        config: Says what the user wants to hear of, and how.
        environment: The process's environment variables: in tmux sequences must be wrapped.
        ascii_only: Whether the terminal takes nothing but ASCII.
    """
    least = Severity[config.notify_from.upper()]
    told = [one for one in news if one.severity is None or one.severity >= least]
    if not told:
        return ""
    out = _BELL if config.bell else ""
    for text in _texts(told):
        sequence = _sequence(
            config.notify, printable(one_line(text, _LONGEST), ascii_only=ascii_only)
        )
        out += _through_tmux(sequence) if sequence and environment.get("TMUX") else sequence
    return out


def _texts(told: Sequence[News]) -> Sequence[str]:
    texts = [": ".join(part for part in (one.run, one.what, one.message) if part) for one in told]
    if len(texts) > _MOST:
        texts[_MOST - 1 :] = [
            f"{len(texts) - _MOST + 1} more, the first of them {texts[_MOST - 1]}"
        ]
    return texts


def _sequence(kind: str, text: str) -> str:
    text = text.replace(
        ";", ","
    )  # what stands between semicolons is a field in 777, a progress bar in some 9
    if kind == "osc9":
        return f"\x1b]9;{text}\a"
    return f"\x1b]777;notify;{_TITLE};{text}\a" if kind == "osc777" else ""


def _through_tmux(sequence: str) -> str:
    """Wrap a sequence so that tmux hands it on; it does so where `allow-passthrough` is on."""
    return "\x1bPtmux;" + sequence.replace("\x1b", "\x1b\x1b") + "\x1b\\"
