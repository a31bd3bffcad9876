"""Writes what a toy run needs: python toy.py HOME makes HOME/model, HOME/train.parquet and
HOME/val.parquet.

The model is a random Qwen2 of two layers, the tokens are letters; the prompts ask for the letter
`a`.
"""

from __future__ import annotations

import string
import sys
from pathlib import Path

import pandas as pd
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

UNKNOWN, PAD, END = "<unk>", "<pad>", "<eos>"
SPACE, NEWLINE = "Ġ", "Ċ"
WORDS = ("now", "twice", "often", "here", "there", "again")
CHAT = "{% for message in messages %}{{ message['content'] }}\n{% endfor %}"
HELD_BACK = 8
"""Prompts for validation."""


def tokenizer():
    """Return a tokenizer of single letters, in the bytes that Qwen's are made of."""
    signs = (*string.ascii_lowercase, *string.digits, SPACE, NEWLINE)
    tokens = [UNKNOWN, PAD, END, *signs]
    letters = Tokenizer(
        models.BPE({token: n for n, token in enumerate(tokens)}, [], unk_token=UNKNOWN)
    )
    letters.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    letters.decoder = decoders.ByteLevel()
    special = {"unk_token": UNKNOWN, "pad_token": PAD, "eos_token": END}
    made = PreTrainedTokenizerFast(
        tokenizer_object=letters, padding_side="left", **special
    )
    made.chat_template = CHAT
    return made


def model(words):
    """Return the model."""
    torch.manual_seed(0)
    return Qwen2ForCausalLM(
        Qwen2Config(
            vocab_size=len(words), hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, max_position_embeddings=128, eos_token_id=words.eos_token_id,
            pad_token_id=words.pad_token_id, bos_token_id=None,
        )
    )  # fmt: skip


def prompts(count):
    """Return the table of prompts, in verl's columns."""
    return pd.DataFrame(
        {
            "data_source": "toy/letters",
            "prompt": [
                {"role": "user", "content": f"the letter a {WORDS[n % len(WORDS)]} {n}"}
            ],
            "ability": "letters",
            "reward_model": {"style": "rule", "ground_truth": "a"},
            "extra_info": {"index": n},
        }
        for n in range(count)
    )


def main(home):
    """Write all of it."""
    words = tokenizer()
    words.save_pretrained(home / "model")
    model(words).save_pretrained(home / "model")
    table = prompts(400 + HELD_BACK)
    table[:-HELD_BACK].to_parquet(home / "train.parquet")
    table[-HELD_BACK:].to_parquet(home / "val.parquet")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
