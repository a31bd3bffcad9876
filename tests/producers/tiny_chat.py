"""A random model of two layers that speaks ChatML, for trainers that load it from a directory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

if TYPE_CHECKING:
    from pathlib import Path

WORDS = ("now", "twice", "often", "here", "there", "again")
PROMPTS = [f"write the letter a {word}" for word in WORDS]
_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def tokenizer() -> PreTrainedTokenizerFast:
    """Return a tokenizer of bytes and a few pairs of them, trained on the spot."""
    pairs = Tokenizer(models.BPE())
    pairs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    pairs.decoder = decoders.ByteLevel()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    bytes_ = pre_tokenizers.ByteLevel.alphabet()
    pairs.train_from_iterator(
        PROMPTS * 20,
        trainers.BpeTrainer(
            vocab_size=300, initial_alphabet=bytes_, special_tokens=special
        ),
    )
    found = PreTrainedTokenizerFast(
        tokenizer_object=pairs,
        pad_token=special[0],
        eos_token=special[2],
        additional_special_tokens=[special[1]],
    )
    found.chat_template = _TEMPLATE
    return found


def write(home: Path, words: PreTrainedTokenizerFast | None = None) -> str:
    """Write the model and its tokenizer, or another, into a directory; return its path."""
    words = words or tokenizer()
    config = Qwen2Config(
        vocab_size=len(words), hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=512, eos_token_id=words.eos_token_id,
        pad_token_id=words.pad_token_id, bos_token_id=None,
    )  # fmt: skip
    Qwen2ForCausalLM(config).save_pretrained(home)
    words.save_pretrained(home)
    return str(home)
