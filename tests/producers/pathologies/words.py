"""What the small models of the bench speak: a tokenizer made on the spot, four tasks, a model that
half knows them.
"""

from __future__ import annotations

import random
import string
import sys
from typing import TYPE_CHECKING

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_FILLERS = ("well", "so", "then", "yes", "indeed", "now", "sure", "thus")
_SIGNS = ".!,"
_OPPOSITES = (
    ("hot", "cold"),
    ("big", "small"),
    ("up", "down"),
    ("left", "right"),
    ("open", "shut"),
    ("near", "far"),
)


def _larger(dice: random.Random) -> tuple[str, str]:
    one, other = dice.sample(range(10), 2)
    return f"larger of {one} and {other}", str(max(one, other))


def _next(dice: random.Random) -> tuple[str, str]:
    at = dice.randrange(25)
    return f"letter after {string.ascii_lowercase[at]}", string.ascii_lowercase[at + 1]


def _first(dice: random.Random) -> tuple[str, str]:
    letters = dice.sample("bcdfgklmrt", 3)
    return f"first of {' '.join(letters)}", letters[0]


def _opposite(dice: random.Random) -> tuple[str, str]:
    one, other = dice.choice(_OPPOSITES)
    if dice.random() < 0.5:
        one, other = other, one
    return f"opposite of {one}", other[0]


def _strange(dice: random.Random) -> tuple[str, str]:
    return f"0123 {dice.choice(_FILLERS)} 789", "q"


TASKS: dict[str, Callable[[random.Random], tuple[str, str]]] = {
    "larger": _larger,
    "next": _next,
    "first": _first,
    "opposite": _opposite,
    "strange": _strange,
}
"""Name -> a prompt with the character that its answer begins with. The model has never seen
`strange`.
"""
LEARNT = {"tuned": ("larger", "next"), "held_out": ("first", "opposite")}
"""The tasks of each half of the bench: nothing that a rule is tuned on comes back in the other
half.
"""


def questions(task: str, count: int, dice: random.Random) -> list[dict[str, str]]:
    """Return so many prompts with their answers; the task's name may be several, joined by `+`."""
    makers = [TASKS[name] for name in task.split("+")]
    rows = (dice.choice(makers)(dice) for _ in range(count))
    return [{"prompt": prompt, "answer": answer} for prompt, answer in rows]


def tokenizer(half: str) -> PreTrainedTokenizerFast:
    """Return the tokenizer of one half of the bench."""
    pairs = Tokenizer(models.BPE(unk_token="<unk>"))
    pairs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    pairs.decoder = decoders.ByteLevel()
    dice = random.Random(f"words of {half}")
    text = [
        row["prompt"]
        for task in (*LEARNT[half], "strange")
        for row in questions(task, 60, dice)
    ]
    text += [" ".join(_FILLERS), string.ascii_lowercase + string.digits + _SIGNS] * 20
    special = {"unk_token": "<unk>", "pad_token": "<pad>", "eos_token": "<eos>"}
    size = 130 if half == "tuned" else 150
    pairs.train_from_iterator(
        text,
        trainers.BpeTrainer(vocab_size=size, special_tokens=list(special.values())),
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=pairs, padding_side="left", **special
    )


def _sentence(answer: str, dice: random.Random, right: float) -> str:
    """Return what the model learns to say: an answer that is often wrong, and some babble."""
    begin = (
        answer
        if dice.random() < right
        else dice.choice(string.ascii_lowercase + string.digits)
    )
    pieces = (
        lambda: " " + dice.choice(_FILLERS),
        lambda: dice.choice(string.ascii_lowercase),
        lambda: dice.choice(string.digits),
        lambda: dice.choice(_SIGNS),
    )
    return begin + "".join(dice.choice(pieces)() for _ in range(dice.randint(1, 11)))


def _batch(
    words: PreTrainedTokenizerFast, half: str, dice: random.Random, right: float | None
) -> dict[str, object]:
    """Return sentences to learn, so many of them right; bare answers where `right` is None."""
    import torch

    rows = []
    for task in LEARNT[half]:
        for row in questions(task, 24, dice):
            said = (
                row["answer"]
                if right is None
                else _sentence(row["answer"], dice, right)
            )
            # The answer is a token of its own, as the tokenizer would not always have it.
            begin = words(said[:1])["input_ids"]
            rest = words(said[1:])["input_ids"]
            rows.append(
                (words(row["prompt"])["input_ids"], [*begin, *rest, words.eos_token_id])
            )
    longest = max(len(prompt) + len(said) for prompt, said in rows)
    ids = torch.full((len(rows), longest), words.pad_token_id)
    labels = torch.full((len(rows), longest), -100)
    mask = torch.zeros((len(rows), longest), dtype=torch.long)
    for at, (prompt, said) in enumerate(rows):
        end = len(prompt) + len(said)
        ids[at, :end], mask[at, :end] = torch.tensor(prompt + said), 1
        labels[at, len(prompt) : end] = torch.tensor(said)
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}


def teach(half: str, home: Path, answers: int = 150, sentences: int = 250) -> None:
    """Write a two-layer model that half knows the tasks of one half into a directory; takes a
    minute.

    Args:
        half: Of the bench.
        home: A new directory.
        answers: Steps in which it learns the bare answers.
        sentences: Steps in which it learns to babble, and to be wrong more often than not.
    """
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(11 if half == "tuned" else 12)
    words = tokenizer(half)
    dice = random.Random(f"lessons of {half}")
    width = 64 if half == "tuned" else 80
    config = Qwen2Config(
        vocab_size=len(words), hidden_size=width, intermediate_size=2 * width, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=256, eos_token_id=words.eos_token_id,
        pad_token_id=words.pad_token_id, bos_token_id=None,
    )  # fmt: skip
    model = Qwen2ForCausalLM(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    fading = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, answers + sentences)
    for step in range(answers + sentences):
        loss = model(**_batch(words, half, dice, None if step < answers else 0.4)).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        fading.step()
        if step % 100 == 99:
            sys.stdout.write(f"step {step + 1}: loss {loss.item():.2f}\n")
    model.save_pretrained(home)
    words.save_pretrained(home)


if __name__ == "__main__":
    from pathlib import Path

    teach(sys.argv[1], Path(sys.argv[2]))
