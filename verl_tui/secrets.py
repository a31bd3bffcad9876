"""Hides what gives access: launch commands, configurations and errors hold API keys, tokens and
passwords.

They are told by their names (`WANDB_API_KEY`, `hub_token`, `password`) and by the forms that
services give their keys. Names are not enough of their own: `prompt_key` and `eos_token` are
everyday settings of a training. A heuristic: a key of an unknown form under a name that says
nothing stays as it is.
"""

from __future__ import annotations

import re

HIDDEN = "***"

_NAMES = (
    r"(?:api|access|secret|private|auth|account|wandb|swanlab|comet|license)[_-]?key"
    r"|(?:api|hub|hf|hugging[_-]?face|auth|access|wandb|swanlab|github|gitlab|bearer|session|refresh|bot|login)[_-]?token"
    r"|secret|password|passwd|passphrase|credentials?"
)
_NAME = re.compile(rf"(?:.*[._/-])?(?:\w*(?:{_NAMES})(?:_id)?|token)", re.IGNORECASE)
_MAYBE = re.compile(r".*(?:key|token|wandb|swanlab|comet|login)", re.IGNORECASE)
"""Names of settings that may hold a key, if what they hold looks like one."""
_RANDOM = re.compile(r"(?=(?:\D*\d){3})(?=.*[A-Za-z])[\w-]{20,}")
_STATED = re.compile(
    rf"((?:{_NAMES})(?:_id)?['\"]?(?:\s{{0,3}}[=:]\s{{0,3}}|[ ]['\"]?)['\"]?)"
    r"([^\s'\",;)\]}]{8,})",
    re.IGNORECASE,
)
_FORMS = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{20,}|sk-[\w-]{20,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}"
    r"|AKIA[0-9A-Z]{16}|xox[abp]-[\w-]{10,}|wandb_v\d_\w{20,})"
)
"""Keys of Hugging Face, OpenAI and those after it, GitHub, GitLab, AWS, Slack and W&B."""
_IN_ADDRESS = re.compile(r"(://[^\s:/@]{1,100}:)[^\s/@]{1,200}(?=@)")
"""A password in an address: `postgres://user:password@host`."""


def hide_setting(name: str, value: object) -> object:
    """Return a setting's value, hidden where it gives access; switches, numbers and what is not set
    stay.
    """
    if not isinstance(value, str) or not value:
        return value
    if value.isascii() and (
        _NAME.fullmatch(name) or (_MAYBE.fullmatch(name) and _RANDOM.fullmatch(value))
    ):
        return value if value.startswith(("${", "<")) else HIDDEN
    return hide(value)


def hide(text: str) -> str:
    """Return a line of text with keys, tokens and passwords hidden."""
    return _IN_ADDRESS.sub(rf"\1{HIDDEN}", _FORMS.sub(HIDDEN, _STATED.sub(_hidden, text)))


def _hidden(found: re.Match[str]) -> str:
    """Hide what stands behind a name, if it is no ordinary word: `invalid access token
    provided`.
    """
    named = "=" in found[1] or ":" in found[1] or any(map(str.isdigit, found[2]))
    return found[1] + HIDDEN if named else found[0]
