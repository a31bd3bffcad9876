"""Generates within the workers of verl 0.6.1: its own rollout by Hugging Face, on a copy of the
policy.
"""

from __future__ import annotations

from transformers import AutoModelForCausalLM
from verl.workers.rollout.base import BaseRollout
from verl.workers.rollout.hf_rollout import HFRollout


class Within(HFRollout):
    """verl's rollout by Hugging Face, made to fit how 0.6.1 makes rollouts."""

    def __init__(self, config, model_config, device_mesh):
        BaseRollout.__init__(self, config, model_config, device_mesh)
        where = model_config.local_path
        self.module = AutoModelForCausalLM.from_pretrained(
            where, attn_implementation="eager"
        )

    async def update_weights(self, weights, **_options):
        """Take over the policy's weights, as they are now."""
        self.module.load_state_dict(
            {name: one.detach().clone() for name, one in weights}, strict=False
        )

    async def resume(self, tags):
        """Nothing was released."""

    async def release(self):
        """Nothing can be released."""
