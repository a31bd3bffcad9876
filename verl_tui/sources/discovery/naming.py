"""Name runs by their experiment, else by the folder or the file that no other run has.

Names that say only what lies in a folder (`logs`, `output`, `train`) and names that mean nothing
(`m950nfkl`) give way to what is above them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from os.path import commonprefix

from verl_tui.means import gathered
from verl_tui.patterns import pattern
from verl_tui.text import decoded, one_line

_THINGS = (
    r"logs?|out|outputs?|console|stdout|metrics|runs|tb|tensorboard(?:_logs?)?|events|wandb"
    r"|swanlog|samples|rollouts?|dumps?|validations?|results?|csv|train|slurm|data"
)
_CONTENT = pattern(
    rf"(?:run|{_THINGS})(?:[_-]?(?:logs?|data|dir|files|dumps?))?", re.IGNORECASE
)
_NOTHING = pattern(
    rf"(?:{_THINGS}|exps?|experiments?|outdir|stderr|files|train(?:ing|er)|main(?:_ppo)?|nohup"
    r"|default|tmp|checkpoints?|ckpts?|attempt_\d+|rank[._-]?#?\d*|version_\d+|none|null"
    r"|none_\w+|trainer_state|latest(?:-run)?|checkpoint-\d+|global_step_\d+)"
    r"(?:[._-]?(?:logs?|data|dir|files|dumps?|out(?:put)?|metrics))?"
    r"|verl[_-]?(?:logs?|demo)?",
    re.IGNORECASE,
)
"""Names of what lies in a folder, not of an experiment."""
_ID = pattern(
    r"[0-9a-f]{7,64}|[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|\d+"
    r"|(?:offline-)?run-\d{8}_\d{6}-\w+"
    r"|[A-Z][a-z]{2}\d\d_\d\d-\d\d-\d\d_.*|\d{4}-\d\d-\d\d|\d\d-\d\d-\d\d|v\d+-\d{8}-\d{6}"
)
"""Commits, ids, days and times."""
_TITLE = pattern(
    rb"_name['\"]?\s*(?::|=|\s(?=[\w'\"./]))"
    rb"[ \t]*(?:\n\s+desc:[^\n]*)?(?:\n\s+value:[ \t]*)?"
    rb"(?:'(?P<a>[^'\n]*)'|\"(?P<b>[^\"\n]*)\""
    rb"|(?P<c>(?![bfr]{1,2}['\"])[^\s'\",;()\[}\]#]+))"
)
"""An experiment's name in YAML, JSON, overrides, arguments on a command line, and dumps of
arguments.
"""
_NAMERS = pattern(rb"(?:^|[^A-Za-z0-9_])(?:experiment|(?:wandb_)?run|exp)$")
"""Before `_name`: whose name it is."""
_STANDS_FOR_ONE = pattern(
    r"(?i:none|null|\?\?\?|true|false|str|optional\[str\]|=|:)?"
    r"|(?:\w+_)?(?:NAME|TEXT|STRING|VALUE)"  # in a usage text
    r"|(?:\w+_)?(?:run|exp|experiment)_name|name|string|text|value"  # an argument's own
    r"|(?:\w*args?|cfg|config|conf|self|opts?|options|FLAGS)\.[\w.]+"  # a line of a program
    r"|.*(?:[<{$]|%[(sd]).*"
)
"""What stands where a name would: in usage texts, templates and lines of programs."""
_DATE = pattern(r"(?:offline-)?run-\d{8}_\d{6}-(?=.)")
"""What comes before the id in the name of a W&B run's folder."""
_NO_NAME = "(no name)"


def says_content(name: str) -> bool:
    """True if a folder's name says what lies in it, not which run it is."""
    return _CONTENT.fullmatch(name) is not None


def is_generic(name: str) -> bool:
    """True if a name is that of a thing or an id, not of an experiment."""
    is_id = _ID.fullmatch(name) is not None and not name.isalpha()
    return is_id or _NOTHING.fullmatch(name) is not None


def experiment_name(text: bytes) -> str:
    """Return the experiment's name in settings, without a path; empty if there is none."""
    for found in _TITLE.finditer(text):
        if not _NAMERS.search(text[max(0, found.start() - 16) : found.start()]):
            continue
        value: bytes = found["a"] or found["b"] or found["c"] or b""
        name = decoded(value).strip().rstrip("/").rpartition("/")[2]
        is_called = text[found.end() : found.end() + 1] in (b"(", b"[")
        if not (is_called or is_generic(name) or _STANDS_FOR_ONE.fullmatch(name)):
            return one_line(name, 120)
    return ""


def place_name(relative: Sequence[str], above: Sequence[str]) -> str:
    """Return a run's name by its path: without the generic parts at its end.

    Args:
        relative: Parts of its path below what the user named, perhaps with a file's name at its
            end.
        above: Parts of the path of what the user named.
    """
    own = list(relative)
    while own and is_generic(own[-1]):
        own.pop()
    if own:
        return "/".join(own)
    for part in reversed(above):
        if part != "/" and not is_generic(part):
            return part
    return "/".join(relative)


def distinct(names: Sequence[str], places: Sequence[Sequence[str]]) -> list[str]:
    """Return unique names, with a part of the path added where needed.

    Args:
        names: Names of runs.
        places: The whole path of each in parts, with the file's name at its end where it matters.
    """
    out = list(names)
    for name, alike in gathered((name, at) for at, name in enumerate(names)).items():
        words = _differences([places[at] for at in alike]) if len(alike) > 1 else [""]
        for at, word in zip(alike, words, strict=True):
            out[at] = f"{name} ({word})" if word and word != name else name
    return _numbered([*map(visible, out)])


def visible(name: str) -> str:
    """Return a run's name on one line, and something to see for one that is empty or blank."""
    return one_line(name, 120).strip() or _NO_NAME


def _numbered(names: Sequence[str]) -> list[str]:
    """Return names with a number added to each repeated one, which makes none of the others."""
    taken: Counter[str] = Counter()
    out = []
    for name in names:
        taken[name] += 1
        numbered = name
        while taken[name] > 1 and (numbered := f"{name} ({taken[name]})") in names:
            taken[name] += 1
        out.append(numbered)
    return out


def _differences(places: Sequence[Sequence[str]]) -> list[str]:
    """Return the part in which paths differ, where a single one of them tells, else all of it."""
    rests = [[*place] for place in places]
    for _ in range(2):  # what all begin with, and what all end with
        same = len(commonprefix(rests))  # noqa: RUF071 - of parts
        rests = [rest[same:][::-1] for rest in rests]
    firsts = [rest[0] if rest else "" for rest in rests]
    if all(firsts) and len({*firsts}) == len(firsts):
        rests = [[first] for first in firsts]
    return [_DATE.sub("", "/".join(rest)) for rest in rests]
