"""Where logs of real trainings are, which no test needs to pass: strangers' in `$VERL_TUI_LOGS`, else in
`shared/logs` beside the checkout, and those made by ourselves in `made` beside them.
"""

from __future__ import annotations

import os
from pathlib import Path

LOGS = Path(
    os.environ.get("VERL_TUI_LOGS") or Path(__file__).parents[2] / "shared" / "logs"
)
MADE = LOGS.parent / "made"
