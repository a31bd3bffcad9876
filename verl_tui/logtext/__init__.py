"""A log as text, however large: read where somebody looks, in a thread of its own, from the newest line backwards."""

from verl_tui.logtext.blocks import Block, LogLine
from verl_tui.logtext.hunt import Hunt
from verl_tui.logtext.log import Log, LogReader
from verl_tui.logtext.present import Present

__all__ = ["Block", "Hunt", "Log", "LogLine", "LogReader", "Present"]
