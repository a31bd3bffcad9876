"""A log of any size as text, read by a thread where the screen shows it."""

from verl_tui.on_demand.log.log_blocks import LogBlock, LogLine, SearchJob
from verl_tui.on_demand.log.log_reader import Log, LogReader
from verl_tui.on_demand.log.replay_cutoff import ReplayCutoff

__all__ = ["Log", "LogBlock", "LogLine", "LogReader", "ReplayCutoff", "SearchJob"]
