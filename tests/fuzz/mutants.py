"""Change one place of the code after the other, and say which changes no test notices.

    python tests/fuzz/mutants.py --under verl_tui/health --tests tests/health --count 40 --seed 1

It works on a copy. First all tests run once to learn which of them reach which line, then those
that reach a changed line run for each change. `--covered` takes what an earlier run has learnt.
"""

from __future__ import annotations

import argparse
import ast
import os
import shutil
import subprocess
import sys
import time
from itertools import accumulate
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

from coverage import CoverageData

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

ROOT = Path(__file__).resolve().parents[2]
_COMPARED = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"), ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="), ast.In: ("in", "not in"), ast.NotIn: ("not in", "in"), ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
}  # fmt: skip
_COMBINED = {ast.And: ("and", "or"), ast.Or: ("or", "and")}
_COUNTED = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
}
_FIRST = 30
"""Tests that run first: most changes are noticed by any that reaches them."""
_PATIENCE = 90.0
"""Seconds after which tests without an end have noticed a change."""


class Mutant(NamedTuple):
    """A change of one place of a file."""

    path: Path
    """Below the root."""
    line: int
    start: int
    """First byte that is replaced."""
    stop: int
    text: str
    """What stands there instead."""

    def changed(self, source: bytes) -> bytes:
        """Return the file with the change."""
        return source[: self.start] + self.text.encode() + source[self.stop :]

    def in_words(self, source: bytes) -> str:
        """Return it as a line."""
        was = source[self.start : self.stop].decode().strip()
        around = source.splitlines()[self.line - 1].decode().strip()
        return f"{self.path}:{self.line}: {was} -> {self.text.strip() or 'nothing'} in: {around}"


def mutants(path: Path, source: bytes) -> Iterator[Mutant]:
    """Yield all changes of a file: of comparisons, conditions, sums and numbers."""
    lines = [0, *accumulate(map(len, source.splitlines(keepends=True)))]
    for node in ast.walk(ast.parse(source)):
        for begin, end, old, new in _swaps(node):
            start = lines[begin[0] - 1] + begin[1]
            stop = lines[end[0] - 1] + end[1]
            place = source[start:stop].decode()
            if place.strip(" ()\n") == old:  # else a comment stands there, too
                yield Mutant(path, begin[0], start, stop, place.replace(old, new))


_Swap = tuple[tuple[int, int], tuple[int, int], str, str]
"""Where it begins and ends, what stands there, and what is to stand there."""


def _swaps(node: ast.AST) -> Iterator[_Swap]:
    if (
        isinstance(node, ast.Compare)
        and len(node.ops) == 1
        and type(node.ops[0]) in _COMPARED
    ):
        yield (*_between(node.left, node.comparators[0]), *_COMPARED[type(node.ops[0])])
    elif isinstance(node, ast.BoolOp):
        yield (*_between(*node.values[:2]), *_COMBINED[type(node.op)])
    elif isinstance(node, ast.BinOp) and type(node.op) in _COUNTED:
        yield (*_between(node.left, node.right), *_COUNTED[type(node.op)])
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        begin, end = (node.lineno, node.col_offset), node.operand
        yield begin, (end.lineno, end.col_offset), "not", ""
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        end = (node.end_lineno or 0, node.end_col_offset or 0)
        new = node.value + 1 if node.value in (0, 1) else node.value * 2
        yield (node.lineno, node.col_offset), end, ast.unparse(node), repr(new)


def _between(
    left: ast.expr, right: ast.expr
) -> tuple[tuple[int, int], tuple[int, int]]:
    begin = (left.end_lineno or 0, left.end_col_offset or 0)
    return begin, (right.lineno, right.col_offset)


class Copy:
    """A copy of the project whose code is changed and tested."""

    def __init__(self, root: Path, covered: Path) -> None:
        self.root = root
        self._covered = CoverageData(str(covered))
        self._covered.read()
        self._files = {
            path[path.rindex("verl_tui/") :]: path
            for path in self._covered.measured_files()
        }

    def tests_of(self, mutant: Mutant) -> list[str]:
        """Return the tests that reach a changed line; of one that only an import runs, or none,
        those that reach its file.
        """
        file = self._files.get(str(mutant.path))
        if file is None:
            return []
        contexts = self._covered.contexts_by_lineno(file)
        everywhere = [one for some in contexts.values() for one in some]
        return _names(contexts.get(mutant.line, ())) or _names(everywhere)

    def survives(self, mutant: Mutant, tests: Sequence[str], seed: int) -> bool:
        """Return whether all these tests pass over a change."""
        path = self.root / mutant.path
        source = path.read_bytes()
        path.write_bytes(mutant.changed(source))
        try:
            order = Random(seed).sample(tests, len(tests))
            return all(
                pytest(self.root, ["-x", *some], _PATIENCE) == 0
                for some in (order[:_FIRST], order[_FIRST:])
                if some
            )
        finally:
            path.write_bytes(source)


def _names(contexts: Iterable[str]) -> list[str]:
    return sorted({one.rpartition("|")[0] for one in contexts} - {""})


def pytest(root: Path, words: Sequence[str], patience: float | None = None) -> int:
    """Run tests of a copy; return the exit code, -1 if they did not end."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(root),
        "CI": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words]
    try:
        return subprocess.run(
            command,
            cwd=root,
            env=environment,
            capture_output=True,
            timeout=patience,
            check=False,
        ).returncode
    except subprocess.TimeoutExpired:
        return -1


def main() -> int:
    """Try as many changes as the command line says; print those that no test notices."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--under", nargs="+", required=True, help="folders of code, or files"
    )
    parser.add_argument("--tests", nargs="+", required=True, help="folders of tests")
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--covered", type=Path, help="which tests reach which lines, if known"
    )
    args = parser.parse_args()
    with TemporaryDirectory() as directory:
        root = Path(directory) / "copy"
        shutil.copytree(
            ROOT, root, ignore=shutil.ignore_patterns(".git", "__pycache__", ".*cache")
        )
        if args.covered is None:
            folders = {
                one.rpartition("/")[0] if one.endswith(".py") else one
                for one in args.under
            }
            words = [
                *(f"--cov={one}" for one in folders),
                "--cov-context=test",
                "--cov-report=",
            ]
            # without a worker pytest-cov 7.1 does not note which test it is
            words += ["-n", "1"]
            pytest(root, [*words, *args.tests])
        _try(Copy(root, args.covered or root / ".coverage"), args)
    return 0


def _try(copy: Copy, args: argparse.Namespace) -> None:
    """Try changes chosen by the seed."""
    paths = sorted(
        path.relative_to(copy.root)
        for top in args.under
        for path in (
            (copy.root / top,)
            if top.endswith(".py")
            else (copy.root / top).rglob("*.py")
        )
    )
    known = [
        one for path in paths for one in mutants(path, (copy.root / path).read_bytes())
    ]
    began, survived = time.monotonic(), 0
    chosen = Random(args.seed).sample(known, min(args.count, len(known)))
    for mutant in chosen:
        tests = copy.tests_of(mutant)
        if not tests or copy.survives(mutant, tests, args.seed):
            survived += 1
            in_words = mutant.in_words((copy.root / mutant.path).read_bytes())
            print(f"{in_words} ({len(tests)} tests)", flush=True)
    print(
        f"{len(chosen)} of {len(known):,} changes, {len(chosen) - survived} noticed, "
        f"{survived} not, {time.monotonic() - began:.0f} s"
    )


if __name__ == "__main__":
    sys.exit(main())
