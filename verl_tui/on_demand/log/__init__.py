"""A log as text, however large: read where somebody looks, in a thread of its own, from the newest
line backwards.
"""

from verl_tui.on_demand.log.blocks import Block, LogLine
from verl_tui.on_demand.log.reader import Log, LogReader
from verl_tui.on_demand.log.replay_cutoff import ReplayCutoff
from verl_tui.on_demand.log.search import SearchJob

__all__ = ["Block", "Log", "LogLine", "LogReader", "ReplayCutoff", "SearchJob"]
