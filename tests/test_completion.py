"""Real shells complete command lines with the scripts that `--print-completion` prints."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING, NamedTuple

import pytest

from verl_tui.cli import build_parser
from verl_tui.commands.completion import script

if TYPE_CHECKING:
    from pathlib import Path


SHELLS = ("bash", "zsh", "fish", "tcsh")


class Completed(NamedTuple):
    """What one command line completes to."""

    line: str
    least: set[str]
    """Words that must be offered."""
    never: frozenset[str] = frozenset()
    """Words that must not."""
    shells: tuple[str, ...] = ("bash", "zsh", "fish")
    """Whose ways to write a word it needs."""


EXPECTED = (
    Completed("verl-tui che", {"check"}, frozenset({"export", "chosen.log"})),
    Completed("verl-tui ch", {"check", "chosen.log"}, frozenset({"export"})),
    Completed("verl-tui ", {*build_parser().commands, "chosen.log"}),
    Completed("verl-tui --sn", {"--snapshot"}, frozenset({"--size"})),
    Completed("verl-tui --ascii ch", {"check", "chosen.log"}),
    Completed("verl-tui --size 80", {"80x24"}, frozenset({"check"})),
    Completed("verl-tui chosen.log --sn", {"--snapshot"}),
    Completed("verl-tui chosen.log ch", {"chosen.log"}),
    Completed("verl-tui --print-completion ", set(SHELLS), frozenset({"check"})),
    Completed("verl-tui check --ag", {"--against"}, frozenset({"--size"})),
    Completed("verl-tui check --json ch", {"chosen.log"}, frozenset({"check"})),
    Completed("verl-tui check chosen.log ch", {"chosen.log"}),
    Completed("verl-tui check --best-by val", {"validation", "value_loss"}),
    Completed("verl-tui guard --on gpu", {"gpu-idle"}, frozenset({"kl-high"})),
    Completed(
        "verl-tui compare --align ", {"end", "step", "time"}, frozenset({"chosen.log"})
    ),
    Completed("verl-tui export ", {*build_parser().commands["export"].commands}),
    Completed("verl-tui export cs", {"csv"}, frozenset({"tensorboard"})),
    Completed("verl-tui export csv --o", {"--output"}),
    Completed("verl-tui export tensorboard -o lo", {"logs"}),
    Completed("verl-tui check --config=cho", {"chosen.log"}, shells=("zsh",)),
    Completed('verl-tui check "./cho', {"./chosen.log"}, shells=("fish",)),
    Completed("verl-tui check \\$mo", {"$money.log"}, shells=("fish",)),
)

_BASH = """
source ./script
function=$(complete -p verl-tui | sed 's/.* -F \\([^ ]*\\) .*/\\1/')
for asked; do
  read -ra COMP_WORDS <<< "$asked"
  [[ $asked == *" " ]] && COMP_WORDS+=("")
  COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 )) COMPREPLY=()
  "$function" verl-tui "${COMP_WORDS[-1]}" "${COMP_WORDS[-2]}" 2>/dev/null
  for match in "${COMPREPLY[@]}"; do printf '%s\\t%s\\n' "$asked" "$match"; done
done
"""
_FISH = """
source ./script
for line in $argv
  for match in (complete -C $line | string replace -r '\\t.*' '')
    printf '%s\\t%s\\n' $line $match
  end
end
"""
# A shell of its own on a terminal, in which the tab key is pressed: only there does zsh complete.
_ZSH = """
zmodload zsh/zpty
cat > setup <<'END'
PROMPT= RPROMPT=
autoload -Uz compinit; compinit -D -u
eval "$(<script)"
compadd() {
  local -a matches; builtin compadd -A matches "$@"
  (( $#matches )) && print -rl -- "$line_"$'\\t'$^matches >>found
  builtin compadd "$@"
}
press() { line_=$BUFFER; zle complete-word; BUFFER=; print -n press''ed }
zle -N press; bindkey '^I' press
print -n press''ed
END
zpty shell zsh -f -i
zpty -w shell 'source ./setup'
zpty -r shell shown '*pressed*'
for line; do
  zpty -w -n shell "$line"$'\\t'
  zpty -r shell shown '*pressed*'
done
zpty -d shell
cat found
"""
_ASKING = {"bash": ("bash", "-c", _BASH, "bash"), "zsh": ("zsh", "-fc", _ZSH, "zsh")}


@pytest.fixture(scope="module", params=["bash", "zsh", "fish"])
def completed(request, tmp_path_factory):
    """What a real shell completes each line to, in a directory with a log."""
    shell = request.param
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    here: Path = tmp_path_factory.mktemp(shell)
    (here / "script").write_text(script(build_parser(), shell), encoding="utf-8")
    (here / "chosen.log").touch()
    (here / "$money.log").touch()
    (here / "logs").mkdir()
    asked = (
        *_ASKING.get(shell, ("fish", "--no-config", "-c", _FISH)),
        *(one.line for one in EXPECTED),
    )
    done = subprocess.run(
        asked,
        capture_output=True,
        text=True,
        check=True,
        cwd=here,
        stdin=subprocess.DEVNULL,
        timeout=60,
    )
    found: dict[str, set[str]] = {}
    for row in done.stdout.splitlines():
        line, _, match = row.partition("\t")
        found.setdefault(line, set()).add(match.rstrip("/"))
    return shell, found


@pytest.mark.parametrize("expected", EXPECTED, ids=[one.line for one in EXPECTED])
def test_a_shell_completes(completed, expected):
    shell, found = completed
    offered = found.get(expected.line, set())
    if shell not in expected.shells:
        return
    assert expected.least <= offered
    assert not expected.never & offered


@pytest.mark.parametrize("shell", SHELLS)
def test_scripts_know_every_command(shell, asked):
    printed = asked("--print-completion", shell, code=0).out
    assert all(name in printed for name in build_parser().commands)
    assert "print-completion" in printed
    assert printed == f"{script(build_parser(), shell)}\n"
