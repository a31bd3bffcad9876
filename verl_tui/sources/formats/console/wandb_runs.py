"""Which runs at W&B a console reports to, as wandb says it at the beginning and at the end of each
(sdk/wandb_run.py).

At the beginning: `wandb: Run data is saved locally in
/home/me/wandb/offline-run-20261122_235944-55ahqe14`; where it is online also `wandb: 🚀 View run at
https://wandb.ai/me/letters/runs/55ahqe14`. At the end: `wandb: Find logs at:
./wandb/offline-run-20261122_235944-55ahqe14/logs`, `wandb: wandb sync
/home/me/wandb/offline-run-…`. What it says of runs that are only read (`wandb: Restoring run …`,
`wandb: Downloading …`) names no run of its own.
"""

from __future__ import annotations

import re

_LONGEST = 128
"""Letters of an id, as W&B allows."""
_OWN = re.compile(
    rb"wandb: +(?:Run data is saved locally in |Find logs at: |wandb sync )"
    rb".{0,4096}?(?:offline-)?run-\d{8}_\d{6}-(?P<directory>[^/\\\s]{1,%d})(?:[/\\]logs)?\s*$"
    rb"|wandb: \W{0,40}View run (?:.{0,1000} )?at:? https?://\S{1,1000}/runs/(?P<page>[^/?\s]{1,%d})(?:\?\S*)?\s*$"
    % (_LONGEST, _LONGEST)
)


def reports_to(part: bytes) -> str | None:
    """Return the id of the run at W&B that a line says its program reports to, None where it says
    nothing of it.
    """
    found = _OWN.match(part)
    return (
        (found["directory"] or found["page"]).decode("utf-8", "replace")
        if found is not None
        else None
    )
