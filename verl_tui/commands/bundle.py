"""`verl-tui bundle`: evidence for a bug report in one file."""

from __future__ import annotations

import sys
from pathlib import Path

from verl_tui.commands.shared import (
    Options,
    check_target,
    print_message,
    print_note,
    writing,
)
from verl_tui.given_files import UsageError, replacing

HELP = """
Evidence for a bug report in one file, with secrets masked.

-o, --output FILE.zip  file to make
--run RUN     which run, if PATH holds several: its name, a part of it, or its path
--list        only list what would be in it
--yes         do not ask before writing it
--lines N     include the last N lines of each log (default: 1000)
--stacks      include the present stacks of the run's processes, by py-spy
--samples     include the newest samples, which may be private
--keep-names  leave the names of users and hosts, mail and IP addresses as they are
PATH...       log or directory of a run
--config FILE

for example:
    verl-tui bundle logs/run_7 --list
    verl-tui bundle logs/run_7 -o run_7.zip --stacks

It holds a summary to paste into an issue, verdict and findings, settings, versions, curves, the
ends of the logs and their tracebacks, the state of each source, GPUs and processes. What is in it
is listed first. Tokens, keys, passwords, home directories and the names of users and hosts are
masked, by names and known forms: look through it before you publish it.

exit codes: 0 done, 3 nothing readable
"""


def run(options: Options) -> int:
    """Write the bundle; return the exit code."""
    if not options.list:
        if options.output is None:
            raise UsageError(
                "name the file to make: -o FILE.zip, or list what would be in it: --list"
            )
        check_target(options.output)
    from verl_tui.bundle.contents import Bundle, masked_files, zipped
    from verl_tui.runs.run_id import find_run
    from verl_tui.secrets import own_mask
    from verl_tui.sources.host.gpus import read_once

    now, monitor = options.now, options.load()
    monitor.apply(read_once(now), now)
    run = find_run([*monitor.runs.values()], options.run)
    found = Bundle(monitor, run, now, options.lines, options.stacks, options.samples)
    mask = own_mask(keep_names=options.keep_names)
    files = masked_files(found.files(), mask, found.words)
    print_message(*map(mask.text, found.problems))
    data = zipped(files)
    wide = max(len(file.name) for file in files)
    for file in files:
        print(f"{len(file.content):>11,}  {file.name:<{wide}}  {file.about}")
    print(f"{len(data):>11,}  bytes as an archive", flush=True)
    if options.list:
        return 0
    if not options.yes and not _is_agreed(options.output):
        print_note("nothing was written")
        return 0
    new = replacing(options.output, new=True, rights=0o600)
    with writing(options.output), new as out:
        out.buffer.write(data)
    print_note(f"wrote {options.output}")
    return 0


def _is_agreed(path: Path) -> bool:
    """Ask on a terminal whether to write the file; without one nobody can be asked."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return True
    print(f"Write {path}? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
