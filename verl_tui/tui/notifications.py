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
_BELL = "\a"
_FORMS = {"osc9": "\x1b]9;{}\a", "osc777": "\x1b]777;notify;verl-tui;{}\a"}


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
    texts = [": ".join(filter(None, one[:3])) for one in wanted]
    if len(texts) > _MOST:
        more = len(texts) - _MOST + 1
        texts[_MOST - 1 :] = [f"{more} more, the first of them {texts[_MOST - 1]}"]
    form = _FORMS.get(config.desktop, "")
    # Semicolons separate fields in 777, and make a progress bar in some terminals' 9.
    said = [printable(one_line(text, _LONGEST)).replace(";", ",") for text in texts]
    sequences = [*map(form.format, said)]
    if environment.get("TMUX"):
        sequences = [*map(_through_tmux, sequences)]
    return "".join([_BELL * config.bell, *sequences])


def _through_tmux(sequence: str) -> str:
    """Wrap a sequence so that tmux passes it on, if its `allow-passthrough` is on."""
    return "\x1bPtmux;" + sequence.replace("\x1b", "\x1b\x1b") + "\x1b\\"
