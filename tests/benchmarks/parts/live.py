"""What a live run costs: a step a second, charts and GPU gauges on the screen."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

from made_logs import line
from measuring import APP, Row
from terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from measuring import Effort

SIZE = (140, 45)
_STUB = Path(__file__).parents[2] / "data" / "nvml_stub.c"


def measure(folder: Path, effort: Effort) -> Iterator[Row]:
    """Processor time, bytes to the terminal and memory."""
    log, steps = folder / "log.jsonl", effort.size(25, 5)
    log.write_text("".join(line(step) for step in range(1, 1000)), encoding="utf-8")
    devices = _devices(folder)
    terminal = Terminal([*APP, log], SIZE, VERL_TUI_STATE="", **devices)
    terminal.read(20, lambda: terminal.shows("step 999"))
    terminal.read(5)
    shown = terminal.shows("8 GPUs") or terminal.shows("H100")
    cpu = terminal.cpu
    sent = terminal.bytes
    began = time.perf_counter()
    for step in range(1000, 1000 + steps):
        with log.open("a", encoding="utf-8") as file:
            file.write(line(step))
        terminal.read(1)
    share = (terminal.cpu - cpu) / (time.perf_counter() - began)
    kilobytes = (terminal.bytes - sent) / steps / 1e3
    memory = terminal.memory
    terminal.close()
    gauges = (
        "GPU gauges" if shown else "no GPU gauges (no C compiler for their stand-in)"
    )
    name = f"live, 1 step/s, {gauges}, {SIZE[0]}×{SIZE[1]}"
    yield Row(f"{name}: processor", f"{share:.1%}", "of one core", goal="≤ 2%")
    yield Row(f"{name}: to the terminal, a step", f"{kilobytes:.1f} kB", goal="≤ 3 kB")
    yield Row(f"{name}: memory", f"{memory:.0f} MiB")


def _devices(folder: Path) -> dict[str, str]:
    """Return the environment in which a stand-in for NVML shows 8 devices, none where there is no
    compiler.
    """
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return {}
    target = folder / "libnvidia-ml.so.1"
    options = ["-shared", "-fPIC", "-Wl,-soname,libnvidia-ml.so.1", "-o", str(target)]
    subprocess.run([compiler, *options, str(_STUB)], check=True)
    return {"LD_LIBRARY_PATH": str(folder)}
