"""Worlds for the fuzzer of the app: logs of several formats with hostile names, values, times and
texts, and what happens to them while somebody looks.

All of it follows from seeds: the same world is made anew for the same number.
"""

from __future__ import annotations

import csv
import io
import json
import random
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

NOW = 1_800_000_000.0
_INF = float("inf")
VALUES = (
    float("nan"), _INF, -_INF, 1e308, -1e308, 1.7976931348623157e308, 1e-308, 5e-324, -5e-324, 0.0, -0.0,
    1.0, -1.0, 1e18, 2.0**62, 2**70, -(2**70), True, None, "", "nan", "1e400", [], {}, [1.0, 2.0],
)  # fmt: skip
"""Values at the ends of what there is, and some that are none."""
STEPS = (
    0,
    1,
    -1,
    -5,
    7,
    2**31,
    2**53 + 1,
    2**62,
    2**63 - 1,
    2**63,
    -(2**62),
    -(2**63),
    10**25,
)
TIMES = (
    NOW, NOW - 1e5, NOW + 1e5, 0.0, -1.0, 1e12, -1e12, 1e18, -1e18, 253_402_300_800.0, -62_135_596_801.0, 1e300,
    _INF, -_INF, float("nan"),
)  # fmt: skip
"""Seconds since the epoch: the present, and beyond what calendars and platforms know."""
TEXTS = (
    "",
    " ",
    "plain words",
    "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x9b2J \x00\x07\x08 a\rb\tc \u202ereversed\u202c",
    "\x1bP1$r0m\x1b\\ \x1b]8;;http://x\x07link\x1b]8;;\x07 \x90dcs\x9c \x85 \u2028 \u2029",
    "[red]not red[/red] [/INST] [@click=app.quit]quit[/] [/ [[ ]] [b",
    "漢字かな交じり文 한국어 ไทย กำ العربية עברית",
    "e\u0301\u0301\u0301\u0301 a\u0300 \u0301 👨\u200d👩\u200d👧 ☀\ufe0f 👍🏽 🇩🇪 🇩 \u200b\u2060\ufeff\u00ad",
    "\ud800 lone \udfff",
    "x" * 10_000,
    "汉" * 3_000,
    "the same again and " * 300,
    "\n" * 500 + "end",
    "<think>hm</think> <answer>42</answer> \\boxed{42} #### 42 <|im_start|>user\nx<|im_end|>",
    "%s %d {0} {x!r} $HOME `ls` =1+1 @SUM(1) '\"\\",
)
NAMES = (
    "loss", "Loss", "LOSS", "actor/ppo_kl", "actor/PPO_KL", "critic/score/mean", "critic/score/max", "critic/rewards/mean",
    "actor/grad_norm", "actor/entropy", "actor/pg_loss", "response_length/mean", "response_length/clip_ratio",
    "perf/throughput", "perf/mfu/actor", "timing_s/step", "timing_s/gen", "timing_s/update_actor", "reward", "kl", "val-core/x/acc/mean@1",
    "gpus/0/util", "system/gpu.0.memory", "", " ", "/", "a/", "/a", "//", "a//b", ".", "..", "0", "-1", "step", "nan",
    "x" * 10_000, "long/" * 200, *TEXTS[3:9],
)  # fmt: skip
FILES = (
    "a",
    "A",
    "b" * 150,
    "漢字",
    "[red]x[/red]",
    "run 1",
    "e\u0301",
    "-rf",
    "x\ny",
    "\x1b[31m",
    "$(id)",
    "~",
)
"""Names of folders and runs."""


def value(rng: random.Random) -> Any:
    """Return a number, three times out of ten a hostile one."""
    return rng.choice(VALUES) if rng.random() < 0.3 else rng.gauss(0.0, 1.0)


def name(rng: random.Random) -> str:
    """Return the name of a metric."""
    return (
        rng.choice(NAMES)
        if rng.random() < 0.95
        else "".join(rng.choices(TEXTS[5] + "/_.", k=6))
    )


class World:
    """A folder of runs to which things happen."""

    def __init__(self, folder: Path, seed: int) -> None:
        """Write the first runs of a world."""
        self.folder = folder
        self._rng = random.Random(seed)
        self._many = self._rng.random() < 0.15
        self.now = NOW
        folder.mkdir(parents=True, exist_ok=True)
        for _ in range(self._rng.choice((0, 1, 1, 2, 3, 5, 12))):
            self._add(self._rng)

    def change(self, seed: int) -> None:
        """Let something happen: a run comes, grows, shrinks, is replaced or goes."""
        rng = random.Random(seed)
        happens = rng.choices(
            (
                self._add,
                self._grow,
                self._truncate,
                self._replace,
                self._delete,
                self._spoil,
                self._move,
            ),
            (3, 12, 2, 2, 2, 1, 1),
        )[0]
        # what it is to happen to may be gone, or a folder by now
        with suppress(OSError):
            happens(rng)

    # -- what happens ------------------------------------------------------------------------------

    def _logs(self) -> Sequence[Path]:
        return sorted(path for path in self.folder.rglob("*") if path.is_file())

    def _add(self, rng: random.Random) -> None:
        place = self.folder / rng.choice(FILES) / rng.choice(("", "logs", "x"))
        place.mkdir(parents=True, exist_ok=True)
        kind = rng.choice(tuple(WRITERS))
        kept = self._names(rng)
        for file, text in WRITERS[kind](rng, rng.choice((1, 2, 5, 30, 200)), kept):
            path = place / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode("utf-8", "surrogatepass"))

    def _names(self, rng: random.Random) -> Sequence[str]:
        if self._many:
            return [
                f"group{at % 17}/metric_{at}" for at in range(rng.choice((500, 1200)))
            ]
        return list(
            dict.fromkeys(name(rng) for _ in range(rng.choice((0, 1, 3, 8, 20))))
        )

    def _grow(self, rng: random.Random) -> None:
        if logs := self._logs():
            path = rng.choice(logs)
            kind = rng.choice([one for one in WRITERS if one != "trainer state"])
            texts = WRITERS[kind](rng, rng.choice((1, 3, 20)), self._names(rng))
            data = texts[0][1].encode("utf-8", "surrogatepass")
            if rng.random() < 0.5:  # more of the same
                lines = path.read_bytes()[-20_000:].splitlines(keepends=True)[1:]
                data = b"".join(lines[-rng.randrange(1, 20) :]) or data
            with path.open("ab") as file:
                file.write(data[: rng.randrange(1, len(data) + 1)] if data else b"\n")

    def _truncate(self, rng: random.Random) -> None:
        if logs := self._logs():
            path = rng.choice(logs)
            data = path.read_bytes()
            path.write_bytes(data[: rng.randrange(len(data) + 1)])

    def _replace(self, rng: random.Random) -> None:
        if logs := self._logs():
            path = rng.choice(logs)
            other = rng.choice(logs).read_bytes()
            path.unlink()
            if rng.random() < 0.2:
                path.mkdir()
            else:
                path.write_bytes(other)

    def _delete(self, rng: random.Random) -> None:
        if places := sorted(self.folder.iterdir()):
            place = rng.choice(places)
            shutil.rmtree(place) if place.is_dir() else place.unlink()

    def _spoil(self, rng: random.Random) -> None:
        if logs := self._logs():
            path = rng.choice(logs)
            data = bytearray(path.read_bytes())
            for _ in range(rng.randrange(1, 20) if data else 0):
                data[rng.randrange(len(data))] = rng.randrange(256)
            path.write_bytes(data)

    def _move(self, rng: random.Random) -> None:
        if logs := self._logs():
            path = rng.choice(logs)
            path.rename(
                path.with_name(
                    f"{rng.choice(FILES)[:20]}-{path.name}".replace("/", "_")
                )
            )


# -- formats ---------------------------------------------------------------------------------------


Files = list[tuple[str, str]]
"""Names of files, and their texts."""


def _steps(rng: random.Random, count: int) -> list[int]:
    usual = list(range(1, count + 1))
    odd = rng.random()
    if odd < 0.5:
        return usual
    if odd < 0.7:
        return [step * rng.choice((3, 10**6, 10**15)) for step in usual]
    return [rng.choice(STEPS) if rng.random() < 0.3 else step for step in usual]


def _dumped(fields: Any) -> str:
    return json.dumps(fields, ensure_ascii=False) + "\n"


def _values(rng: random.Random, names: Sequence[str]) -> dict[str, Any]:
    return {one: value(rng) for one in names}


def _tutorial(rng: random.Random, count: int, names: Sequence[str]) -> Files:
    odd, lines = rng.random() < 0.4, []
    for step in _steps(rng, count):
        moment = rng.choice(TIMES) if odd else NOW - 1000 + (step % 1000)
        at = {"scope": "rollout", "step": step, "timestamp": moment}
        lines.append(_dumped(at | _values(rng, ("reward_mean", "kl_div", *names))))
        if rng.random() < 0.2:
            said = {one: rng.choice(TEXTS) for one in ("prompt", "response")}
            lines.append(_dumped({"scope": "sample", "step": step, **said, "reward": value(rng)}))  # fmt: skip
    return [("verl_logs.jsonl", "".join(lines))]


def _filelogger(rng: random.Random, count: int, names: Sequence[str]) -> Files:
    usual = ("critic/score/mean", "actor/ppo_kl", "actor/entropy", "response_length/mean", "timing_s/step")  # fmt: skip
    rows = (
        {"step": step, "data": _values(rng, (*usual, *names))}
        for step in _steps(rng, count)
    )
    return [("log.jsonl", "".join(map(_dumped, rows)))]


def _console(rng: random.Random, count: int, names: Sequence[str]) -> Files:
    lines = ["(main_task pid=1) Started a local Ray instance."] * rng.randrange(3)
    for step in _steps(rng, count):
        figures = _values(rng, ("critic/score/mean", "actor/ppo_kl", *names))
        metrics = " - ".join(f"{one}:{known}" for one, known in figures.items())
        lines.append(f"(TaskRunner pid={rng.randrange(9)}) step:{step} - {metrics}")
        if rng.random() < 0.2:
            lines.append(rng.choice(TEXTS))
    if rng.random() < 0.4:
        head = 'Traceback (most recent call last):\n  File "x.py", line 1, in f\n'
        lines.append(f"{head}ValueError: {rng.choice(TEXTS)}")
    return [("train.log", "\n".join(lines) + "\n" * (rng.random() < 0.8))]


def _trl(rng: random.Random, count: int, names: Sequence[str]) -> Files:
    rows = (
        _values(rng, ("loss", "reward", "kl", *names)) | {"epoch": step / 10}
        for step in _steps(rng, count)
    )
    return [("out.log", "".join(f"{row}\n" for row in rows))]


def _csv(rng: random.Random, count: int, names: Sequence[str]) -> Files:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["step", "loss", "reward", *names])
    for step in _steps(rng, count):
        writer.writerow([step, value(rng), value(rng), *(value(rng) for _ in names)])
    return [("metrics.csv", out.getvalue())]


def _state(rng: random.Random, count: int, names: Sequence[str]) -> Files:
    history = [
        {"step": step, "epoch": step / 10} | _values(rng, ("loss", *names))
        for step in _steps(rng, count)
    ]
    ends = {one: rng.choice(STEPS) for one in ("global_step", "max_steps")}
    return [("trainer_state.json", json.dumps({**ends, "log_history": history}))]


def _dumps(rng: random.Random, count: int, names: Sequence[str]) -> Files:
    found = []
    for step in _steps(rng, min(count, 6)):
        rows = (
            {one: rng.choice(TEXTS) for one in ("input", "output", "gts")}
            | _values(rng, ("score", "acc", *names[:5]))
            | {"step": step}
            for _ in range(rng.choice((1, 4, 16)))
        )
        found.append((f"rollouts/{step}.jsonl", "".join(map(_dumped, rows))))
    return found + _filelogger(rng, count, names)


def _settings(rng: random.Random, count: int, names: Sequence[str]) -> Files:
    lines = "".join(
        f"{json.dumps(one)}: {json.dumps(str(value(rng)))}\n" for one in (*names, "lr")
    )
    texts = "".join(f"t{at}: {json.dumps(one)}\n" for at, one in enumerate(TEXTS))
    nested = f"actor_rollout_ref:\n  actor:\n    optim: {{lr: {rng.choice(STEPS)}}}\n"
    return [(".hydra/config.yaml", nested + lines + texts), *_console(rng, count, names)]  # fmt: skip


def _junk(rng: random.Random, count: int, names: Sequence[str]) -> Files:
    words = "".join(rng.choices("{}[]:,\"'\n\x00 step:1-", k=200))
    deep = "[" * 3000 + "]" * 3000
    return [("junk.log", words), ("deep.jsonl", f'{{"step": 1, "data": {deep}}}\n')]


WRITERS: dict[str, Callable[[random.Random, int, Sequence[str]], Files]] = {
    "tutorial": _tutorial, "file logger": _filelogger, "console": _console, "TRL": _trl, "CSV": _csv,
    "trainer state": _state, "dumps": _dumps, "settings": _settings, "junk": _junk,
}  # fmt: skip
"""Formats by name; each returns files and their texts, of so many steps."""
