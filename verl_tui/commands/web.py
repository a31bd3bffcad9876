"""`verl-tui web PATH...`: watch runs in a browser."""

from __future__ import annotations

import os
import shlex
import sys
from typing import TYPE_CHECKING

from verl_tui.commands.arguments import CommandError, port
from verl_tui.commands.options import (
    paths_and_config,
    paths_argument,
    piped,
    screen_options,
)
from verl_tui.commands.output import (
    EXIT_NOTHING,
    EXIT_OUTPUT,
    print_message,
    print_messages,
)

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from verl_tui.commands.arguments import CommandParser
    from verl_tui.web import WebServer

NAME = "web"
HELP = "watch runs in a browser, in the same app as in the terminal"
EXAMPLES = ("verl-tui web 'logs/run_*'",)
PORT = 9751
_EXAMPLE = "verl-tui web 'logs/run_*'"
_MISSING = "`web` needs textual-serve: pip install 'verl-tui[web]'"


def options(parser: CommandParser) -> None:
    """Add its options."""
    parser.add_argument(
        "--port",
        type=port,
        default=PORT,
        metavar="N",
        help="port to listen on (default: %(default)d)",
    )
    others = (
        "address to listen on (default: 127.0.0.1; nothing is encrypted, "
        "so others may read along)"
    )
    parser.add_argument("--bind", default="127.0.0.1", metavar="ADDRESS", help=others)
    public = "address for browsers, if it differs: behind a tunnel to another port, or a TLS proxy"
    parser.add_argument("--public-url", default="", metavar="URL", help=public)
    screen_options(parser)
    paths_argument(parser, "log, directory or quoted glob")


def run(options: argparse.Namespace) -> int:
    """Serve until ctrl+c; return the exit code."""
    paths, _ = paths_and_config(options, _EXAMPLE)
    _check(options, paths)
    try:
        from verl_tui.web import WebServer
    except ModuleNotFoundError as error:
        raise CommandError(_MISSING) from error
    import asyncio

    from verl_tui.sources.feed import Feed

    found = Feed(paths).scan()
    print_messages(found.problems)
    if not found.runs and not found.pending:
        return EXIT_NOTHING
    server = WebServer(
        _command(options, paths),
        options.bind,
        options.port,
        options.public_url.rstrip("/"),
    )
    try:
        asyncio.run(_serve(server))
    except OSError as error:
        why = (
            os.strerror(error.errno).lower()
            if error.errno and error.errno > 0
            else str(error)
        )
        raise CommandError(
            f"{options.bind}:{options.port}: {why}", EXIT_OUTPUT
        ) from error
    return 0


async def _serve(server: WebServer) -> None:
    import asyncio
    import signal

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    await server.serve_until(stop, print_message)


def _check(options: argparse.Namespace, paths: Sequence[str]) -> None:
    """Refuse paths and addresses that cannot be served."""
    if piped(paths):
        raise CommandError(
            "-: every page reads the log anew, and a pipe can be read only once; write it to a file"
        )
    if options.port == 0:
        raise CommandError("--port 0: name a port, browsers need to know it")
    if options.public_url and not options.public_url.startswith(
        ("http://", "https://")
    ):
        raise CommandError(
            f"--public-url {options.public_url}: must begin with http:// or https://"
        )


def _command(options: argparse.Namespace, paths: Sequence[str]) -> str:
    """Return the command of each page, for a shell."""
    words = [sys.executable, "-m", "verl_tui", "watch"]
    if options.config is not None:
        words += ["--config", str(options.config)]
    words += ["--ascii"] * options.ascii + ["--no-mouse"] * options.no_mouse
    return shlex.join([*words, "--", *paths])
