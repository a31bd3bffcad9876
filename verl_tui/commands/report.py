"""`verl-tui report`: runs in one file, for a pull request, a wiki or a program."""

from __future__ import annotations

import io
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from verl_tui.commands.arguments import CommandError
from verl_tui.commands.baseline import baseline_first, baseline_option
from verl_tui.commands.options import (
    config_option,
    configuration,
    paths_argument,
    paths_of,
)
from verl_tui.commands.output import (
    EXIT_OUTPUT,
    print_message,
    print_messages,
    print_note,
    unwritten,
)
from verl_tui.given_files import is_taken
from verl_tui.sources.files.paths import is_folder

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from verl_tui.commands.arguments import CommandParser
    from verl_tui.monitor import Monitor
    from verl_tui.report.record import Report

NAME = "report"
HELP = "verdicts, comparison, curves, findings, checkpoints and samples in one file"
EXAMPLES = (
    "verl-tui report 'logs/run_*' -o report.html",
    "verl-tui report logs/new logs/old --baseline old -o report.md --charts charts",
)
_FORMATS = ("md", "html", "json")
_MOST_OF_COMMENT = 65_536
"""Characters of a pull request's description or comment on GitHub."""


def options(parser: CommandParser) -> None:
    """Add its options."""
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE|-",
        help="new file that ends in .md, .html or .json; - is standard output",
    )
    form = "form of what goes to standard output, or of a file with another ending"
    parser.add_argument("--format", choices=_FORMATS, help=form)
    parser.add_argument(
        "--force", action="store_true", help="replace a file that exists"
    )
    charts = "also write each chart as an SVG file into this directory"
    parser.add_argument("--charts", type=Path, metavar="DIR", help=charts)
    baseline_option(parser)
    paths_argument(parser)
    config_option(parser)


def run(options: argparse.Namespace) -> int:
    """Write the report; return the exit code."""
    from verl_tui.monitor import load

    paths = paths_of(options, "verl-tui report 'logs/run_*' -o report.html")
    form = _form(options)
    _refuse_existing(options)
    now = time.time()
    monitor = load(paths, configuration(options), now)
    print_messages(monitor.sentences)
    _write(_made(monitor, options, now), form, options)
    return 0


def _form(options: argparse.Namespace) -> str:
    """Return the form that was asked for.

    Raises:
        CommandError: Nothing says it.
    """
    if options.output is None:
        raise CommandError("name a file with -o, such as -o report.html, .md or .json")
    if options.format is not None:
        return str(options.format)
    if options.output == "-":
        raise CommandError("-o -: say which form with --format md, html or json")
    ending = Path(options.output).suffix.lower().lstrip(".")
    form = {"htm": "html", "markdown": "md"}.get(ending, ending)
    if form not in _FORMATS:
        raise CommandError(
            f"{options.output}: a report ends in .md, .html or .json; --format says it for others"
        )
    return form


def _refuse_existing(options: argparse.Namespace) -> None:
    """Refuse, before anything is read, an output that could not be written afterwards."""
    if options.output == "-":
        return
    path = Path(options.output)
    if is_folder(path):
        raise CommandError(f"{path} is a directory: name a file", EXIT_OUTPUT)
    if not options.force and is_taken(path):
        raise CommandError(f"{path} exists: --force replaces it", EXIT_OUTPUT)
    if not is_folder(path.parent):
        raise CommandError(f"{path}: there is no directory {path.parent}", EXIT_OUTPUT)


def _made(monitor: Monitor, options: argparse.Namespace, now: float) -> Report:
    from datetime import datetime
    from shlex import join

    from verl_tui import __version__
    from verl_tui.report.masked import masked
    from verl_tui.report.record import Origin, make_report
    from verl_tui.report.reported_samples import excerpts_of

    origin = Origin(
        version=__version__,
        command=masked(join(["verl-tui", *sys.argv[1:]])),
        made=datetime.fromtimestamp(now).astimezone().strftime("%Y-%m-%d %H:%M:%S %z"),
        sentences=tuple(monitor.sentences),
    )
    runs = baseline_first(monitor, options.baseline, now, "report on")
    return make_report(monitor, runs, now, origin, excerpts_of)


def _write(report: Report, form: str, options: argparse.Namespace) -> None:
    from verl_tui.report.files import write_charts, write_new
    from verl_tui.report.forms import drawn_charts, report_text

    pictures = drawn_charts(report)
    try:
        charts = write_charts(pictures, options.charts, replace=options.force)
        text = report_text(report, pictures, form, charts, options.output)
        if options.output != "-":
            write_new(Path(options.output), text, replace=options.force)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise unwritten(error, options.output) from error
    if options.output == "-":
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8", newline="")
        print(text, end="", flush=True)
    else:
        _tell([*charts, Path(options.output)])
    if form == "md" and len(text) > _MOST_OF_COMMENT:
        print_message(
            f"{len(text):,} characters of Markdown: more than the {_MOST_OF_COMMENT:,} of a "
            "comment on GitHub; attach .html instead"
        )


def _tell(paths: Iterable[Path]) -> None:
    for path in paths:
        print_note(f"wrote {path}")
