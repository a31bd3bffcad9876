"""The reward of the toy runs: the share of the letter `a`. It fails, waits for ever or takes its
time where told to.

`TOY_FAULT` is `raise`, `hang` or `flaky` (an eighth of the responses), from the step `TOY_FAULT_AT`
on; `TOY_SLEEP` is how many seconds each reward takes.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

FAULT = os.environ.get("TOY_FAULT", "")
AT = int(os.environ.get("TOY_FAULT_AT", "1"))
SLEEP = float(os.environ.get("TOY_SLEEP", "0"))


def _is_due():
    """Tell whether the step has begun that the fault is planned for: the one before has left its
    rollouts.
    """
    return AT <= 1 or Path("rollouts", f"{AT - 1}.jsonl").exists()


def compute_score(data_source, solution_str, ground_truth, extra_info=None, **_options):
    """Return the score of a response, and figures about it."""
    time.sleep(SLEEP)
    if FAULT and _is_due():
        if FAULT == "hang":
            time.sleep(36000)
        if FAULT == "raise" or len(solution_str) % 8 == 0:
            raise RuntimeError("judge endpoint answered 503")
    share = solution_str.count(ground_truth) / max(1, len(solution_str))
    return {
        "score": share,
        "letters": len(solution_str),
        "begins_so": float(solution_str.startswith(ground_truth)),
    }
