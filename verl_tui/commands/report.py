"""`verl-tui report`: runs in one file, for a pull request, a wiki or a program."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from verl_tui import __version__
from verl_tui.commands.shared import (
    Options,
    plain_output,
    print_message,
    print_note,
    writing,
)
from verl_tui.given_files import (
    NothingError,
    OutputError,
    UsageError,
    is_link,
    is_ordinary,
    is_taken,
    read_given,
)
from verl_tui.sources.files import is_folder

if TYPE_CHECKING:
    from verl_tui.report.record import Report

HELP = """
Verdicts, comparison, curves, findings, checkpoints and samples in one file.

-o, --output FILE|-  new file that ends in .md, .html or .json; - is standard output
--format md|html|json without --status  form of what goes to standard output, or of a file with
                another ending
--force         replace a file that exists
--status        write a short page in Markdown on how the runs are now, the worst first; it replaces
                an earlier one as a whole (standard output, if no -o is given)
--charts DIR without --status  also write each chart as an SVG file into this directory
--baseline RUN without --status
PATH...
--config FILE

for example:
    verl-tui report 'logs/run_*' -o report.html
    verl-tui report logs/new logs/old --baseline old -o report.md --charts charts
    verl-tui report logs/run_7 --status -o STATUS.md

exit codes: 0 done, 3 nothing readable
"""

_FORMATS = {
    ".md": "md",
    ".html": "html",
    ".json": "json",
    ".htm": "html",
    ".markdown": "md",
}
"""Ending of a file -> form."""
_MOST_OF_COMMENT = 65_536
"""Characters of a pull request's description or comment on GitHub."""


def run(options: Options) -> int:
    """Write the report; return the exit code."""
    from verl_tui.rendering.session.notes import NoteBook
    from verl_tui.rendering.session.preferences import state_path
    from verl_tui.report.record import make_report
    from verl_tui.report.reported_samples import masked

    if options.status:
        return _status(options)
    form = _form(options)
    if options.output != "-":
        _check_target(Path(options.output), force=options.force)
    monitor, command = options.load(), shlex.join(["verl-tui", *sys.argv[1:]])
    runs = options.baseline_first(monitor, "report on")
    notes = NoteBook(state_path())
    report = make_report(monitor, runs, options.now, masked(command), notes)
    _write(report, form, options)
    return 0


def _status(options: Options) -> int:
    """Write the page on how runs are; return the exit code."""
    from verl_tui.check.data import is_readable, report
    from verl_tui.report.status import MARK, status_text

    target = options.output or "-"
    if _FORMATS.get(Path(target).suffix.lower(), "md") != "md":
        raise UsageError(
            f"{target}: --status writes Markdown: name a file that ends in .md"
        )
    if target != "-":
        ours = options.force or _begins_with(Path(target), MARK)
        _check_target(Path(target), force=ours)
    now, monitor = options.now, options.load()
    _put(status_text(monitor, now, __version__), target, replace=True)
    return 0 if is_readable(report(monitor, now)) else NothingError.code


def _begins_with(path: Path, mark: str) -> bool:
    """Return whether a file, and no link to one, begins with a line of ours."""
    with writing(path):
        ours = is_ordinary(path) and not is_link(path)
        return ours and read_given(path, len(mark)) == mark.encode()


def _put(text: str, target: str, *, replace: bool) -> None:
    from verl_tui.report.documents import write_new

    if target == "-":
        print(text, end="", file=plain_output(), flush=True)
        return
    with writing(target):
        write_new(Path(target), text, replace=replace)


def _form(options: Options) -> str:
    """Return the form that was asked for.

    Raises:
        UsageError: Nothing says it, or the file's ending says another.
    """
    if options.output is None:
        raise UsageError("name a file with -o, such as -o report.html, .md or .json")
    ending = Path(options.output).suffix.lower()
    form: str | None = _FORMATS.get(ending, options.format)
    if options.format not in (None, form):
        raise UsageError(
            f"{options.output}: --format {form} goes with this ending, --format {options.format} "
            f"with .{options.format}"
        )
    if form is not None:
        return form
    if options.output == "-":
        raise UsageError("-o -: say which form with --format md, html or json")
    raise UsageError(
        f"{options.output}: a report ends in .md, .html or .json; --format says it for others"
    )


def _check_target(path: Path, *, force: bool) -> None:
    """Refuse, before anything is read, an output that could not be written afterwards."""
    if is_folder(path):
        raise OutputError(f"{path} is a directory: name a file")
    if not force and is_taken(path):
        raise OutputError(f"{path} exists: --force replaces it")
    if not is_folder(path.parent):
        raise OutputError(f"{path}: there is no directory {path.parent}")


def _write(report: Report, form: str, options: Options) -> None:
    from verl_tui.report.documents import report_text, write_charts

    with writing(options.output):
        written = write_charts(report, options.charts, replace=options.force)
    text = report_text(report, form, written, options.output)
    _put(text, options.output, replace=options.force)
    for path in (*written, options.output) if options.output != "-" else ():
        print_note(f"wrote {path}")
    if form == "md" and len(text) > _MOST_OF_COMMENT:
        print_message(
            f"{len(text):,} characters of Markdown: more than the {_MOST_OF_COMMENT:,} of a "
            "comment on GitHub; attach .html instead"
        )
