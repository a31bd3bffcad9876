"""`--debug-log`: what is done is written down, masked and bounded, in a file for its owner only."""

from __future__ import annotations

import os
import resource
import stat
import threading
from functools import partial

import pytest
from command_line import run

from verl_tui import debug_log
from verl_tui.cli import main
from verl_tui.secrets import Mask

STEPS = "".join(
    f"step:{at} - actor/pg_loss:0.{at} - critic/score/mean:0.5\n" for at in range(1, 6)
)


def test_a_command_writes_down_what_it_read(tmp_path):
    folder = tmp_path / "home" / "mallory"
    folder.mkdir(parents=True)
    log, out = folder / "train.log", tmp_path / "debug.log"
    log.write_text(STEPS)
    main(["check", str(log), "--debug-log", str(out)])
    said = out.read_text()
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert "command line: check ~/train.log" in said
    size = len(STEPS)
    assert f" read={size} size={size} live=False path=~/train.log" in said
    assert "judged ms=" in said
    assert said.endswith("done\n")
    assert "mallory" not in said


def test_the_app_writes_down_its_frames(tmp_path):
    (tmp_path / "train.log").write_text(STEPS)
    out = tmp_path / "debug.txt"
    words = ["--debug-log", str(out), str(tmp_path / "train.log")]
    assert main([*words, "--snapshot", str(tmp_path / "a.txt")]) == 0
    assert "frame ms=" in out.read_text()


def test_errors_come_with_their_tracebacks(tmp_path):
    out = tmp_path / "debug.log"

    def failing() -> None:
        with debug_log.recording(out, Mask({})):
            try:
                raise OSError("token=abcdef123")
            except OSError as error:
                debug_log.note_error("reading x", error)
            raise ValueError("odd")

    with pytest.raises(ValueError, match="odd"):
        failing()
    said = out.read_text()
    assert "reading x: Traceback (most recent call last):" in said
    assert "OSError: token=***" in said
    assert "ended by: Traceback" in said
    assert "ValueError: odd" in said


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_the_end_of_a_thread_is_written_down(tmp_path, capsys):
    out = tmp_path / "debug.log"

    def fail() -> None:
        raise ValueError("in a thread")

    with debug_log.recording(out, Mask({})):
        thread = threading.Thread(target=fail)
        thread.start()
        thread.join()
    assert "ValueError: in a thread" in out.read_text()
    assert "ValueError: in a thread" in capsys.readouterr().err


def test_a_full_disk_is_reported_and_changes_no_verdict(tmp_path):
    log = tmp_path / "train.log"
    out = tmp_path / "debug.log"
    log.write_text(STEPS)
    words = ("check", log, "--debug-log", out)
    done = run(
        *words,
        # of which the limit would cut the files, too
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        preexec_fn=partial(resource.setrlimit, resource.RLIMIT_FSIZE, (200, 200)),
    )
    assert out.stat().st_size == 200
    assert done.stderr == f"verl-tui: {out}: file too large: the debug log ends early\n"
    assert done.returncode == 0
    assert "no warning at step 5" in done.stdout
