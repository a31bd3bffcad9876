"""`verl-tui web PATH...`: watch runs in a browser."""

from __future__ import annotations

import asyncio
import shlex
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from verl_tui.commands.shared import (
    Options,
    need_runs,
    print_message,
    writing,
)
from verl_tui.given_files import UsageError

if TYPE_CHECKING:
    from verl_tui.web import WebServer

HELP = """
Watch runs in a browser, in the same app as in the terminal.

--port PORT       port to listen on (default: 9751)
--bind ADDRESS    address to listen on; on others than this machine's own, nothing is encrypted, so
                  others may read along (default: 127.0.0.1)
--public-url URL  address for browsers, if it differs: behind a tunnel to another port, or a TLS
                  proxy
PATH...           log, directory or quoted glob
--config FILE
--ascii
--no-mouse

for example:
    verl-tui web 'logs/run_*'

exit codes: 0 done, 3 nothing readable
"""


def run(options: Options) -> int:
    """Serve until ctrl+c; return the exit code."""
    paths = options.paths
    _ = options.settings
    public = (options.public_url or "").rstrip("/")
    _check(options)
    try:
        from verl_tui.web import WebServer
    except ModuleNotFoundError as error:
        raise UsageError(
            "`web` needs textual-serve: pip install 'verl-tui[web]'"
        ) from error
    need_runs(paths)
    command = _command(options, paths)
    with writing(f"{options.bind}:{options.port}"):
        asyncio.run(_serve(WebServer(command, options.bind, options.port, public)))
    return 0


def _check(options: Options) -> None:
    """Refuse addresses that cannot be served."""
    public = options.public_url
    if options.port == 0:
        raise UsageError("--port 0: name a port, browsers need to know it")
    if public and not public.startswith(("http://", "https://")):
        raise UsageError(f"--public-url {public}: must begin with http:// or https://")


async def _serve(server: WebServer) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    await server.serve_until(stop, print_message)


def _command(options: Options, paths: Sequence[str]) -> str:
    """Return the command of each page, for a shell."""
    words = [sys.executable, "-m", "verl_tui", "watch"]
    if options.config is not None:
        words += ["--config", str(options.config)]
    words += ["--ascii"] * options.ascii + ["--no-mouse"] * options.no_mouse
    return shlex.join([*words, "--", *paths])
