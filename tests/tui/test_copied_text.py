"""What of hostile logs reaches the clipboard of a real terminal, and the terminal itself."""

from __future__ import annotations

import base64
import json
import re
import time
from typing import TYPE_CHECKING

import pytest
from real_terminal import DEADLINE, Pty

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.pty

EVIL = "\x1b]52;c;ZXZpbA==\x07\x1bPx\x1b\\\x9b2J\x00\u202eabc\u200b\ud800"
LONG = "é\x1b" * 40_000
SEQUENCES = re.compile(
    rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-~])"
)


def _newest(output: bytes) -> str:
    """Return what the terminal was given last for its clipboard."""
    copied = re.findall(rb"\x1b\]52;c;([A-Za-z0-9+/=]*)\x07", output)
    return base64.b64decode(copied[-1]).decode() if copied else ""


def test_nothing_but_base64_of_plain_text_is_copied(tmp_path: Path) -> None:
    folder = tmp_path / f"run{EVIL[:-1].replace(chr(0), '')}"
    folder.mkdir()
    figures = {"step": 5, "data": {f"score{EVIL}": 0.5}}
    (folder / "log.jsonl").write_text(json.dumps(figures) + "\n")
    sample = {
        "scope": "sample",
        "step": 5,
        "prompt": EVIL,
        "response": EVIL + LONG,
        "reward": 1.0,
    }
    (folder / "samples.jsonl").write_text(json.dumps(sample) + "\n")
    terminal = Pty(folder.parent, folder=tmp_path, VERL_TUI_STATE="")
    try:
        terminal.until("step 5", "abc")
        texts = [""]
        end = time.monotonic() + DEADLINE
        # the chart, the run, the sample
        for keys in (b"\x19", b"\x1bOQ\x19", b"\x1b[17~\x19"):
            while (found := _newest(terminal.output)) in texts:
                assert time.monotonic() < end, f"{keys!r} copies nothing"
                terminal.press(keys)
                terminal.read_for(0.2)
            texts.append(found)
    finally:
        terminal.close()
    assert all(len(text.encode()) <= 75_000 for text in texts)
    assert all(text.replace("\n", "").isprintable() for text in texts)
    assert texts[2].startswith("$'")
    assert texts[-1].count("é␛") > 10_000
    assert b"\x1b]52;c;ZXZpbA==" not in terminal.output
    # the rest may be half a sequence
    whole = terminal.output[: terminal.output.rindex(b"\x1b")]
    rest = SEQUENCES.sub(b"", whole).decode("utf-8", "replace")
    assert {sign for sign in rest if not sign.isprintable()} <= {"\r", "\n"}
