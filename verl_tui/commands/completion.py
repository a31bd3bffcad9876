"""Completion scripts for shells, made from the parsers of all commands."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING
from zlib import crc32

from verl_tui.commands.help import TOPICS, finding_ids
from verl_tui.indicators import INDICATORS

if TYPE_CHECKING:
    import argparse

    from verl_tui.commands.arguments import CommandParser

_PATHS = {"DIR": "directory", "FILE": "file", "PATH": "file", "RUN": "file"}
"""First word for a value in the help -> how it is completed."""

# shtab's scripts know commands as the first word only. `watch` need not be named: paths stand
# beside the commands there, and what follows a path is completed as if `watch` stood before it.
_BASH = "_shtab_verl_tui_pos_0_COMPGEN=_shtab_compgen_files"
_ZSH = """\
functions[_shtab_verl_tui_named]=$functions[_shtab_verl_tui_commands]
_shtab_verl_tui_commands() { _shtab_verl_tui_named; _files }
functions[_shtab_verl_tui_any]=$functions[_shtab_verl_tui]
_shtab_verl_tui() {
  local at=2
  while (( at < CURRENT )) && [[ $words[at] == -* ]]; do
    [[ " @valued@ " == *" $words[at] "* ]] && (( at++ ))
    (( at++ ))
  done
  if (( at < CURRENT )) && [[ " @commands@ " != *" $words[at] "* ]]; then
    words=($words[1] watch "${(@)words[2,-1]}")
    (( CURRENT++ ))
  fi
  _shtab_verl_tui_any "$@"
}"""
_FISH = """
functions -e _shtab_verl_tui_named
functions -c _shtab_verl_tui_scan _shtab_verl_tui_named
function _shtab_verl_tui_scan
  _shtab_verl_tui_named
  if test -z "$_shtab_verl_tui_cmdpath" -a "$_shtab_verl_tui_npos" -gt 0
    set -g _shtab_verl_tui_cmdpath watch
  end
end
complete -c verl-tui -n '_shtab_verl_tui_using; and test $_shtab_verl_tui_npos -eq 0' \
-F
"""
_OTHERWISE = {
    "zsh": {
        r'"\(\*\)::': '"*:',  # offers no second path
        r'(--[a-z-]+)(\}?"?\[.*\]:)': r"\1=\2",  # nor a value behind `=`
        r"== eval \]": "== (eval|file*) ]",  # fails under `source <(…)`
    },
    # offers no path behind `~` or within quotes, and lets `ls` complain of names such as `-x`
    "fish": {r'x?ka "\(__fish_complete_path .*?\)\)"': "rF"},
}
"""Shell -> what shtab writes, each with what it should be."""


def script(parser: CommandParser, shell: str) -> str:
    """Return the script that completes the program's command lines in a shell."""
    import shtab

    words: dict[object, Iterable[str]] = {
        "METRIC": INDICATORS,
        "ID": finding_ids(),
        "COLSxROWS": ("80x24", "120x40", "160x50"),
        "TOPIC": (*TOPICS, *parser.commands),
    }
    for option in actions(parser):
        # shtab looks for this attribute; other words than those listed are allowed too.
        if option.metavar in words:
            listed = _words_in_shells(words[option.metavar])
            option.complete = listed  # type: ignore[attr-defined]
        elif path := _PATHS.get(str(option.metavar).split("|")[0].split(".")[0]):
            option.complete = path  # type: ignore[attr-defined]
    preamble = {"bash": _BASH, "zsh": _ZSH}.get(shell, "")
    made: str = shtab.complete(parser, shell, preamble=preamble)
    made = made.replace("@valued@", " ".join(parser.valued)).replace(
        "@commands@", " ".join(parser.commands)
    )
    for pattern, instead in _OTHERWISE.get(shell, {}).items():
        made = re.sub(pattern, instead, made)
    return made + _FISH * (shell == "fish")


def actions(parser: CommandParser) -> Iterator[argparse.Action]:
    """Yield the options and arguments of a parser and of its commands."""
    yield from parser._actions
    for command in parser.commands.values():
        yield from actions(command)


def _words_in_shells(words: Iterable[str]) -> dict[str, object]:
    """Return how each shell completes an argument to words, as shtab takes it."""
    listed = " ".join(words)
    name = f"_verl_tui_{crc32(listed.encode()):x}"
    return {
        "preamble": {"bash": f'{name}() {{ compgen -W "{listed}" -- "$1"; }}'},
        "bash": name,
        "zsh": f"({listed})",
        "fish": listed,
        "tcsh": f"({listed})",
    }
