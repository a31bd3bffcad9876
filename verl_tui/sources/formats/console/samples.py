"""Samples as verl, its forks and TRL print them on the console, over several lines each.

verl's reward managers (verl/workers/reward_manager/naive.py): `[prompt] … [response] …
[ground_truth] … [score] …`, and a line for every further value where the reward function gives
several. `num_examine` is 0 in training unless users change it: what follows `validation generation
end` is a validation's. A model wrote these lines: nothing else is read from them.

Search-R1 and TinyZero (verl/utils/reward_score/qa_em.py, countdown.py): `Golden answers: …`,
`Extracted answer: …`, `Solution string: …`, which holds the prompt, too. Logic-RL (kk.py):
`[Ground Truth] …`, `[Model Response]` and the response, some checks, and three scores. These have
no end that nothing else could be: what stands in them is read as any other line, too.

TRL prints tables of completions with rich, one sample a row. GRPO's stand in a box titled `Step N`
(trl/trainer/utils.py, `print_prompt_completions_sample`). Those of PPO, and of RLOO up to 0.21,
have no title: they follow the step whose model answers prompts of the evaluation
(`print_rich_table`). Cells are wrapped and cut for the width of a terminal, so the texts are those
printed, not all that was generated.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby

from verl_tui.patterns import pattern
from verl_tui.records import Sample
from verl_tui.sources.fields.jsonl import Fields, written_number
from verl_tui.sources.fields.sample import LONGEST_TEXT, RewardSum, plain_field
from verl_tui.text import decoded, safe, strip_ansi

_LONGEST = 2000
"""Lines after which a sample that did not end is given up."""
_AT_ONCE = 8192
"""Bytes in which lines of a sample are looked for at once: three times as fast as line by line."""
_RAY = pattern(rb"(?:\x1b\[[\d;]{0,20}m)*\([^()\x1b\n]*\)(?:\x1b\[[\d;]{0,20}m)* ")
"""Ray's prefix with its colours."""
_FIELD = pattern(
    rb"(?:\[(?P<verl>prompt|response|output|ground_truth|score)\]"
    rb"|(?P<truth>Golden answers:|Target:(?= \S{1,40} \| Numbers: )|\[Ground Truth\]:?)"
    rb"|(?P<extracted>Extracted (?:answer|equation):)"
    rb"|(?P<response_of_fork>Solution string:|\[Model Response\]:?)"
    rb"|(?P<check>\[(?:Structure Validation|Model Answer Parsing|Content Validation)\]:?)) ?"
)
"""Begins a field of a sample, or a check of a fork's, which ends one; `output` is EasyR1's name of
a response, which it prints of validations alone (logger/gen_logger.py).
"""
_NAMES = {"output": "response", "ground_truth": "truth", "response_of_fork": "response"}
_VALUE = pattern(rb"\[(\w{1,60})\] ([^\n]{0,2000})$")
"""A further value of the reward function."""
WORDS = (
    "[prompt]", "Golden answers", "Target: ", "Extracted ", "Solution string",
    "[Ground Truth]", "[Model Response]", " Validation]", " Parsing]", "╭", "┃ query ",
)  # fmt: skip
"""Every line that begins a sample, a field of a fork's or a table contains one of these."""
_SCORE = pattern(rb"  (Format|Answer|Total): (-?\d{1,20}(?:\.\d{1,20})?)\s*$")
_OVER = pattern(
    rb"[-=]{20,}\s*$|epoch \d+, step \d|step:\d|ACTIVE_TRAJ_NUM|Traceback \(|Error executing job"
)
"""What comes after a sample of Search-R1."""
_ANSWERS = (
    "<|im_start|>assistant\n",
    "<|start_header_id|>assistant<|end_header_id|>\n",
)
"""What stands between prompt and response."""

_TABLE = pattern(
    "\\s*(?:╭(?:─)+ Step (?P<step>\\d{1,15}) (?:─)+╮"
    "|┃ query +┃ model response +┃ score +┃)\\s*".encode()
)
"""The line that begins a table: a box with a title, or the header of a table without one."""
_INSIDE = ("│", "├", "╰", "└")
"""A line of a table that has begun begins with one of these, the last one with the latter two."""
_TEXTS = ("prompt", "completion", "query", "model_response")
"""Columns that hold texts, whatever these look like."""
_LONGEST_TABLE = 20_000
"""Lines after which an unfinished table is given up."""


class SampleReader:
    """Reads the samples of one console; a complete one waits for values after its score."""

    def __init__(self) -> None:
        self._prefix = b""
        """Names the actor that prints the sample."""
        self._is_verls = False
        """True if all lines are the sample's, up to its score."""
        self._validating = False
        """True if a validation has been generated since the last step."""
        self._resumed: int | None = None
        """The step from which the run resumes, until a step line follows."""
        self._step: int | None = None
        """Last step seen: a sample belongs to the one after it."""
        self._reached: int | None = None
        """The step that the console says it has begun."""
        self.leave()

    def leave(self) -> None:
        """Forget the sample, as where a step line shows that it is over."""
        self._field: str | None = None
        """The field that is open; None outside of a sample, and behind one's score."""
        self.lines: dict[str, list[bytes]] = {}
        """Field -> its lines; empty outside of a sample, to which any line may belong."""
        self._values: Fields = {}
        """Further values of the reward function."""

    @property
    def begun(self) -> bool:
        """True if a sample has begun, and not ended, whose lines are nothing else."""
        return self._is_verls and self._field is not None

    def holds(self, prefix: bytes) -> bool:
        """Return True if a line of this actor is part of a sample, so that a model wrote it."""
        return self.begun and prefix == self._prefix

    @property
    def _is_over(self) -> bool:
        return self._is_verls and self._field is None

    def trained(self, step: int | None) -> Sequence[Sample]:
        """Note that a step has ended, so that the next samples belong to another one; return the
        sample that has no end but this.
        """
        samples = self.held()
        self._step, self._validating, self._resumed = step, False, None
        return samples

    def notice(self, said: Mapping[str, int]) -> None:
        """Take what a line outside of a sample states, which may say which samples follow."""
        self._validating |= "validated" in said
        self._resumed = said.get("resumed", self._resumed)
        self._reached = said.get("begun", self._reached)

    def feed(self, prefix: bytes, part: bytes) -> Sequence[Sample]:
        """Take a line; return the samples that it completes.

        Args:
            prefix: Names the actor that printed the line.
            part: The line.
        """
        found = _FIELD.match(part)
        verls = found is not None and found["verl"] is not None
        if not found or (not verls and self.holds(prefix)):
            return self._further(prefix, part)
        field = str(found["verl"].decode() if verls else found.lastgroup)
        samples: Sequence[Sample] = ()
        if field in ("prompt", "truth"):
            samples = self.held()
            self.leave()
            self._prefix, self._is_verls = prefix, verls
        elif not self._is_its(prefix):
            return ()
        elif self._is_over:
            return self.held()
        self._validating |= field == "output"
        self._field = _NAMES.get(field, field)
        self._add(part[found.end() :])
        if field == "score":  # it is whole at once
            self._field = None
        return samples

    def read_on(self, text: bytes, at: int, line: bytes) -> int:
        """Read the lines after one of a sample that are certain to belong to its field; return
        where they end.

        Args:
            text: Complete lines.
            at: Where the first of them begins.
            line: The one before, which nothing was put before but by Ray.
        """
        ray = _RAY.match(line)
        lead = ray[0] if ray else b""
        found = _plain_lines(lead).match(text, at, at + _AT_ONCE)
        if self._field is None or not found or strip_ansi(lead) != self._prefix:
            return at
        lines = found[0]
        step = lines.find(b"step:")
        if step >= 0:
            lines = lines[: lines.rfind(b"\n", 0, step) + 1]
        parts = [one.removeprefix(lead) for one in lines.split(b"\n")[:-1]]
        known = self.lines.setdefault(self._field, [])
        if len(known) + len(parts) > _LONGEST:
            return at
        known += parts
        return at + len(lines)

    def _further(self, prefix: bytes, part: bytes) -> Sequence[Sample]:
        """Take a line that begins no field, or that a model wrote."""
        if not self._is_its(prefix):
            return ()
        if self._ends(part):
            return self.held()
        self._add(part)
        return ()

    def _is_its(self, prefix: bytes) -> bool:
        return bool(self.lines) and prefix.strip() == self._prefix.strip()

    def _add(self, part: bytes) -> None:
        """Take a line of the open field; give the sample up where there are too many."""
        if self._field is not None:
            self.lines.setdefault(self._field, []).append(part)
            if len(self.lines[self._field]) > _LONGEST:
                self.leave()

    def _ends(self, part: bytes) -> bool:
        """Return whether a line that begins no field follows a sample; take a further value of the
        reward function, which may give values but no score.
        """
        if self._is_verls:
            value = _VALUE.match(part) if self._field in ("truth", None) else None
            if not value:
                return self._is_over
            self._field = None
            text = safe(decoded(value[2]))
            number = _float(text)
            self._values[value[1].decode()] = text if number is None else number
            return False
        if self._field == "response":
            return _OVER.match(part) is not None
        score = _SCORE.match(part) if self._field == "check" else None
        if score:
            self._values[score[1].decode().lower()] = float(score[2])
        return score is not None and score[1] == b"Total"

    def held(self) -> Sequence[Sample]:
        """Return the sample that has no end but what follows, if there is one."""
        if self.begun:
            return ()
        lines, values = self.lines, self._values
        self.leave()
        if "response" not in lines:
            return ()
        texts = {
            name: safe(decoded(b"\n".join(of)), LONGEST_TEXT)
            for name, of in lines.items()
        }
        prompt, response = texts.get("prompt", ""), texts["response"]
        score = _float(texts.get("score", ""))
        if not self._is_verls:
            texts = {name: text.strip("\n") for name, text in texts.items()}
            prompt, response = _parted(texts["response"])
            score = values.pop("total", None)
            if "extracted" in texts:
                values = {"extracted_answer": texts["extracted"], **values}
        return (
            Sample(
                self._own_step(),
                prompt,
                response,
                score,
                texts.get("truth") or None,
                extras=values,
                validation=self._validating,
            ),
        )

    def _own_step(self) -> int | None:
        """Return a sample's step; that of a validation before training is the one resumed from."""
        if self._validating and self._resumed is not None:
            return self._resumed
        if self._step is None:
            return 0 if self._validating else self._reached
        return self._step + 1


def _parted(text: str) -> tuple[str, str]:
    """Return prompt and response of a text that may hold both."""
    for mark in _ANSWERS:
        prompt, found, response = text.partition(mark)
        if found:
            return prompt, response
    return "", text


def _float(text: str) -> float | None:
    return {"True": 1.0, "False": 0.0}.get(text.strip(), written_number(text))


@lru_cache(maxsize=64)
def _plain_lines(lead: bytes) -> re.Pattern[bytes]:
    """Return what matches lines that begin alike, and go on with no bracket or escape."""
    return re.compile(rb"(?:%b(?![^\S\n]?[(\[]|\0)[^\n\r\x1b]*\n)+" % re.escape(lead))


class PrintedTables:
    """Reads the tables of one console."""

    def __init__(self) -> None:
        self._step: int | None = None
        self.lines: list[str] = []
        """Those of the open table."""
        self._titled = False
        self._previous: Sequence[Sample] = ()
        """Samples of the previous table: a trainer prints its last table twice."""
        self.rewards = RewardSum()
        """Adds the rewards of samples that state no total; its note says how."""

    def feed(self, part: bytes, step: int | None) -> Sequence[Sample] | None:
        """Take a line; return the samples that it completes, None if it belongs to no table.

        Args:
            part: The line.
            step: Last step seen, to which a table without a title belongs.
        """
        if not self.lines:
            found = _TABLE.fullmatch(part)
            if not found:
                return None
            self._titled = found["step"] is not None
            self._step = int(found["step"]) if self._titled else step
        line = decoded(part).strip()
        if self.lines and not line.startswith(_INSIDE):
            return None
        self.lines.append(line)
        is_over = line.startswith(_INSIDE[2:]) or len(self.lines) > _LONGEST_TABLE
        return self.held() if is_over else ()

    def held(self) -> Sequence[Sample]:
        """Return the samples of the open table, which may have no end."""
        lines, self.lines = self.lines, []
        if self._titled:  # the box around it
            lines = [line[1:-1].strip() for line in lines]
        samples = [one for row in _rows(lines) if (one := self._sample(row))]
        if not samples or samples == self._previous:
            return ()
        self._previous = samples
        return samples

    def _sample(self, row: Mapping[str, str]) -> Sample | None:
        record: dict[str, object] = {}
        for name, text in row.items():
            value = None if name in _TEXTS else written_number(text)
            record[name] = text if value is None else value
        return self.rewards.sample(record, self._step, validation=not self._titled)


def _rows(lines: Sequence[str]) -> Iterator[Mapping[str, str]]:
    """Yield the rows of a table: the text of each cell by the name of its column."""
    names: list[str] = []
    for mark, row in groupby(lines, key=lambda line: line[:1]):
        if mark == "┃":
            names = _names(row)
        elif mark == "│":
            cells = [_cells(line, len(names)) for line in row]
            whole = [one for one in cells if len(one) == len(names)]
            if whole:
                texts = map(_unwrapped, zip(*whole, strict=True))
                yield dict(zip(names, texts, strict=True))


def _names(header: Iterable[str]) -> list[str]:
    """Return the names of the columns; long ones are wrapped."""
    columns = zip(*(line.strip("┃").split("┃") for line in header), strict=False)
    return [plain_field("".join(map(str.strip, one))) for one in columns]


def _cells(line: str, count: int) -> list[str]:
    cells = line.removeprefix("│").removesuffix("│").split("│")
    end = len(cells) - count + 2  # a `│` that the model wrote
    cells[1:end] = ["│".join(cells[1:end])]
    return [one.removeprefix(" ").removesuffix(" ") for one in cells]


def _unwrapped(lines: Iterable[str]) -> str:
    """Return the text of a cell; a line that fills the column was broken within a word."""
    text = ""
    for line in lines:
        words = line.rstrip()
        text += words if len(words) == len(line) else f"{words} "
    return text.strip()
