"""The tasks that the help sorts keys by: a key that holds everywhere names its own as its `group`,
a screen or a panel names that of all its keys in its `HELP_SECTION`.
"""

from __future__ import annotations

from textual.binding import Binding

LEARN = Binding.Group("see whether it learns")
WHY = Binding.Group("find out why it broke")
SAMPLES = Binding.Group("read samples")
COMPARE = Binding.Group("compare runs")
SPEED = Binding.Group("see how fast it goes")
TAKE = Binding.Group("take something away")
MOVE = Binding.Group("move and look")

TASKS = (LEARN, WHY, SAMPLES, COMPARE, SPEED, TAKE, MOVE)
"""The tasks, in the order of the help."""
