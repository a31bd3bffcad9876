"""`verl-tui export prometheus`: metrics to scrape, at a port or in a file for node_exporter."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path
from typing import TYPE_CHECKING

from verl_tui.commands.arguments import (
    CommandError,
    count,
    port,
    seconds,
)
from verl_tui.commands.options import (
    config_option,
    configuration,
    paths_argument,
    paths_of,
)
from verl_tui.commands.output import (
    EXIT_NOTHING,
    EXIT_OUTPUT,
    check_target,
    print_message,
    print_messages,
)
from verl_tui.commands.until_signal import write_until_stopped
from verl_tui.given_files import is_ordinary, is_there, read_given

if TYPE_CHECKING:
    import argparse
    import ssl
    from collections.abc import Sequence

    from verl_tui.commands.arguments import CommandParser
    from verl_tui.config import Config
    from verl_tui.exporters.prometheus import ExportLimits, Exposition
    from verl_tui.monitor import Monitor

LOGIN = "VERL_TUI_LOGIN"
"""Environment variable that may hold `user:password`."""
PORT = 9750
_LONGEST = 4096
"""Bytes of a file with a login."""
_MISSING = (
    "`export prometheus` needs prometheus-client: pip install 'verl-tui[prometheus]'"
)
NAME = "prometheus"
HELP = "metrics for Prometheus to scrape, at a port or in a file"
EXAMPLES = (
    "verl-tui export prometheus 'logs/run_*'",
    "verl-tui export prometheus logs/run_7 --textfile verl.prom --follow",
)
_EXAMPLE = "verl-tui export prometheus 'logs/run_*'"


def options(parser: CommandParser) -> None:
    """Add its options."""
    parser.add_argument(
        "--port",
        type=port,
        metavar="N",
        help=f"port to listen on (default: {PORT}; 0: any free one)",
    )
    parser.add_argument(
        "--bind",
        metavar="ADDRESS",
        help="address to listen on (default: 127.0.0.1; others need a login or a certificate)",
    )
    login = (
        f"file with user:password for scrapers; or use the environment variable {LOGIN}"
    )
    parser.add_argument("--login-file", type=Path, metavar="FILE", help=login)
    parser.add_argument(
        "--tls-cert",
        type=Path,
        metavar="FILE",
        help="certificate chain, PEM: serves https",
    )
    parser.add_argument(
        "--tls-key", type=Path, metavar="FILE", help="the certificate's key, PEM"
    )
    file = (
        "write this file instead of listening, for node_exporter's textfile collector"
    )
    parser.add_argument("--textfile", type=Path, metavar="FILE.prom", help=file)
    parser.flag(
        "--follow",
        help="with --textfile: keep writing until ctrl+c (a port is always served until then)",
    )
    every = "longest time between two updates; new values come at once (default: %(default)g)"
    parser.add_argument(
        "--interval", type=seconds, default=10.0, metavar="SECONDS", help=every
    )
    parser.add_argument(
        "--runs",
        type=count,
        default=100,
        metavar="N",
        help="export at most N runs, the newest (default: %(default)d)",
    )
    most = "export at most N metrics per run (default: %(default)d)"
    parser.add_argument("--metrics", type=count, default=500, metavar="N", help=most)
    paths_argument(parser)
    config_option(parser)


def run(options: argparse.Namespace) -> int:
    """Serve or write the metrics; return the exit code."""
    paths = paths_of(options, _EXAMPLE)
    config = configuration(options)
    _check(options)
    try:
        from verl_tui.exporters.prometheus import ExportLimits
    except ModuleNotFoundError as error:
        raise CommandError(_MISSING) from error
    metrics = _JudgedMetrics(ExportLimits(options.runs, options.metrics))
    if options.textfile is None:
        return _serve(options, paths, config, metrics)
    if options.follow:
        return write_until_stopped(
            paths,
            config,
            lambda monitor: _write(metrics.now(monitor), options.textfile),
            interval=options.interval,
            newest=True,
        )
    return _once(options.textfile, paths, config, metrics)


class _JudgedMetrics:
    """Judges runs and builds their metrics; reports once what the limits leave out."""

    def __init__(self, limits: ExportLimits) -> None:
        self._limits = limits
        self._reported: tuple[str, ...] = ()

    def now(self, monitor: Monitor) -> Exposition:
        """Judge, and return all metrics as they are now."""
        from verl_tui.exporters.prometheus import exposition

        now = time.time()
        monitor.judge(now)
        page = exposition(monitor, now, self._limits)
        print_messages(words for words in page.left_out if words not in self._reported)
        self._reported = page.left_out
        return page


def _once(
    file: Path, paths: Sequence[str], config: Config, metrics: _JudgedMetrics
) -> int:
    from verl_tui.monitor import load
    from verl_tui.sources.host.gpus import read_once

    monitor = load(paths, config, time.time())
    print_messages(monitor.sentences)
    if not any(run.keys or run.samples.places for run in monitor.runs.values()):
        raise CommandError("nothing to export", EXIT_NOTHING)
    now = time.time()
    monitor.apply(read_once(now), now)
    _write(metrics.now(monitor), file)
    print_message(f"wrote {file}")
    return 0


def _write(exposition: Exposition, file: Path) -> None:
    """Replace the file in one go, so that no reader sees half of it."""
    from prometheus_client import generate_latest

    from verl_tui.exporters.whole_file import replacing

    try:
        with replacing(file) as out:
            out.write(generate_latest(exposition).decode())
    except OSError as error:
        raise CommandError(
            f"{file}: {(error.strerror or str(error)).lower()}", EXIT_OUTPUT
        ) from error


def _serve(
    options: argparse.Namespace,
    paths: Sequence[str],
    config: Config,
    metrics: _JudgedMetrics,
) -> int:
    from verl_tui.exporters.endpoint import MetricsServer

    bind = options.bind or "127.0.0.1"
    number = PORT if options.port is None else options.port
    login = _login(options.login_file)
    tls = _encryption(options)
    if not _loopback(bind) and login is None and tls is None:
        raise CommandError(
            f"--bind {bind} lets others read the metrics: ask them for a login (--login-file FILE, "
            f"or {LOGIN}="
            "user:password in the environment), or encrypt (--tls-cert FILE --tls-key FILE)"
        )
    try:
        endpoint = MetricsServer(bind, number, login=login, tls=tls)
    except OSError as error:
        raise CommandError(
            f"{bind}:{number}: {(error.strerror or str(error)).lower()}", EXIT_OUTPUT
        ) from error
    print_message(f"metrics are at {endpoint.address}")
    try:
        return write_until_stopped(
            paths,
            config,
            lambda monitor: endpoint.show(metrics.now(monitor)),
            interval=options.interval,
            newest=True,
        )
    finally:
        endpoint.close()


def _check(options: argparse.Namespace) -> None:
    """Refuse options that contradict each other."""
    if options.textfile is not None:
        named = [
            f"--{name.replace('_', '-')}"
            for name in _OF_PORTS
            if getattr(options, name) is not None
        ]
        if named:
            raise CommandError(f"{named[0]} is for a port, and --textfile opens none")
        if options.textfile.suffix != ".prom":
            raise CommandError(
                f"{options.textfile} must end in .prom: node_exporter passes over other files"
            )
        check_target(options.textfile, replaces=True)
    elif options.follow:
        raise CommandError(
            "--follow is for --textfile; a port is served until ctrl+c anyhow"
        )
    if (options.tls_cert is None) != (options.tls_key is None):
        raise CommandError("--tls-cert and --tls-key belong together")


_OF_PORTS = ("port", "bind", "login_file", "tls_cert", "tls_key")


def _login(file: Path | None) -> str | None:
    """Return `user:password`, None where no login is configured."""
    where = LOGIN if file is None else str(file)
    try:
        text = _text(file) if file is not None else os.environ.get(LOGIN)
    except (OSError, UnicodeDecodeError) as error:
        why = "is not text"
        if isinstance(error, OSError):
            why = (error.strerror or str(error)).lower()
        raise CommandError(f"{where}: {why}") from error
    if text is None:
        return None
    user, _, password = text.strip().partition(":")
    if not user or not password or "\n" in password:
        raise CommandError(f"{where}: must hold one line user:password")
    _warn_of_readers(file)
    return f"{user}:{password}"


def _text(file: Path) -> str:
    return read_given(file, _LONGEST).decode("utf-8-sig")


def _encryption(options: argparse.Namespace) -> ssl.SSLContext | None:
    if options.tls_cert is None:
        return None
    from verl_tui.exporters.endpoint import encryption

    for file in (options.tls_cert, options.tls_key):
        if not is_ordinary(file):  # a pipe would have us wait for its writer
            raise CommandError(
                f"{file}: {'is no file' if is_there(file) else 'no such file'}"
            )
    try:
        context = encryption(options.tls_cert, options.tls_key)
    except OSError as error:
        pair = f"{options.tls_cert}, {options.tls_key}"
        raise CommandError(
            f"{pair}: not a PEM certificate and its PEM key without a passphrase"
        ) from error
    _warn_of_readers(options.tls_key)
    return context


def _warn_of_readers(secret: Path | None) -> None:
    """Warn that others can read a file that should be private; mounted secrets often are
    readable.
    """
    mode = stat.S_IMODE(secret.stat().st_mode) if secret is not None else 0
    if mode & 0o077:
        print_message(
            f"{secret}: others may read or change it (mode {mode:04o}): chmod 600 {secret}"
        )


def _loopback(bind: str) -> bool:
    from verl_tui.exporters.endpoint import is_loopback

    try:
        return is_loopback(bind)
    except (OSError, UnicodeError) as error:
        raise CommandError(f"--bind {bind}: there is no such address") from error
