"""A stand-in for the NVIDIA driver's library, compiled for a test."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

STUB = Path(__file__).parent / "data" / "nvml_stub.c"
LIBRARY = "libnvidia-ml.so.1"


def compiled(folder: Path, *flags: str) -> Path:
    """Build the library in a folder, which LD_LIBRARY_PATH is to name; skip a test where it cannot
    be built or loaded.
    """
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler to build the stand-in for NVML")
    if not sys.platform.startswith("linux"):
        pytest.skip(
            "the stand-in for NVML is loaded by LD_LIBRARY_PATH, which is Linux's"
        )
    command = [compiler, "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    command += [f"-D{flag}" for flag in flags]
    subprocess.run([*command, "-o", str(folder / LIBRARY), str(STUB)], check=True)
    return folder
