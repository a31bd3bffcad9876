"""`verl-tui export prometheus`: metrics to scrape, at a port or in a file for node_exporter."""

from __future__ import annotations

import os
import stat
import time
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from verl_tui.commands.shared import (
    Options,
    check_target,
    print_message,
    writing,
)
from verl_tui.commands.signals import write_runs
from verl_tui.given_files import (
    UsageError,
    is_ordinary,
    is_there,
    read_given,
)

if TYPE_CHECKING:
    import ssl

    from verl_tui.exporters.endpoint import MetricsServer
    from verl_tui.exporters.prometheus import Exposition
    from verl_tui.monitor import Monitor

HELP = """
Metrics for Prometheus to scrape, at a port or in a file.

--port PORT without --textfile  port to listen on (9750, if not given; 0: any free one)
--bind ADDRESS without --textfile  address to listen on (127.0.0.1, if not given; others need a
                   login or a certificate)
--login-file FILE without --textfile  file with user:password for scrapers; or use the environment
                   variable VERL_TUI_LOGIN
--tls-cert FILE with --tls-key without --textfile  certificate chain, PEM: serves https
--tls-key FILE with --tls-cert  the certificate's key, PEM
--textfile FILE.prom  write this file instead of listening, for node_exporter's textfile collector
--follow with --textfile  with --textfile: keep writing until ctrl+c (a port is always served until
                   then)
--interval SECONDS  longest time between two updates; new values come at once (default: 10)
--runs N           export at most N runs, the newest (default: 100)
--metrics N        export at most N metrics per run (default: 500)
PATH...
--config FILE

for example:
    verl-tui export prometheus 'logs/run_*'
    verl-tui export prometheus logs/run_7 --textfile verl.prom --follow

exit codes: 0 done, 3 nothing readable
"""

LOGIN = "VERL_TUI_LOGIN"
"""Environment variable that may hold `user:password`."""
PORT = 9750
_LONGEST = 4096
"""Bytes of a file with a login."""


def run(options: Options) -> int:
    """Serve or write the metrics; return the exit code."""
    _ = options.settings
    if options.textfile is not None:
        check_target(options.textfile, replaces=True)
    try:
        from verl_tui.exporters.prometheus import exposition
    except ModuleNotFoundError as error:
        raise UsageError(
            "`export prometheus` needs prometheus-client: pip install 'verl-tui[prometheus]'"
        ) from error
    say = cache(print_message)  # once what the limits leave out

    def judged(monitor: Monitor) -> Exposition:
        now = time.time()
        monitor.judge(now)
        page = exposition(
            monitor, now, most_runs=options.runs, most_metrics=options.metrics
        )
        for words in page.left_out:
            say(words)
        return page

    def write(monitor: Monitor) -> None:
        """Replace the file in one go, so that no reader sees half of it."""
        from prometheus_client import generate_latest

        from verl_tui.given_files import replacing
        from verl_tui.sources.host.gpus import read_once

        if not options.follow:
            monitor.apply(read_once(options.now), options.now)

        text = generate_latest(judged(monitor)).decode()
        with writing(options.textfile), replacing(options.textfile) as out:
            out.write(text)

    if options.textfile is None:
        with closing(_server(options)) as endpoint:
            print_message(f"metrics are at {endpoint.address}")

            def show(monitor: Monitor) -> None:
                endpoint.show(judged(monitor))

            return write_runs(options, show, follow=True, newest=True)
    code = write_runs(options, write, follow=options.follow, newest=True)
    if not options.follow:
        print_message(f"wrote {options.textfile}")
    return code


def _server(options: Options) -> MetricsServer:
    from verl_tui.exporters.endpoint import MetricsServer, is_loopback

    bind = options.bind or "127.0.0.1"
    port = PORT if options.port is None else options.port
    login, tls = _login(options.login_file), _encryption(options)
    try:
        exposed = not is_loopback(bind)
    except (OSError, UnicodeError) as error:
        raise UsageError(f"--bind {bind}: there is no such address") from error
    if exposed and login is None and not tls:
        raise UsageError(
            f"--bind {bind} lets others read the metrics: ask them for a login (--login-file FILE, "
            f"or {LOGIN}=user:password in the environment), or encrypt (--tls-cert FILE --tls-key "
            "FILE)"
        )
    with writing(f"{bind}:{port}"):
        return MetricsServer(bind, port, login=login, tls=tls)


def _login(file: Path | None) -> str | None:
    """Return `user:password`, None where no login is configured."""
    if not file:
        where, text = LOGIN, os.environ.get(LOGIN)
    else:
        where = str(file)
        with writing(file, UsageError):
            text = read_given(file, _LONGEST).decode("utf-8-sig", "replace")
    if text is None:
        return None
    user, _, password = text.strip().partition(":")
    if not user or not password or set(password) & {"\n", "\ufffd"}:
        raise UsageError(f"{where}: must hold one line user:password")
    _warn_of_readers(file)
    return f"{user}:{password}"


def _encryption(options: Options) -> ssl.SSLContext | None:
    if options.tls_cert is None:
        return None
    from verl_tui.exporters.endpoint import encryption

    for file in (options.tls_cert, options.tls_key):
        if not is_ordinary(file):  # a pipe would have us wait for its writer
            why = "is no file" if is_there(file) else "no such file"
            raise UsageError(f"{file}: {why}")
    try:
        context = encryption(options.tls_cert, options.tls_key)
    except OSError as error:
        raise UsageError(
            f"{options.tls_cert}, {options.tls_key}: not a PEM certificate and its PEM key "
            "without a passphrase"
        ) from error
    _warn_of_readers(options.tls_key)
    return context


def _warn_of_readers(secret: Path | None) -> None:
    """Warn that others can read a file that should be private; mounted secrets often are
    readable.
    """
    mode = stat.S_IMODE(secret.stat().st_mode) if secret else 0
    if mode & 0o077:
        print_message(
            f"{secret}: others may read or change it (mode {mode:04o}): chmod 600 {secret}"
        )
