"""Notifications outside the app: the terminal's bell, and those that it shows on the desktop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.health.finding import Severity
from verl_tui.rendering.text.printable import printable
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from verl_tui.config import Config
    from verl_tui.rendering.session.acknowledgements import Occurrence

_LONGEST = 200
"""Characters of a notification: terminals and desktops cut longer ones, each in its own way."""
_MOST = 4
"""Notifications at a time: a run that collapses breaks many rules at once."""
_TITLE = "verl-tui"
_BELL = "\a"


def notices(
    news: Sequence[Occurrence], config: Config, environment: Mapping[str, str]
) -> str:
    """Return the escape sequences that notify of news; empty if the user wants none.

    Args:
        news: Findings from the severity that the user wants on are notified, and every finished
            run.
        config: The user's configuration: severity, bell and kind of notifications.
        environment: The process's environment variables: in tmux sequences must be wrapped.
    """
    least = Severity[config.desktop_from.upper()]
    wanted = [one for one in news if one.severity is None or one.severity >= least]
    if not wanted:
        return ""
    out = _BELL if config.bell else ""
    for text in _texts(wanted):
        sequence = _sequence(config.desktop, printable(one_line(text, _LONGEST)))
        out += (
            _through_tmux(sequence)
            if sequence and environment.get("TMUX")
            else sequence
        )
    return out


def _texts(news: Sequence[Occurrence]) -> Sequence[str]:
    texts = [": ".join(filter(None, (one.run, one.what, one.message))) for one in news]
    if len(texts) > _MOST:
        texts[_MOST - 1 :] = [
            f"{len(texts) - _MOST + 1} more, the first of them {texts[_MOST - 1]}"
        ]
    return texts


def _sequence(kind: str, text: str) -> str:
    # Semicolons separate fields in 777, and make a progress bar in some terminals' 9.
    text = text.replace(";", ",")
    if kind == "osc9":
        return f"\x1b]9;{text}\a"
    return f"\x1b]777;notify;{_TITLE};{text}\a" if kind == "osc777" else ""


def _through_tmux(sequence: str) -> str:
    """Wrap a sequence so that tmux passes it on, if its `allow-passthrough` is on."""
    return "\x1bPtmux;" + sequence.replace("\x1b", "\x1b\x1b") + "\x1b\\"
