"""How long a W&B log takes to read: here, by the classes that wandb ships, and by `wandb leet`.

    python tests/benchmarks/wandb_runs.py RUN.wandb

Beside it the same log without the console's lines and the summaries, which are most of the records
of most logs and which only `leet` reads. All figures are seconds of CPU, the least of some tries.
What is compared is not quite the same: here all values become rows; the classes only hand out names
and numbers, in C (upb) as wandb installs them, and in Python where upb is not to be had; `leet
inspect --summary` takes every record apart, but shows only the last metrics and the console's tail,
so that it need not read system figures; its own start is taken off.
"""

from __future__ import annotations

import json
import os
import resource
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

from verl_tui.sources.formats import record_log
from verl_tui.sources.formats.wandb import reader as wandb
from verl_tui.sources.source import FileSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LEFT_OUT = {"output_raw", "output", "summary"}


def records(data: bytes) -> Iterator[bytes]:
    """Yield the records of a sound log."""
    at, record = len(wandb.HEADER), b""
    while at + 7 <= len(data):
        left = record_log.BLOCK - at % record_log.BLOCK
        if left < 7:
            at += left
            continue
        checksum, length, kind = record_log.CHUNK.unpack_from(data, at)
        body = data[at + 6 : at + 7 + length]
        if zlib.crc32(body) != checksum:
            return
        record = (
            body[1:]
            if kind in (record_log.FULL, record_log.FIRST)
            else record + body[1:]
        )
        if kind in (record_log.FULL, record_log.LAST):
            yield record
        at += 7 + length


def log(messages: list[bytes]) -> bytes:
    """Return a log of records."""
    out = bytearray(wandb.HEADER)
    for message in messages:
        rest, first = message, True
        while first or rest:
            left = record_log.BLOCK - len(out) % record_log.BLOCK
            if left < 7:
                out += bytes(left)
                continue
            part, rest = rest[: left - 7], rest[left - 7 :]
            kind = (
                (record_log.FIRST if rest else record_log.FULL)
                if first
                else (record_log.MIDDLE if rest else record_log.LAST)
            )
            body = bytes((kind,)) + part
            out += struct.pack("<IH", zlib.crc32(body), len(part)) + body
            first = False
    return bytes(out)


def ours(path: Path) -> None:
    """Read as the app does."""
    source, more = FileSource(path, wandb), True
    while more:
        _, more = source.read()


def theirs(path: Path) -> None:
    """Read with the classes that wandb ships."""
    from wandb.proto.wandb_internal_pb2 import Record

    for data in records(path.read_bytes()):
        record = Record.FromString(data)
        kind = record.WhichOneof("record_type")
        if kind in ("history", "stats"):
            for item in getattr(record, kind).item:
                _ = (
                    (".".join(item.nested_key) if kind == "history" else item.key),
                    json.loads(item.value_json),
                )


def least(read: Callable[[Path], None], path: Path, tries: int = 9) -> float:
    """Return the least seconds of CPU that one reading takes."""
    took = []
    for _ in range(tries):
        start = time.process_time()
        read(path)
        took.append(time.process_time() - start)
    return min(took)


def in_python(path: Path) -> float:
    """Measure the classes without upb, which is chosen when they are imported."""
    environment = os.environ | {"PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": "python"}
    command = [sys.executable, __file__, str(path), "--classes"]
    return float(
        subprocess.run(command, env=environment, capture_output=True, check=True).stdout
    )


def leet(path: Path, tries: int = 3) -> float:
    """Return the least seconds of CPU of `wandb leet inspect --summary`, started without Python."""
    from wandb.util import get_core_path

    command = [
        get_core_path(),
        "leet",
        "inspect",
        "--no-observability",
        "--summary",
        "--run-file",
        str(path),
    ]
    took = []
    for _ in range(tries):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        took.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(took)


def main() -> None:
    """Print the figures of a log, and of the same without console and summaries."""
    path = Path(sys.argv[1])
    if "--classes" in sys.argv:
        print(least(theirs, path, 2))
        return
    from wandb.proto.wandb_internal_pb2 import Record

    messages = list(records(path.read_bytes()))
    kept = [
        message
        for message in messages
        if Record.FromString(message).WhichOneof("record_type") not in LEFT_OUT
    ]
    with tempfile.TemporaryDirectory() as folder:
        nothing = Path(folder, "run-a.wandb")
        short = Path(folder, "run-b.wandb")
        nothing.write_bytes(log(messages[:2]))
        short.write_bytes(log(kept))
        start = leet(nothing)
        for name, file in (
            ("as it is", path),
            ("without console and summaries", short),
        ):
            print(f"{name}: {file.stat().st_size / 1e6:.1f} MB")
            print(f"  here                         {least(ours, file):.3f} s")
            print(f"  wandb's classes, upb         {least(theirs, file):.3f} s")
            print(f"  wandb's classes, in Python   {in_python(file):.3f} s")
            print(f"  wandb leet inspect --summary {leet(file) - start:.3f} s")


if __name__ == "__main__":
    main()
