"""The command line: one small function a command, which imports what only it needs."""

from __future__ import annotations

import io
import os
import sys
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from verl_tui import __version__
from verl_tui.arguments import (
    DEFAULT,
    EXIT_USAGE,
    CommandError,
    Parser,
    ProgramParser,
    completes_paths,
    count,
    positive,
    seconds,
    share,
    size,
    snapshot,
    step,
)
from verl_tui.config import ConfigError, config_path, documented_defaults, load_config
from verl_tui.text import one_line

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from verl_tui.config import Config
    from verl_tui.demo import Simulation
    from verl_tui.replay import Tape

EXIT_NOTHING = 3
"""Nothing readable, or no terminal to draw on."""
EXIT_OUTPUT = 73
"""An output file that cannot be written."""
EXIT_INTERRUPTED = 130
EXIT_PIPE = 141
"""Whoever read the output has gone: what the shell reports of a program that dies of it."""

SHELLS = ("bash", "zsh", "tcsh")
_EXAMPLE = "verl-tui 'logs/run_*'"


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return the exit code.

    Args:
        argv: Words behind the program's name; the process's own without it.
    """
    try:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                # A terminal that cannot show a character shows a question mark rather than a traceback.
                stream.reconfigure(errors="replace")
        options = build_parser().read(sys.argv[1:] if argv is None else list(argv))
        code: int = options.run(options)
        sys.stdout.flush()
    except (CommandError, ConfigError) as error:
        complain(str(error))
        return getattr(error, "code", EXIT_USAGE)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        _close_stdout()
        return EXIT_PIPE
    return code


def complain(sentence: str) -> None:
    """Write a sentence to standard error; it may quote what stands in a file or a path."""
    print(f"verl-tui: {one_line(sentence, 1000)}", file=sys.stderr)


# -- the words ---------------------------------------------------------------------------------------------------------


def build_parser() -> Parser:
    """Return the parser of all commands."""
    parser = ProgramParser(
        prog="verl-tui",
        usage="verl-tui [OPTION]... PATH...\n       verl-tui COMMAND ...",
        description=f"Watch verl training runs in the terminal, for example: {_EXAMPLE}",
        epilog="A PATH is a log, the directory of a run, a directory of runs, or a quoted glob; - is standard input. "
        "A path named like a command is written ./check.",
    )
    parser.add_argument("--version", action="version", version=f"verl-tui {__version__}")
    parser.add_argument("--print-completion", choices=SHELLS, help="print a completion script for a shell")
    parser.set_defaults(run=_completion)
    _watch_options(parser)
    watch = parser.add_command(DEFAULT, _watch, "watch runs in the terminal (what PATH alone does)")
    _watch_options(watch)
    check = parser.add_command(
        "check", _check, "one look without a screen; exits 0 healthy, 1 warning, 2 critical, 3 nothing readable"
    )
    check.add_argument("--json", action="store_true", help="write JSON for programs")
    by = "metric of the best checkpoint: an indicator or the log's own key, with :min or :max (reward)"
    check.add_argument("--best-by", metavar="METRIC", default="reward", help=by)
    guard = parser.add_command(
        "guard", _guard, "follow runs without a screen; run a command, once a run, when a circuit breaker trips"
    )
    _guard_options(guard)
    replay = parser.add_command("replay", _replay, "a recorded run played as if live: pause, step, seek")
    _replay_options(replay)
    export = parser.add_command("export", None, "take the data elsewhere")
    csv = export.add_command("csv", _export_csv, "every numeric metric, one row a step")
    out = csv.add_argument("-o", "--output", default="-", metavar="FILE|-|DIR", help="- is standard output (default)")
    completes_paths(out)
    demo = parser.add_command("demo", _demo, "a simulated training that writes real logs, opened live")
    _demo_options(demo)
    guide = parser.add_command("guide", _guide, "the rules in force, with their thresholds and sources")
    config = parser.add_command("config", _config, "where the configuration is read from, and all of its defaults")
    for command in (watch, check, guard, csv):
        completes_paths(
            command.add_argument("paths", nargs="*", metavar="PATH", help="log, directory, quoted glob or -")
        )
    for command in (check, guard, replay, csv, demo, guide, config):
        _config_option(command)
    return parser


def _watch_options(parser: Parser) -> None:
    _config_option(parser)
    _screen_options(parser)
    frame = "draw one frame into FILE.svg or FILE.txt and exit"
    completes_paths(parser.add_argument("--snapshot", type=snapshot, metavar="FILE", help=frame))
    parser.add_argument("--size", type=size, default=(120, 40), metavar="COLSxROWS", help="of a snapshot (120x40)")


def _config_option(parser: Parser) -> None:
    help = "configuration to use in place of the usual one (see `verl-tui config`)"
    completes_paths(parser.add_argument("--config", type=Path, metavar="FILE", help=help))


def _screen_options(parser: Parser) -> None:
    parser.add_argument("--ascii", action="store_true", help="draw with ASCII only")
    parser.add_argument("--no-mouse", action="store_true", help="leave the mouse to the terminal")


def _guard_options(parser: Parser) -> None:
    parser.usage = "verl-tui guard [OPTION]... PATH... [-- CMD [ARG]...]"
    parser.epilog = (
        "CMD gets the facts in environment variables VERL_TUI_RUN, _PATHS, _STATE, _FINDING, _SEVERITY, _STEP, "
        "_SINCE_STEP, _KEY, _MESSAGE, _EVIDENCE and _ADVICE. Events are one line of JSON each. "
        "Exits 0 when nothing tripped, 2 when something did."
    )
    parser.rest = "command"
    parser.set_defaults(command=())
    parser.add_argument("--on", action="append", default=[], metavar="ID", help="trip on this finding, too")
    parser.add_argument("--kl", type=positive, metavar="LIMIT", help="of circuit-breaker-kl (0.2)")
    parser.add_argument("--reward-drop", type=share, metavar="SHARE", help="of circuit-breaker-reward (0.2)")
    parser.add_argument("--count", type=count, metavar="N", help="breaches in a row that trip either (5)")
    parser.add_argument("--dry-run", action="store_true", help="say what would be run, run nothing")


def _replay_options(parser: Parser) -> None:
    parser.epilog = (
        "Time is that of the log: times it states, else counted back from its progress bar, else by the step timers, "
        "else a second a step; the first line says which. Runs that went on side by side are played at their true "
        "times, others each from its own start. The records are held in memory. Keys: see ? and the last row."
    )
    parser.add_argument("--speed", type=positive, default=20.0, metavar="N", help="times as fast as it was (20)")
    parser.add_argument("--from", type=step, dest="first", metavar="STEP", help="begin where the run was at this step")
    parser.add_argument("--until", type=step, metavar="STEP", help="pause at this step")
    parser.add_argument("--paused", action="store_true", help="stand still at first")
    _screen_options(parser)
    completes_paths(parser.add_argument("paths", nargs="*", metavar="PATH", help="log, directory or quoted glob"))


def _demo_options(parser: Parser) -> None:
    where = parser.add_argument("--dir", type=Path, metavar="DIR", help="write there and keep it")
    completes_paths(where, directories=True)
    parser.add_argument("--pace", type=seconds, metavar="SECONDS", help="time between two steps (default 1)")
    parser.add_argument("--seed", type=int, default=7, metavar="N", help="another number tells another story")
    parser.add_argument("--headless", action="store_true", help="only write the logs, open nothing")
    _screen_options(parser)


# -- the commands ------------------------------------------------------------------------------------------------------


def _watch(options: argparse.Namespace) -> int:
    paths, config = _paths(options, _EXAMPLE), _configuration(options)
    if options.snapshot is None:
        _need_terminal(paths)
    from verl_tui.sources.feed import Feed

    found = Feed(paths).scan()
    _tell(found.problems)
    if not found.runs and not found.waiting:
        return EXIT_NOTHING
    from verl_tui.tui import watch

    try:
        return watch(paths, config, snapshot=options.snapshot, size=options.size)
    except OSError as error:
        if options.snapshot is None:
            raise
        raise _unwritten(error, options.snapshot) from error


def _check(options: argparse.Namespace) -> int:
    import json
    import shutil

    from verl_tui.check import BestBy, exit_code, report, write_text
    from verl_tui.monitor import load

    now = time.time()
    monitor = load(_paths(options, "verl-tui check logs/run_7"), _configuration(options), now)
    _tell((*monitor.problems, *monitor.waiting))
    metric, _, way = options.best_by.rpartition(":")
    by = BestBy(metric, way == "min") if metric and way in ("min", "max") else BestBy(options.best_by)
    found = report(monitor, now, by)
    if by.metric != "reward" and found["runs"] and not any(run["best"] for run in found["runs"]):
        complain(f"--best-by {by.metric}: no run logs it")
    if options.json:
        text = json.dumps(found, indent=2, allow_nan=False) + "\n"
    else:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        text = write_text(found, monitor, now, width=width, colour=_colour())
    code = exit_code(found)
    if code == EXIT_NOTHING and found["runs"]:
        complain("nothing readable so far in " + ", ".join(run["name"] for run in found["runs"]))
    try:
        print(text, end="", flush=True)
    except BrokenPipeError:
        _close_stdout()  # `check … | head` has seen enough; the health stays what it is
    return code


def _guard(options: argparse.Namespace) -> int:
    import shutil
    import signal
    import threading

    from verl_tui.guard import BREAKERS, QUIET, TRIPPED, Orders, follow
    from verl_tui.sources.feed import Feed

    config, paths = _guard_configuration(options), _paths(options, "verl-tui guard logs/run_7 -- scancel 4711")
    if options.command and shutil.which(options.command[0]) is None:
        raise CommandError(f"{options.command[0]}: no such command, or not executable")
    found = Feed(paths).scan()
    _tell((*found.problems, *found.waiting))
    if not found.runs and not found.waiting:
        return EXIT_NOTHING
    stop, caught = threading.Event(), []

    def end(number: int, _frame: object) -> None:
        caught.append(number)
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    orders = Orders(frozenset((*BREAKERS, *options.on)), tuple(options.command), options.dry_run)
    guard = follow(paths, config, orders, clock=time.time, write=_write_event, stop=stop)
    if caught:
        return 128 + caught[0]
    return TRIPPED if guard.tripped else QUIET


def _guard_configuration(options: argparse.Namespace) -> Config:
    """Return the configuration with the limits of the command line, once the named findings are known to exist."""
    import difflib

    from verl_tui.guard import limited
    from verl_tui.health import load_guide

    config = _configuration(options)
    known = {rule.id for rule in load_guide(config.guide).rules}
    for id in options.on:
        if id not in known:
            near = difflib.get_close_matches(id, known, 3, 0.3) or sorted(known)
            raise CommandError(f"--on {id}: no such finding; did you mean {', '.join(near)}?")
    return limited(config, kl=options.kl, reward_drop=options.reward_drop, count=options.count)


def _write_event(event: Mapping[str, object]) -> None:
    import json

    print(json.dumps(event, ensure_ascii=False, allow_nan=False), flush=True)


def _replay(options: argparse.Namespace) -> int:
    if _piped(options.paths):
        raise CommandError("-: standard input cannot be replayed, write it to a file first")
    paths, config = _paths(options, "verl-tui replay logs/run_7 --speed 20"), _configuration(options)
    _need_terminal()
    from verl_tui.replay import Player, Tape

    tape = Tape.read(paths)
    _tell((*tape.discovery.problems, *tape.discovery.waiting))
    if tape.empty:
        why = "no step in " + ", ".join(tape.reels) if tape.reels else "nothing readable"
        raise CommandError(f"nothing to replay: {why}", EXIT_NOTHING)
    at, until = (None if one is None else _moment(tape, one) for one in (options.first, options.until))
    from verl_tui.tui import replay

    return replay(Player(tape, speed=options.speed, at=at, until=until, paused=options.paused), config)


def _moment(tape: Tape, step: int) -> float:
    """Return when a step was reached."""
    moment = tape.when(step)
    if moment is None:
        raise CommandError(f"no run comes to step {step:,}: the last is {tape.last_step:,}")
    return moment


def _export_csv(options: argparse.Namespace) -> int:
    from verl_tui.exporters.csv import ExportError, export
    from verl_tui.monitor import load

    monitor = load(_paths(options, "verl-tui export csv logs/run_7 -o run_7.csv"), _configuration(options), time.time())
    _tell((*monitor.problems, *monitor.waiting))
    runs = [run for run in monitor.runs.values() if run.keys]
    if not runs:
        raise CommandError("no numbers to export", EXIT_NOTHING)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", newline="")
    try:
        written = export(runs, options.output)
    except ExportError as error:
        raise CommandError(str(error)) from error
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _unwritten(error, options.output) from error
    for path in written:
        print(f"wrote {path}", file=sys.stderr)
    return 0


def _demo(options: argparse.Namespace) -> int:
    config = _configuration(options)
    if not options.headless:
        _need_terminal()
    from verl_tui.demo import PACE_S, Simulation

    with _demo_directory(options.dir) as directory:
        simulation = Simulation(directory, options.seed, time.time)
        if taken := [run.directory.name for run in simulation.runs if run.directory.exists()]:
            raise CommandError(f"{directory} already holds {', '.join(taken)}: name another directory", EXIT_OUTPUT)
        simulation.prepare()
        pace = options.pace or PACE_S
        return _demo_headless(simulation, pace) if options.headless else _demo_live(simulation, pace, config)


def _demo_headless(simulation: Simulation, pace: float) -> int:
    import shlex
    import signal
    import threading

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    pattern = shlex.quote(str(simulation.directory / "run_*"))
    print(f"writing simulated runs; watch them with: verl-tui {pattern}", flush=True)
    simulation.run(threading.Event(), pace)
    return 0


def _demo_live(simulation: Simulation, pace: float, config: Config) -> int:
    import glob
    import threading

    from verl_tui.tui import watch

    stop = threading.Event()
    writer = threading.Thread(target=simulation.run, args=(stop, pace), name="simulation", daemon=True)
    writer.start()
    try:
        return watch([glob.escape(str(simulation.directory)) + "/run_*"], config)
    finally:
        stop.set()
        writer.join()


@contextmanager
def _demo_directory(wanted: Path | None) -> Iterator[Path]:
    """Make the directory for a demo: the user's, which is kept, or one that goes with the demo."""
    import tempfile

    if wanted is None:
        with tempfile.TemporaryDirectory(prefix="verl-tui-demo-", ignore_cleanup_errors=True) as directory:
            yield Path(directory)
        return
    try:
        wanted.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritten(error, wanted) from error
    try:
        yield wanted
    finally:
        if any(wanted.iterdir()):
            print(f"the simulated runs are in {wanted}", flush=True)


def _guide(options: argparse.Namespace) -> int:
    from verl_tui.guide import describe
    from verl_tui.health import load_guide

    for line in describe(load_guide(_configuration(options).guide)):
        print(line)
    return 0


def _config(options: argparse.Namespace) -> int:
    path = config_path(options.config)
    load_config(options.config)
    print(f"# {path}{'' if path.exists() else ' (not there: these defaults hold)'}\n")
    print(documented_defaults(), end="")
    return 0


def _completion(options: argparse.Namespace) -> int:
    import shtab

    shell = options.print_completion
    print(shtab.complete(build_parser(), shell, preamble=_PATHS_TOO[shell]))
    return 0


_PATHS_TOO = {
    "bash": "_shtab_verl_tui_pos_0_COMPGEN=_shtab_compgen_files",
    "zsh": "functions[_shtab_verl_tui_named]=$functions[_shtab_verl_tui_commands]\n"
    "_shtab_verl_tui_commands() { _shtab_verl_tui_named; _files }",
    "tcsh": "",
}
"""Shell -> what makes the place of a command complete paths as well, since `watch` need not be said."""


# -- what commands share -----------------------------------------------------------------------------------------------


def _paths(options: argparse.Namespace, example: str) -> Sequence[str]:
    if not options.paths:
        raise CommandError(
            f"name a log, the directory of a run, or a quoted glob, for example: {example}; "
            "`verl-tui demo` shows a simulated training and needs nothing"
        )
    paths: list[str] = options.paths
    if _piped(paths) and sys.stdin is not None and sys.stdin.isatty():
        raise CommandError("-: nothing is piped in, say `some-training 2>&1 | verl-tui -`")
    return paths


def _piped(paths: Sequence[str]) -> bool:
    from verl_tui.sources import pipe

    return any(map(pipe.is_meant, paths))


def _configuration(options: argparse.Namespace) -> Config:
    """Return the configuration with what the command line changes; its rules have been looked at, too."""
    from verl_tui.health import load_guide

    config = load_config(options.config)
    try:
        load_guide(config.guide)
    except ValueError as error:
        raise ConfigError(f"{config_path(options.config)}: {error}") from error
    ascii = True if getattr(options, "ascii", False) else config.ascii
    return replace(config, ascii=ascii, mouse=config.mouse and not getattr(options, "no_mouse", False))


def _tell(sentences: Iterable[str]) -> None:
    for sentence in sentences:
        complain(sentence)


def _unwritten(error: OSError, wanted: object) -> CommandError:
    return CommandError(f"{error.filename or wanted}: {(error.strerror or str(error)).lower()}", EXIT_OUTPUT)


def _need_terminal(paths: Sequence[str] = ()) -> None:
    """Refuse where there is nothing to draw on, before Textual is imported, which would wait for answers."""
    from verl_tui.sources import pipe

    keys = pipe.has_keys() if _piped(paths) else sys.stdin.isatty()
    if os.environ.get("TERM") in ("dumb", "unknown"):
        why = f"this terminal (TERM={os.environ['TERM']}) cannot be drawn on"
    elif keys and all(stream.isatty() for stream in (sys.stdout, sys.stderr)):
        return
    else:
        why = "no terminal here to draw on"
    raise CommandError(
        f"{why}: use `verl-tui check PATH` for a report, or `--snapshot FILE.svg` for a picture", EXIT_NOTHING
    )


def _colour() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _close_stdout() -> None:
    """Point standard output nowhere, so that Python's own flush at exit does not fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
