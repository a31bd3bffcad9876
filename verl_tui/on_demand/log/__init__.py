"""A log of any size as text, read by a thread where the screen shows it."""

from verl_tui.on_demand.log.blocks import LogBlock, LogLine
from verl_tui.on_demand.log.reader import Log, LogReader
from verl_tui.on_demand.log.replay_cutoff import ReplayCutoff
from verl_tui.on_demand.log.search import SearchJob

__all__ = ["Log", "LogBlock", "LogLine", "LogReader", "ReplayCutoff", "SearchJob"]
