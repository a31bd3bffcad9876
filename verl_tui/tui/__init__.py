"""The terminal app: the only part that knows Textual."""

from __future__ import annotations

import locale
from time import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from textual.pilot import Pilot

    from verl_tui.config import Config


def watch(
    specs: Sequence[str], config: Config, *, snapshot: Path | None = None, size: tuple[int, int] = (120, 40)
) -> int:
    """Watch runs until the user quits; or draw a single frame into a file.

    Args:
        specs: Paths, directories and globs; `-` is standard input, keys are then read from the terminal itself.
        config: The user's configuration.
        snapshot: An `.svg` or `.txt` file to draw one frame into instead.
        size: Columns and rows of that frame.

    Returns:
        The exit code.

    Raises:
        OSError: The snapshot cannot be written.
    """
    from verl_tui.sources import pipe
    from verl_tui.tui.app import VerlApp
    from verl_tui.tui.state_file import StateFile, state_path

    ascii_only = config.ascii if config.ascii is not None else not _speaks_unicode()
    if snapshot is None:
        if any(map(pipe.is_meant, specs)):
            pipe.make_way()
        remembered = StateFile(state_path())
        return VerlApp(specs, config, ascii_only=ascii_only, state_file=remembered).run(mouse=config.mouse) or 0
    return _draw(specs, config, snapshot, size, ascii_only=ascii_only)


def _draw(specs: Sequence[str], config: Config, snapshot: Path, size: tuple[int, int], *, ascii_only: bool) -> int:
    from verl_tui.monitor import load
    from verl_tui.sources.gpus import GpuSource
    from verl_tui.tui.app import VerlApp
    from verl_tui.tui.frame import screen_svg, screen_text, settled

    now = time()
    monitor = load(specs, config, now)
    gpus = GpuSource()
    monitor.apply(gpus.read(now), now)
    gpus.close()
    app = VerlApp(specs, config, monitor=monitor, clock=lambda: now, ascii_only=ascii_only)

    async def take(pilot: Pilot[object]) -> None:
        await settled(pilot, app.browser)
        text = screen_svg(app, "verl-tui") if snapshot.suffix == ".svg" else screen_text(app)
        snapshot.write_text(text, encoding="utf-8")
        app.exit(0)

    return app.run(headless=True, size=size, auto_pilot=take) or 0


def _speaks_unicode() -> bool:
    # Python itself takes LC_ALL=C for UTF-8, so the locale's name is asked first.
    from verl_tui.tui.widgets.braille import ascii_locale

    encoding = locale.getpreferredencoding(False).lower().replace("-", "")  # noqa: FBT003
    return not ascii_locale() and encoding in {"utf8", "gb18030"}
