"""`verl-tui bundle`: evidence for a bug report in one file."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from verl_tui.commands.arguments import CommandError, count
from verl_tui.commands.options import (
    config_option,
    configuration,
    paths_argument,
    paths_of,
    piped,
)
from verl_tui.commands.output import (
    EXIT_NOTHING,
    check_target,
    print_messages,
    print_note,
    unwritten,
)

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from verl_tui.bundle.archive import BundleFile
    from verl_tui.commands.arguments import CommandParser
    from verl_tui.monitor import Monitor
    from verl_tui.runs.run import Run

NAME = "bundle"
HELP = "evidence for a bug report in one file, with secrets masked"
EXAMPLES = (
    "verl-tui bundle logs/run_7 --list",
    "verl-tui bundle logs/run_7 -o run_7.zip --stacks",
)


def options(parser: CommandParser) -> None:
    """Add its options."""
    parser.epilog = (
        "It holds a summary to paste into an issue, verdict and findings, settings, versions, "
        "curves, the ends of the logs and their tracebacks, the state of each source, GPUs and "
        "processes. What is in it is listed first. Tokens, keys, passwords, home directories and "
        "the names of users and hosts are masked, by names and known forms: look through it before "
        "you publish it."
    )
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE.zip", help="file to make"
    )
    which = "which run, if PATH holds several: its name, a part of it, or its path"
    parser.add_argument("--run", dest="named", metavar="RUN", help=which)
    parser.add_argument(
        "--list", action="store_true", help="only list what would be in it"
    )
    parser.add_argument(
        "--yes", action="store_true", help="do not ask before writing it"
    )
    lines = "include the last N lines of each log (default: 1000)"
    parser.add_argument("--lines", type=count, default=1000, metavar="N", help=lines)
    stacks = "include the present stacks of the run's processes, by py-spy"
    parser.add_argument("--stacks", action="store_true", help=stacks)
    samples = "include the newest samples, which may be private"
    parser.add_argument("--samples", action="store_true", help=samples)
    names = "leave the names of users and hosts, mail and IP addresses as they are"
    parser.add_argument("--keep-names", action="store_true", help=names)
    paths_argument(parser, "log or directory of a run")
    config_option(parser)


def run(options: argparse.Namespace) -> int:
    """Write the bundle; return the exit code."""
    if not options.list:
        _check_target(options.output)
    if piped(options.paths):
        raise CommandError(
            "-: standard input is kept nowhere, write it to a file first"
        )
    from verl_tui.bundle.archive import masked_files, write_private, zipped
    from verl_tui.bundle.contents import Wanted, gather
    from verl_tui.secrets import own_mask

    now = time.time()
    monitor = _loaded(
        paths_of(options, "verl-tui bundle logs/run_7 -o run_7.zip"), options, now
    )
    wanted = Wanted(options.lines, options.stacks, options.samples)
    found = gather(monitor, _chosen(monitor, options.named), now, wanted)
    mask = own_mask(keep_names=options.keep_names)
    files = masked_files(found.pieces, mask, found.words)
    print_messages(map(mask.text, found.problems))
    data = zipped(files)
    _print_contents(files, len(data))
    if options.list:
        return 0
    if not options.yes and not _is_agreed(options.output):
        print_note("nothing was written")
        return 0
    try:
        write_private(options.output, data)
    except OSError as error:
        raise unwritten(error, options.output) from error
    print_note(f"wrote {options.output}")
    return 0


def _check_target(path: Path | None) -> None:
    """Refuse a file that cannot be made before anything is read."""
    if path is None:
        raise CommandError(
            "name the file to make: -o FILE.zip, or list what would be in it: --list"
        )
    if path.suffix != ".zip":
        raise CommandError(f"{path} must end in .zip")
    check_target(path)


def _loaded(paths: Sequence[str], options: argparse.Namespace, now: float) -> Monitor:
    from verl_tui.monitor import load
    from verl_tui.sources.host.gpus import read_once

    monitor = load(paths, configuration(options), now)
    monitor.apply(read_once(now), now)
    print_messages(monitor.sentences)
    return monitor


def _chosen(monitor: Monitor, named: str | None) -> Run:
    """Return the requested run: the only one, or the one that was named."""
    from verl_tui.comparison.run_lookup import UnknownRunError, find_run

    runs = list(monitor.runs.values())
    if not runs:
        raise CommandError("no run to gather evidence on", EXIT_NOTHING)
    try:
        if named is not None:
            return find_run(runs, named)
        return _only(runs)
    except UnknownRunError as error:
        raise CommandError(f"--run: {error}") from error


def _only(runs: Sequence[Run]) -> Run:
    if len(runs) > 1:
        names = ", ".join(run.name for run in runs[:8]) + (
            ", …" if len(runs) > 8 else ""
        )
        raise CommandError(
            f"there are {len(runs)} runs: choose one with --run: {names}"
        )
    return runs[0]


def _print_contents(files: Sequence[BundleFile], size: int) -> None:
    """Print each file with its size and what it is."""
    name = max(len(file.name) for file in files)
    for file in files:
        print(f"{len(file.data):>11,}  {file.name:<{name}}  {file.about}")
    print(f"{size:>11,}  bytes as an archive", flush=True)


def _is_agreed(path: Path) -> bool:
    """Ask on a terminal whether to write the file; without one nobody can be asked."""
    if not (sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()):
        return True
    print(f"Write {path}? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
