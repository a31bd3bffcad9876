"""Signs of a training's console that has no step yet: its first lines, a bar that moves, why it
never came to a step.

Some of them may stand in the log of any program, so a file with nothing else is a run only where no
better log lies beside it, see `verl_tui.sources.discovery.grouping`.
"""

from __future__ import annotations

import re

from verl_tui.text import strip_ansi

_BAR = re.compile(
    rb"(?:^|[\r\n])(?P<name>[^\r\n|%]{0,80}?)(?:[: ]\s*)?\d{1,3}%\|[^|\r\n]{0,1000}\|\s*\d{1,15}/\d{1,15} \["
    rb"|(?:^|[\r\n])\s*\d{1,15}/\d{1,15} \[\d\d:\d\d<"
)
"""tqdm's, with a name or without, and with too few columns for anything but its numbers."""
_OF_TRAINING = re.compile(
    rb"(?i)\s*(?:[\[(][^\])]*[\])]+:?\s*)*(?:(?:training|train|epochs?|steps?|iter|iterations?|rollout)\b.*)?$"
)
"""Names of a training's bar; the nameless one is Hugging Face's. Others are those of loading and of
data.
"""
_BEGINS = re.compile(
    rb"^run sh: `[^`\n]{0,4096}/swift/cli/(?:_megatron/)?(?:rlhf|sft|pt)\.py\b"
    rb"|^\[INFO:swift\] args: \w{0,40}(?:RLHF|Sft|SFT|Train|Pretrain)\w{0,20}Arguments\("
    rb"|^\[\w{1,10}\|[^\]\n]{1,40}\] llamafactory\.(?:train\.|hparams\.parser:\d+ >> Process rank)"
    rb"|^(?:[^\n*]{1,100} )?\*{5} Running training \*{5}"
    rb"|^ray init kwargs: \{",
    re.MULTILINE,
)
"""Lines of ms-swift, LLaMA-Factory, transformers and verl that stand in the log of a training and
of no other program of theirs, long before its first step.
"""
_BEGINNINGS = (b"swift", b"llamafactory", b"Running training", b"ray init kwargs")
"""One of these stands in each."""
_ENDS = 16 * 1024
"""Bytes before the end among which a program says why it ended."""
_FAILED = re.compile(
    rb"^(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Exit|Interrupt|NotFound)\b(?::|\s*$)"  # the end of a traceback
    rb"|^[\w./ -]{1,100}: error: \S"  # argparse
    rb"|^usage: \S"
    rb"|^Error executing job with overrides|^Could not override '|^Key '.*' is not in struct|HYDRA_FULL_ERROR=1"
    rb"|^hydra\.errors\.|^Primary config |^In '.*': Could not find '"
    rb"|: command not found\s*$|: can't open file '|: No such file or directory\s*$|: No module named \S"
    rb"|^(?:srun|slurmstepd|sbatch|docker|torchrun|\w*sh): (?:line \d+: )?(?:error|.* error|.*Killed|.*denied)"
    rb"|^Segmentation fault|^Killed\s*$|^Aborted",
    re.MULTILINE,
)
_WORDS = (
    *(
        b"rror",
        b"xception",
        b"Exit",
        b"Interrupt",
        b"ot found",
        b"NotFound",
        b"No such file",
        b"No module",
        b"struct",
    ),
    *(b"Could not", b"Primary config", b"Killed", b"denied", b"fault", b"Aborted", b"can't open"),
)
"""One of these stands in each: most texts hold none, and finding that out is quick."""
_TRAINS = re.compile(
    rb"(?i)train|verl|trl\b|grpo|ppo|dpo|rlhf|torch|transformers|deepspeed|accelerate|llama|swift|hydra|vllm|sglang"
    rb"|megatron|\bray\b|nemo|slime|unsloth|\bpeft\b|\bjax\b|cuda"
)
"""Words by which a failed program was a training."""


def begins(text: bytes) -> bool:
    """Tell whether a trainer has printed the lines with which it begins a training."""
    return (
        any(word in text for word in _BEGINNINGS) and _BEGINS.search(strip_ansi(text)) is not None
    )


def bar(text: bytes) -> bool:
    """Tell whether a training's progress bar stands in a text."""
    if b" [" not in text or b"<" not in text:
        return False
    found = _BAR.finditer(strip_ansi(text))
    return any(_OF_TRAINING.match(one["name"] or b"") for one in found)


def failed(text: bytes, named: str = "") -> bool:
    """Tell whether a program that was to train says at the end of a text why it did not.

    Args:
        text: The log, to its end.
        named: What the log is called, which may say that it is a training's.
    """
    end = text[-_ENDS:]
    if not any(word in end for word in _WORDS) or _FAILED.search(strip_ansi(end)) is None:
        return False
    return (
        _TRAINS.search(named.encode("utf-8", "replace")) is not None
        or _TRAINS.search(text) is not None
    )
