"""The W&B runs that a console reports to, as wandb prints at their start and end.

At the start: `wandb: Run data is saved locally in
/home/me/wandb/offline-run-20261122_235944-55ahqe14`; where it is online also `wandb: 🚀 View run at
https://wandb.ai/me/letters/runs/55ahqe14`. At the end (sdk/wandb_run.py): `wandb: Find logs at:
./wandb/offline-run-20261122_235944-55ahqe14/logs`, `wandb: wandb sync
/home/me/wandb/offline-run-…`. Lines about runs that are only read
(`wandb: Restoring run …`, `wandb: Downloading …`) name no run of the program's own.
"""

from __future__ import annotations

from verl_tui.patterns import pattern

_LONGEST = 128
"""Characters of an id that W&B allows."""
_OWN = pattern(
    rb"wandb: +(?:Run data is saved locally in |Find logs at: |wandb sync )"
    rb".{0,4096}?(?:offline-)?run-\d{8}_\d{6}-(?P<directory>[^/\\\s]{1,%d})(?:[/\\]logs)?\s*$"
    rb"|wandb: \W{0,40}View run (?:.{0,1000} )?at:? https?://\S{1,1000}"
    rb"/runs/(?P<page>[^/?\s]{1,%d})(?:\?\S*)?\s*$" % (_LONGEST, _LONGEST)
)


def reports_to(part: bytes) -> str | None:
    """Return the id of the W&B run that a line names as its program's own, None for other lines."""
    found = _OWN.match(part)
    if found is None:
        return None
    run: bytes = found["directory"] or found["page"]
    return run.decode("utf-8", "replace")
