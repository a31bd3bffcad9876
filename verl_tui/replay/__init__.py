"""A recorded run played as if live: what its logs say comes when it came then, on the clock of that
time.
"""

from verl_tui.replay.player import Player, ReplayStatus, usual_speed
from verl_tui.replay.tape import Tape

__all__ = ["Player", "ReplayStatus", "Tape", "usual_speed"]
