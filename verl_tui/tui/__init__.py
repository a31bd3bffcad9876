"""The terminal app: the only part that knows Textual."""

from __future__ import annotations

import gc
import os
import sys
from contextlib import suppress
from time import time
from typing import TYPE_CHECKING, Any

# Frames a second that Textual draws at most, unless the user has set it. With its 60, a drawing in
# the frame after the answer to a key waits for 17 ms; nothing is drawn more often for it.
os.environ.setdefault("TEXTUAL_FPS", "120")
# Milliseconds after which an escape is the key and not the beginning of another. Terminals write a
# key in one piece, and a serial line of 9600 baud has its next byte after one; Textual waits for
# 100.
os.environ.setdefault("ESCDELAY", "15")

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from textual.pilot import Pilot

    from verl_tui.config import Config
    from verl_tui.notify.notifier import Notifier
    from verl_tui.replay import Playback
    from verl_tui.tui.app import VerlApp

_YOUNG = 10_000
"""Objects after which garbage is looked for among the new ones."""
_NEVER = 1_000_000
"""Searches for garbage among the younger objects, before one among all."""


def watch(
    specs: Sequence[str],
    config: Config,
    *,
    snapshot: Path | None = None,
    size: tuple[int, int] = (120, 40),
    notifier: Notifier | None = None,
) -> int:
    """Watch runs until the user quits; or draw a single frame into a file.

    Args:
        specs: Paths, directories and globs; `-` is standard input, keys are then read from the
            terminal itself.
        config: The user's configuration.
        snapshot: An `.svg` or `.txt` file to draw one frame into instead.
        size: Columns and rows of that frame.
        notifier: Sends notifications of what is found meanwhile.

    Returns:
        The exit code.

    Raises:
        OSError: The snapshot cannot be written.
    """
    from verl_tui.sources import pipe
    from verl_tui.tui.app import VerlApp

    if snapshot:
        return _draw(specs, config, snapshot, size)
    if any(map(pipe.is_meant, specs)):
        pipe.make_way()
    return _run(VerlApp(specs, config, notifier=notifier, **_of_the_user(config)))


def replay(playback: Playback, config: Config) -> int:
    """Show a replay until the user quits; return the exit code."""
    from verl_tui.tui.replay_app import ReplayApp

    return _run(ReplayApp(playback, config, **_of_the_user(config)))


def _of_the_user(config: Config) -> dict[str, Any]:
    """Return what the user's terminal can show, and what is remembered of the user."""
    from verl_tui.rendering.session.preferences import StateFile, state_path
    from verl_tui.rendering.text.ascii_table import keeps_to_ascii

    # Textual would keep to the size that a shell exports. A page in a browser is no terminal to
    # ask: textual-serve sets its size in these variables.
    for name in () if os.environ.get("TEXTUAL_DRIVER") else ("COLUMNS", "LINES"):
        os.environ.pop(name, None)
    ascii_only = keeps_to_ascii(config.ascii)
    return {"ascii_only": ascii_only, "state_file": StateFile(state_path())}


def _run(app: VerlApp, **options: Any) -> int:
    """Run an app; return its exit code. Once the screen is gone, say on stderr which errors have
    cost a part of it.
    """
    # Looking for garbage among all objects takes 30 to 80 ms with many runs, often in the middle of
    # a key: the app has that done once a minute. What has been imported is left out of it.
    gc.freeze()
    gc.set_threshold(_YOUNG, gc.get_threshold()[1], _NEVER)
    code = app.run(mouse=app.config.mouse, **options) or app.return_code or 0
    sentence = app.failures.sentence()
    if sentence:
        more = "(--debug-log FILE keeps the tracebacks)"
        with suppress(OSError):
            print(sentence, more, file=sys.stderr)
    return code


def _draw(
    specs: Sequence[str],
    config: Config,
    snapshot: Path,
    size: tuple[int, int],
) -> int:
    from verl_tui.given_files import replacing
    from verl_tui.monitor import load
    from verl_tui.rendering.text.ascii_table import keeps_to_ascii
    from verl_tui.sources.host.gpus import read_once
    from verl_tui.tui.app import VerlApp
    from verl_tui.tui.export import screen_picture, settled

    now = time()
    monitor = load(specs, config, now)
    monitor.apply(read_once(now), now)
    ascii_only = keeps_to_ascii(config.ascii, on_terminal=False)
    app = VerlApp(
        specs, config, monitor=monitor, clock=lambda: now, ascii_only=ascii_only
    )

    async def take(pilot: Pilot[object]) -> None:
        await settled(pilot, app.browser)
        text = screen_picture(app, snapshot.suffix)
        with replacing(snapshot) as file:
            file.write(text)
        app.exit(0)

    return _run(app, headless=True, size=size, auto_pilot=take)
