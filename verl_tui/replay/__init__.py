"""A recorded run played as if live: what its logs say comes when it came then, on the clock of that
time.
"""

from verl_tui.replay.player import Player, Standing, usual_speed
from verl_tui.replay.tape import Tape

__all__ = ["Player", "Standing", "Tape", "usual_speed"]
