"""Replay of recorded runs: records arrive when they arrived then, on the clock of that time."""

from verl_tui.replay.playback import Playback, ReplayStatus, usual_speed
from verl_tui.replay.recording import Recording

__all__ = ["Playback", "Recording", "ReplayStatus", "usual_speed"]
