"""The installed command where the NVIDIA driver fails while it is watched."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from nvml_library import compiled
from real_terminal import Pty, restored

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.pty


def _write(log: Path, step: int) -> None:
    with log.open("a") as file:
        file.write(f"step:{step} - critic/score/mean:0.5\n")


def test_devices_that_go_and_come_back_and_a_driver_that_fails(tmp_path):
    log, config, faults = (
        tmp_path / name for name in ("train.log", "config.toml", "faults")
    )
    _write(log, 1)
    config.write_text("gpu_interval = 0.2\n")
    faults.write_text("")
    terminal = Pty(
        *("--config", config, log),
        VERL_TUI_STATE="",
        LD_LIBRARY_PATH=str(compiled(tmp_path)),
        STUB_COUNT="2",
        STUB_FAULTS=str(faults),
    )
    try:
        terminal.until("0 H100", "1 H100", "41°C")
        faults.write_text("GetHandleByIndex@1:15")
        terminal.until(
            "0 H100", "1 H100", "40°C", "fell off the bus: GPU 1", gone="41°C"
        )
        faults.write_text("")
        terminal.until("41°C", gone="fell off the bus")
        faults.write_text("GetCount:9")
        terminal.until("the NVIDIA driver is installed but not loaded", gone="H100")
        _write(log, 2)
        terminal.until("step 2")
        terminal.press(b"q")
        assert terminal.end() == 0
        assert restored(terminal.output)
    finally:
        terminal.close()
