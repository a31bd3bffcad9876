"""Generates for verl 0.9 without vLLM or SGLang: a Ray actor whose answers come from Hugging Face's
`generate`.
"""

from __future__ import annotations

import asyncio

import ray
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from verl.workers.rollout.base import BaseRollout
from verl.workers.rollout.replica import RolloutReplica, TokenOutput

NAME = "cpu-server-{}"
GATHERS = 0.1
"""Seconds for which requests are gathered, to be answered in one batch."""
UNUSED = (
    "wake_up", "sleep", "resume_generation", "clear_kv_cache", "release_kv_cache", "resume_kv_cache",
    "start_profile", "stop_profile", "abort_all_requests",
)  # fmt: skip
"""What is asked of servers that hold a GPU's memory."""


class Server:
    """Answers with the newest weights that it was given.

    Args:
        where: Directory of the model.
        longest: Tokens of a response at most.
    """

    def __init__(self, where, longest):
        torch.set_num_threads(1)
        words = AutoTokenizer.from_pretrained(where)
        self.pad, self.end, self.longest = (
            words.pad_token_id,
            words.eos_token_id,
            longest,
        )
        self.model = AutoModelForCausalLM.from_pretrained(
            where, attn_implementation="eager"
        )
        self.version = 0
        self.asked = []

    async def load(self, weights, version):
        """Take over weights, and the trainer's step that made them."""
        self.model.load_state_dict(weights, strict=False)
        self.version = version

    async def generate(self, prompt_ids, sampling_params, request_id, **_options):
        """Return the response to a prompt."""
        answer = asyncio.get_running_loop().create_future()
        self.asked.append((prompt_ids, sampling_params, answer))
        if len(self.asked) == 1:
            asyncio.get_running_loop().call_later(GATHERS, self.answer)
        return await answer

    def answer(self):
        """Answer all that was asked, those of one temperature together."""
        asked, self.asked = self.asked, []
        heats = [params.get("temperature", 1.0) for _, params, _ in asked]
        for heat in sorted(set(heats)):
            batch = [one for one, its in zip(asked, heats, strict=True) if its == heat]
            for (_, params, future), (tokens, chances) in zip(
                batch, self.write(batch, heat), strict=True
            ):
                future.set_result(
                    TokenOutput(
                        token_ids=tokens,
                        log_probs=chances if params.get("logprobs") else None,
                        stop_reason="completed",
                        num_preempted=0,
                        extra_fields={"global_steps": self.version},
                    )
                )

    @torch.no_grad()
    def write(self, batch, heat):
        """Yield the tokens of each response with their log-probabilities."""
        width = max(len(prompt) for prompt, *_ in batch)
        ids = torch.tensor(
            [[self.pad] * (width - len(prompt)) + list(prompt) for prompt, *_ in batch]
        )
        hot = (
            {"do_sample": True, "temperature": heat, "top_k": 0}
            if heat > 0
            else {"do_sample": False}
        )
        made = self.model.generate(
            input_ids=ids, attention_mask=(ids != self.pad).long(), max_new_tokens=self.longest,
            pad_token_id=self.pad, eos_token_id=self.end, return_dict_in_generate=True, output_logits=True, **hot,
        )  # fmt: skip
        new = made.sequences[:, width:]
        scores = (torch.stack(made.logits, dim=1) / (heat or 1.0)).log_softmax(dim=-1)
        chances = scores.gather(2, new[..., None])[..., 0]
        for tokens, chance in zip(new.tolist(), chances.tolist(), strict=True):
            length = tokens.index(self.end) + 1 if self.end in tokens else len(tokens)
            yield tokens[:length], chance[:length]


async def _ignore(self, *_args, **_options):
    pass


for _name in UNUSED:
    setattr(Server, _name, _ignore)


class Replica(RolloutReplica):
    """Starts the server."""

    async def launch_servers(self):
        """Start it as an actor with a name, by which the trainer's workers find it."""
        self._server_address = NAME.format(self.replica_rank)
        actor = ray.remote(Server).options(
            name=self._server_address, num_cpus=0, max_concurrency=1000
        )
        self._server_handle = actor.remote(
            self.model_config.path, self.config.response_length
        )
        self.servers = [self._server_handle]


class Client(BaseRollout):
    """The trainer's end: hands weights to the server."""

    async def update_weights(self, weights, global_steps=0, **_options):
        """Send the policy's weights."""
        state = {name: one.detach().cpu().float().clone() for name, one in weights}
        await ray.get_actor(NAME.format(0)).load.remote(state, global_steps or 0)

    async def resume(self, tags):
        """Nothing was released."""

    async def release(self):
        """Nothing can be released."""
