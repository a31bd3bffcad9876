"""Prompts and answers for the samples of the simulated PPO runs, sound ones and collapsed ones, all
invented here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

_CONVERSATIONS: Sequence[tuple[str, tuple[str, ...]]] = (
    (
        "Why do tomato plants on my balcony wilt at noon and recover in the evening?",
        (
            (
                "At midday the leaves lose water faster than the roots can deliver it, so the "
                "plant lets them hang."
            ),
            "In the evening the air cools down, the roots catch up, and the leaves fill again.",
            "As long as they are firm by the next morning, nothing is wrong.",
            "If they still hang at dawn, water deeply once rather than a little several times.",
            "A light cover at noon helps on the hottest days, above all for plants in dark pots.",
        ),
    ),
    (
        "Explain to a ten-year-old why the moon changes its shape.",
        (
            (
                "The moon itself is always a whole ball; only the part that we see in sunlight "
                "changes."
            ),
            "Imagine holding an orange near a lamp and walking around it.",
            (
                "Sometimes you see its bright side, sometimes its dark side, and sometimes half of "
                "each."
            ),
            (
                "The moon takes about four weeks to go around us, so we see all its shapes once a "
                "month."
            ),
            "You can try it tonight with an orange and a torch.",
        ),
    ),
    (
        "I have twenty minutes before a job interview. How should I use them?",
        (
            "Spend the first five minutes on the posting: note three things they ask for.",
            "For each of them recall one thing you did that proves it, with its result.",
            "Then prepare two questions about the team's daily work.",
            "Drink some water, stand up, and speak your first sentence aloud once.",
            "Use the last minutes to arrive calmly instead of reading on.",
        ),
    ),
    (
        "What is the difference between a list and a tuple in Python?",
        (
            (
                "Both hold values in order, but a list can change after it was made and a tuple "
                "cannot."
            ),
            "That is why a tuple may serve as the key of a dictionary and a list may not.",
            "Take a list for many things of one kind, whose number varies.",
            (
                "Take a tuple for a few things that belong together, such as a point's two "
                "coordinates."
            ),
            "When in doubt, ask whether anything will ever be appended.",
        ),
    ),
    (
        "请用简单的话解释为什么面团要静置。",
        (
            "揉面以后，面团里的面筋绷得很紧，一拉就缩回去。",
            "静置的时候，面筋慢慢放松，面团就容易擀开。",
            "面粉也需要时间把水吸透，这样口感更均匀。",
            "一般盖上湿布，放二十到三十分钟就够了。",
            "如果天气冷，可以再多等十分钟。",
        ),
    ),
    (
        "怎样才能每天坚持读书？",
        (
            "先把目标定得很小，比如每天只读五页。",
            "选一个固定的时间，例如睡觉之前，把手机放到别的房间。",
            "书要放在看得见的地方，这样不需要找。",
            "读完以后写下一句话，记录今天想到了什么。",
            "如果有一天没有读，第二天接着读就好，不要补。",
        ),
    ),
    (
        "Write a polite message that asks a neighbour to play music more quietly at night.",
        (
            "Hello, I live one floor below you, and I hope that you are well.",
            (
                "Lately I can hear your music quite clearly after ten in the evening, and I get up "
                "early for work."
            ),
            "Would you mind turning it down a little at that hour?",
            "During the day it does not bother me at all.",
            "Thank you very much, and do tell me if I am ever too loud myself!",
        ),
    ),
    (
        "Is it better to repair an old bicycle or to buy a used one?",
        (
            "Look at the frame first: with cracks or deep rust the answer is a used one.",
            "If the frame is sound, add up what tyres, chain, and brake pads would cost.",
            "Repairing pays off up to about half the price of a comparable bicycle.",
            "You also know the history of your own, which no seller can offer.",
            "A workshop will often estimate the cost for nothing.",
        ),
    ),
)

_STUTTERS = (
    ("这个", "这个", "问题", "这个", "这个", "这个", "问题", "这个"),
    ("aaaaa ", "bbbbb ", "ccccc "),
    ("the the ", "answer the ", "the answer "),
    ("问题问题", "的", "的", "的", "问题"),
)


def conversation(rng: random.Random) -> tuple[str, str]:
    """Return a prompt and a sound answer to it."""
    prompt, sentences = rng.choice(_CONVERSATIONS)
    kept = [sentence for sentence in sentences if rng.random() < 0.85] or list(
        sentences
    )
    return prompt, _joined(kept)


def gibberish(rng: random.Random, decay: float) -> tuple[str, str]:
    """Return a prompt and what is left of an answer.

    Args:
        rng: Chooses the words.
        decay: From 0, where the answer starts well and stutters at its end, to 1, where nothing but
            repetition is left.
    """
    prompt, sentences = rng.choice(_CONVERSATIONS)
    sound = sentences[: round((1 - decay) * 3)]
    units = _STUTTERS[0] if prompt[0] > "\u2e80" else rng.choice(_STUTTERS)
    noise = "".join(units) * round(6 + 14 * decay)
    return prompt, (_joined(sound) + " " + noise).strip()


def _joined(sentences: Sequence[str]) -> str:
    """Return sentences as a paragraph; Chinese ones touch."""
    return ("" if sentences and sentences[0][-1] == "。" else " ").join(sentences)
