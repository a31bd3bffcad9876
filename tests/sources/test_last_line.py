"""The last line of a log without an end: read where it is complete by itself, else reported."""

from __future__ import annotations

import pytest
from log_reading import notes, read_text, values

from verl_tui.sources.formats.console.decoder import ConsoleDecoder
from verl_tui.sources.formats.filelogger import FileLoggerDecoder
from verl_tui.sources.formats.lines import LineReader

STEPS = "".join(
    f"step:{step} - critic/score/mean:0.5 - actor/pg_loss:0.25 - timing_s/step:1{step}.5\n"
    for step in (1, 2)
)
CUT = "step:3 - critic/score/mean:0.7 - actor/pg_loss:0.4"
OBJECTS = '{"step": 1, "data": {"a": 1.0}}\n{"step": 2, "data": {"a": 1.'
SAID = "last line has no end"


def test_a_step_line_that_is_cut_gives_no_value_that_may_be_cut(tmp_path):
    run = read_text(tmp_path, STEPS + CUT)
    assert values(run, "actor/pg_loss") == {1: 0.25, 2: 0.25}
    assert SAID in notes(run)


def test_a_whole_step_line_counts_though_a_dict_is_printed_on_it(tmp_path):
    last = "{'seed': 1}\rstep:3 - critic/score/mean:0.7 - actor/pg_loss:0.4 - timing_s/step:13.5"
    run = read_text(tmp_path, STEPS + last)
    assert values(run, "actor/pg_loss") == {1: 0.25, 2: 0.25, 3: 0.4}


@pytest.mark.parametrize(
    ("decoder", "text"), [(ConsoleDecoder, STEPS + CUT), (FileLoggerDecoder, OBJECTS)]
)
def test_that_a_last_line_is_not_read_is_reported_until_it_goes_on(decoder, text):
    reader = LineReader(decoder())
    reader.feed(text.encode())
    assert reader.note is None, "it may go on any moment"
    reader.finish()
    assert SAID in (reader.note or "")
    reader.feed(b"5")
    assert reader.note is None
