"""Walk through the app with random keys in worlds of hostile logs, and say what breaks it.

    python tests/fuzz/walk.py --worlds 50 --keys 10000          the long walk
    python tests/fuzz/walk.py --seed 7 --keys 500               one world
    python tests/fuzz/walk.py --seed 7 --steps 'm v size:1x1'   a walk that was reported

A walk that breaks something is shortened, and reported with its seed and steps.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import traceback
from multiprocessing import get_context
from pathlib import Path

HERE = Path(__file__).resolve()
sys.path[:0] = [
    str(HERE.parents[2]),
    str(HERE.parents[1]),
    str(HERE.parents[1] / "tui" / "terminal"),
]


def main() -> int:
    """Walk through all worlds that are asked for; return 1 where anything broke."""
    options = _options()
    seeds = (
        [options.seed]
        if options.seed is not None
        else range(options.first, options.first + options.worlds)
    )
    asked = [(seed, options.keys, options.steps, options.shorten) for seed in seeds]
    began, keys, broken = time.monotonic(), 0, 0
    with get_context("spawn").Pool(options.jobs, maxtasksperchild=1) as pool:
        for seed, pressed, report in pool.imap_unordered(_walked, asked):
            keys += pressed
            broken += bool(report)
            took = time.monotonic() - began
            print(report or f"world {seed}: {pressed} keys, {took:.0f} s", flush=True)
    print(
        f"{len(asked)} worlds, {keys:,} keys, {broken} broken, {time.monotonic() - began:.0f} s"
    )
    return int(broken > 0)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--worlds", type=int, default=10, help="how many worlds (10)")
    parser.add_argument(
        "--keys", type=int, default=1000, help="steps in each, most of them keys (1000)"
    )
    parser.add_argument(
        "--first", type=int, default=0, help="the first world's seed (0)"
    )
    parser.add_argument("--seed", type=int, help="this world only")
    parser.add_argument("--steps", help="take these steps instead of random ones")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time (1)")
    parser.add_argument(
        "--shorten",
        type=float,
        default=120.0,
        metavar="SECONDS",
        help="for shortening a walk (120)",
    )
    return parser.parse_args()


def _walked(asked: tuple[int, int, str | None, float]) -> tuple[int, int, str]:
    """Walk through a world in this process; return its seed, keys pressed and what broke."""
    seed, count, given, seconds = asked
    for name in ("NO_COLOR", "FORCE_COLOR", "VERL_TUI_CONFIG"):
        os.environ.pop(name, None)
    os.environ["VERL_TUI_STATE"] = ""
    from fuzz.player import played
    from fuzz.shorten import shortened
    from fuzz.steps import walk
    from inside_textual import quick_pilots

    steps = given.split() if given is not None else list(walk(seed, count))
    with quick_pilots(), tempfile.TemporaryDirectory(prefix="walk-") as folder:
        player, error = played(Path(folder) / "0", seed, steps)
        if error is None:
            return seed, player.keys, ""
        said = "".join(traceback.format_exception(error))[-6000:]
        least = shortened(Path(folder), seed, player.steps, error, seconds)
    again = f"python tests/fuzz/walk.py --seed {seed} --steps '{' '.join(least)}'"
    return (
        seed,
        player.keys,
        f"\nworld {seed} broke after {len(player.steps)} steps\n{said}\n{again}\n",
    )


if __name__ == "__main__":
    sys.exit(main())
