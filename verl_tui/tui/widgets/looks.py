"""How the roles look that several widgets share."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from verl_tui.tui.widgets.role_styled import Looks

LOG_LINES: Looks = {
    "error": "$text-error",
    "warning": "$text-warning",
    "mark": "$text-success",
    "step": "$text-primary",
    "progress": "$text-muted",
    "plain": "$foreground",
    "tag": "$text-muted",
    "count": "bold $text-primary",
    "number": "$text-disabled",
    "hit": "reverse $text-primary",
}
"""Lines of a log, and what stands before them."""
SAMPLES: Looks = {
    "strong": "bold $foreground",
    "dim": "$text-muted",
    "label": "$text-accent",
    "heading": "bold $text-accent",
    "prompt": "$foreground",
    "response": "$foreground",
    "fields": "$foreground",
    "truth": "$text-primary",
    "good": "$text-success",
    "warning": "$text-warning",
    "critical": "$text-error",
    "system": "$text-muted",
    "user": "$text-secondary",
    "assistant": "$foreground",
    "tool": "$text-secondary",
    "thought": "italic $text-muted",
    "call": "$text-accent",
    "result": "$text-secondary",
    "code": "$text-accent",
    "answer": "bold $text-primary",
    "differs": "bold underline $text-accent",
    "token": "$text-disabled",
    "tag": "italic $text-muted",
    "repeated": "underline $text-warning",
    "hit": "reverse $text-primary",
    "here": "bold reverse $text-warning",
}
"""Samples: what was said by whom, and how it was rewarded."""
