"""Trainers that a data file describes: what their consoles and samples say is read, and each entry
has its definition and source. The texts are made, in the form that the files name.
"""

from __future__ import annotations

import json
import struct
from base64 import b64encode
from pathlib import Path

import pytest
from command_line import python
from command_line import run as run_command
from file_writing import write_file
from log_reading import read_run, read_runs, values

from verl_tui.cli import main
from verl_tui.indicators import INDICATORS
from verl_tui.sources.formats.console import reader as console
from verl_tui.sources.formats.console.unknown import NOTE, entry_for
from verl_tui.trainers import trainers

RAY = "\x1b[36m(entrypoint pid=4711)\x1b[0m "
FLOAT64 = b64encode(struct.pack("<d", 0.25)).decode()
FORMS: dict[str, tuple[str, dict[str, float | None], str]] = {
    "SkyRL": (
        RAY
        + "2026-08-19 12:00:50.037 | INFO     | skyrl.train.utils.tracking:log:190 - Step {n}: \n"
        + RAY
        + "{{'generate/avg_num_tokens': '680.7391',\n"
        + RAY
        + " 'policy/policy_kl': '0.0110',\n"
        + RAY
        + " 'reward/avg_raw_reward': '0.25'}}\n",
        {"reward": 0.25, "reference_kl": 0.011, "response_length": 680.7391},
        "SkyRL console",
    ),
    "AReaL": (
        "(AReaL) 20260819-12:00:50.031 StatsLogger INFO: Epoch 1/3 Step {n}/60 Train step {n}/180 "
        "done.\n(AReaL) 20260819-12:00:50.031 StatsLogger INFO: Stats (1/1):\n"
        "╒═════════════════════════════════╤═════════════╤══════════════════════════════╤═══════╕\n"
        "│ ppo_actor/task_reward/avg       │  2.5000e-01 │ ppo_actor/update/grad_norm   │ 5e-01 │\n"
        "├─────────────────────────────────┼─────────────┼──────────────────────────────┼───────┤\n"
        "│ ppo_actor/update/approx_kl/avg  │ -6.0000e-03 │ ppo_actor/prompt_len/avg     │ 1e+02 │\n"
        "├─────────────────────────────────┼─────────────┼──────────────────────────────┼───────┤\n"
        "│ ppo_actor/seq_len/avg           │  9.0000e+02 │                              │       │\n"
        "╘═════════════════════════════════╧═════════════╧══════════════════════════════╧═══════╛\n",
        {
            "reward": 0.25,
            "grad_norm": 0.5,
            "policy_kl": -0.006,
            "response_length": 800.0,
        },
        "AReaL console",
    ),
    "NeMo-RL": (
        "========================= Step {n}/500 =========================\n"
        "▶ Generating responses for batch of size 512...\n"
        "(Worker pid=12, ip=10.2.0.7) INFO 08-19 12:00:30 [block_pool.py:390] Reset prefix cache\n"
        "📊 Training Results:\n  • Loss: -0.0213\n  • Generation KL Error: 0.0098\n"
        "  • Avg Reward: 0.2500\n\n⏱️  Timing:\n  • Total step time: 40.97s\n"
        "  • generation: 20.00s (48.8%)\n",
        {
            "reward": 0.25,
            "policy_loss": -0.0213,
            "engine_mismatch": 0.0098,
            "step_time": 40.97,
        },
        "NeMo-RL console",
    ),
    "prime-rl": (
        "[default0]:\x1b[2m12:00:51\x1b[0m \x1b[32m\x1b[1mSUCCESS\x1b[0m Step {n} |   41.1s | "
        "Reward 0.2500 | Loss -0.0276 | Mismatch KL 0.0099 | Grad. Norm 0.7186 | "
        "Trainable 120/128 (93.8%) | Truncation 2.0%\n",
        {"reward": 0.25, "policy_loss": -0.0276, "engine_mismatch": 0.0099},
        "prime-rl console",
    ),
    "ROLL": (
        "[2026-08-19 12:00:10] [p.py (487)] [INFO] [DRIVER 0 / 1][PID 12] pipeline step {n} "
        "start...\n[2026-08-19 12:00:49] [p.py (838)] [INFO] [DRIVER 0 / 1][PID 12] "
        '{{"critic/score/mean": 0.25, "actor/kl_loss@sum": 0.066, "system/global_step": {n}, '
        '"token/response_length/mean": 835.0}}\n',
        {"reward": 0.25, "reference_kl": 0.066, "response_length": 835.0},
        "ROLL console",
    ),
    "tinker-cookbook": (
        "tinker_cookbook.utils.ml_log:259 [INFO] \n                    Step {n}                 \n"
        "┏━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━┓\n"
        "┃ Metric                         ┃ Value      ┃\n"
        "┡━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━┩\n"
        "│ env/all/reward/total           │ 0.250000   │\n"
        "│ kl_policy_base                 │ 0.182098   │\n"
        "└────────────────────────────────┴────────────┘\n",
        {"reward": 0.25, "reference_kl": 0.182098},
        "tinker-cookbook console",
    ),
    "EasyR1": (
        "(Runner pid=12) Step {n}\n(Runner pid=12) actor:\n(Runner pid=12)   pg_loss: -0.0131\n"
        "(Runner pid=12)   pg_clipfrac_higher: 0.01\n(Runner pid=12) reward:\n"
        "(Runner pid=12)   overall: !!python/object/apply:numpy._core.multiarray.scalar\n"
        "(Runner pid=12)   - &id001 !!python/object/apply:numpy.dtype\n"
        "(Runner pid=12)     args:\n(Runner pid=12)     - f8\n(Runner pid=12)   - !!binary |\n"
        f"(Runner pid=12)     {FLOAT64}\n(Runner pid=12) response_length:\n"
        "(Runner pid=12)   mean: 680.7\n(Runner pid=12) saved\n",
        {"reward": 0.25, "policy_loss": -0.0131, "response_length": 680.7},
        "EasyR1 console",
    ),
    "torchforge": (
        "INFO:forge.observability.metrics: === [global_reduce] - METRICS STEP {n} ===\n"
        "  generator/generate/avg_tokens_generated: 312.4\n"
        "  reward/evaluate_response/avg_total_reward: 0.25\n"
        "==============================\n",
        {"reward": 0.25, "response_length": 312.4},
        "torchforge console",
    ),
    "open-instruct": (
        "╭──────────────────────── Metrics ────────────────────────╮\n"
        "│  objective  kl0_avg: 0.01 | kl2_avg: 0.02               │\n"
        "│  other      global_step: 512 | training_step: {n} | ep: │\n"
        "│             0.01 | scores: 0.25                         │\n"
        "│  val        sequence_lengths: 680.74 | rho_drop: 0.98   │\n"
        "╰─────────────────────────────────────────────────────────╯\n",
        {
            "reward": 0.25,
            "reference_kl": 0.02,
            "response_length": 680.74,
            "validation": None,
        },
        "open-instruct console",
    ),
    "Megatron-LM": (
        " [2026-08-19 12:00:50.037512] iteration        {n}/     500 | consumed samples:  2560 | "
        "elapsed time per iteration (ms): 40123.4 | lm loss: 1.25E+00 | grad norm: 0.621 |\n",
        {"policy_loss": 1.25, "grad_norm": 0.621, "step_time": 40123.4},
        "Megatron-LM console",
    ),
    "slime": (
        "(Actor pid=8) rollout {n}: {{'rollout/raw_reward': 0.25, 'rollout/entropy': tensor(0.5)}}\n"
        "(Actor pid=8) model.py:9 - step 7: {{'train/pg_loss': 0.5, 'train/grad_norm': 1}} 3%| |\n"
        "(Actor pid=8) model.py:9 - step 8: {{'own': 1, 'train/pg_loss': 1.5}}saved\n"
        "(Actor pid=8) step 9: {{'train/pg_loss': 1e9, 'train/cut\nlr: 3\n",
        {"reward": 0.25, "entropy": 0.5, "policy_loss": 1.0, "grad_norm": 1.0},
        "slime console",
    ),
    "torchtune": (
        "1|{n}|Loss: 1.5:  25%|██▌       | {n}/20 [00:07<00:08,  1.46it/s]\r"
        "Step {n} | rewards:0.25 kl_loss:0.011 approx_policy_kl:1e-05 response_lengths:680.7 \n",
        {
            "reward": 0.25,
            "reference_kl": 0.011,
            "policy_kl": 1e-5,
            "response_length": 680.7,
        },
        "torchtune console",
    ),
    "OpenRLHF": (
        "(T pid=3) INFO ppo.py:91] Global step {n}: {{'policy_loss': -0.5, 'reward': 0.25}}\n"
        "reward: 3\n",
        {"reward": 0.25, "policy_loss": -0.5},
        "OpenRLHF console",
    ),
}
"""Trainer -> what it prints at a step, the values of the indicators as printed, None for one that it
must not have, and the console's name.
"""
TOTALS = {"AReaL": 180, "NeMo-RL": 500, "Megatron-LM": 500}
"""Trainer -> how many steps its lines say that there are."""
OTHERS = {
    "torchtune": ("1|{n}|Loss: 0.25:  5%|▌         | {n}/20 [00:07<00:08,  1.46it/s]\n", "Loss"),
    "prime-rl": (
        "02:33:26 SUCCESS Step {n} | Time: 0.25s | Reward: 0.3887 | Val. Reward: 0.5 | Max. Off-Policy Level: 0\n",
        "step_time",
    ),
    "slime": ("data.py:9 - rollout {n}: {{'rollout/raw_reward': 1, 'rollout/truncated': 0.25}}\n", "truncated_share"),
    " slime": ("data.py:9 - passrate {n}: {{'passrate/pass@1': 0.25}}\ndata.py:9 - multi_turn {n}: {{'multi_turn/raw_length_mean': 9}}\n", "passrate/pass@1"),
    "ms-swift": ("{{'loss': 1.5, 'entropy/mean': 0.25, 'global_step/max_steps': '{n}/9', 'epoch': 0.5}}\n", "entropy"),
    "unknown trainer": ("Iter {n}: Train loss 0.250, Total rewards mean 1.5, It/sec 0.025, Peak mem 34.7 GB\n", "Train loss"),
    "  unknown trainer": ("Iteration: \t {n}\nLoss: 0.5\nMeanRew: 0.25 +- 126.3\nMeanLen: 200.0 ± 1.5 tokens\n----\n", "MeanRew"),
    " unknown trainer": ("Epoch 0 | iter  {n} step  {n} | loss train: 0.250, val loss: 1.5 | iter time: 3.6 s\n", "loss train"),
}  # fmt: skip
"""Trainer -> what it prints at a step elsewhere, and the indicator or metric that is 0.25."""
UNKNOWN = (
    "2026-11-28 12:00:{n:02d} INFO mine: ---- Step {n}/100 ----\n  reward: 0.25\n  kl: 0.01\n"
    "2026-11-28 12:00:59 INFO mine: saved to /tmp/x\n",
    "[mine] iter={n} loss=0.5 reward=0.25 grad_norm=1.5\n",
    "[mine] update: {n} | loss 0.5 | reward 0.25\n",
    "Iteration: {n}\nLoss: 0.5\nreward: 0.25 +- 9\nElapsed 13 seconds\nsaved\n",
    "[Iter {n}/90] loss=-0.5 | reward=0.25 (std=0.2) | seq_len=200\n",
)
NO_TRAINING = (
    "Step {n}/9 : RUN pip install verl\n ---> Using cache\n",
    "epoch loss is great, see step {n} of the guide\n",
    "INFO request {n}: prompt tokens 12, output tokens 30\n",
    "Downloading step {n}: 100 MB at 12.5 MB/s\n",
)


def printed(form: str, steps: int = 5) -> bytes:
    return "".join(form.format(n=n) for n in range(1, steps + 1)).encode()


def test_every_form_has_its_row_here():
    assert {one.name for one in trainers() if one.console} == set(FORMS)


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("trainer", FORMS)
def test_a_console_is_read(tmp_path, trainer, end):
    form, expected, name = FORMS[trainer]
    path = write_file(tmp_path / "train.log", printed(form).replace(b"\n", end))
    run = read_run(path)
    assert (run.step, run.total_steps) == (5, TOTALS.get(trainer))
    assert next(one.status.program for one in run.sources.values()) == name
    for indicator, value in expected.items():
        key = run.indicators.get(indicator)
        assert (key is None) == (value is None)
        if key is not None:
            assert values(run, key) == dict.fromkeys(range(1, 6), pytest.approx(value))


@pytest.mark.parametrize("trainer", OTHERS)
def test_other_forms_of_a_console_are_read(tmp_path, trainer):
    form, key = OTHERS[trainer]
    path = write_file(tmp_path / "train.log", printed(form))
    run = read_run(path)
    assert values(run, run.indicators.get(key, key)) == dict.fromkeys(range(1, 6), 0.25)
    title = next(one.status.program for one in run.sources.values())
    assert title == f"{trainer.strip()} console"


@pytest.mark.parametrize("trainer", FORMS)
def test_the_beginning_of_a_step_changes_none_before(tmp_path, trainer):
    whole, more = (printed(FORMS[trainer][0], steps) for steps in (5, 6))
    path = write_file(tmp_path / "train.log", whole)
    run = read_run(path)
    cut = tmp_path / "cut.log"
    for share in (3, 2):
        cut.write_bytes(more[: len(whole) + (len(more) - len(whole)) // share])
        begun = read_run(cut)
        for key in run.keys:
            assert values(run, key).items() <= values(begun, key).items()


def test_steps_that_count_anew_in_each_epoch_go_on(tmp_path):
    path = tmp_path / "train.log"
    step = "===== Step {}/2 =====\n  • Avg Reward: {}\n  • Generation KL Error: 0.1\n"
    path.write_text(
        "".join(
            f"===== Epoch {epoch}/2 =====\n"
            + "".join(step.format(n, epoch) for n in (1, 2))
            for epoch in (1, 2)
        ),
        encoding="utf-8",
    )
    run = read_run(path)
    assert values(run, "Avg Reward") == {1: 1.0, 2: 1.0, 3: 2.0, 4: 2.0}
    assert run.total_steps is None  # nothing says whether the last epoch is cut short


@pytest.mark.parametrize("form", UNKNOWN)
def test_steps_of_an_unknown_trainer_are_guessed_and_said_to_be(tmp_path, form):
    path = write_file(tmp_path / "train.log", printed(form, 9))
    run = read_run(path)
    assert values(run, "reward") == dict.fromkeys(range(1, 10), 0.25)
    assert NOTE in next(iter(run.sources.values())).status.note
    assert run.total_steps in ((100, 90) if "/" in form[:50] else (None,))
    assert "[[console]]" in entry_for(path.read_bytes())


@pytest.mark.parametrize("form", NO_TRAINING)
def test_numbered_steps_of_anything_else_are_no_training(form):
    text = printed(form, 9)
    assert not console.matches(Path("train.log"), text)
    assert entry_for(text) is None


def test_entries_have_definitions_and_sources():
    for trainer in trainers():
        assert trainer.own or trainer.everywhere or trainer.lines, trainer.name
        for name in trainer.names:
            assert name.indicator in INDICATORS
            assert len(name.definition) > 5
            assert name.source


ENTRY = """
name = "mine"
own = ["my/score"]
names = [["reward", "my/score", "mean of my scores", "mine.py:1"]]
[[console]]
word = "at round"
step = 'at round (?P<step>\\d+)$'
"""


def entry(tmp_path: Path, text: str) -> None:
    folder = tmp_path / "trainers"
    write_file(folder / "mine.toml", text)
    (tmp_path / "config.toml").write_text("", encoding="utf-8")


def test_an_entry_of_the_user_is_read(tmp_path, monkeypatch):
    entry(tmp_path, ENTRY)
    monkeypatch.setenv("VERL_TUI_CONFIG", str(tmp_path / "config.toml"))
    log = tmp_path / "train.log"
    log.write_text("".join(f"at round {n}\n  my/score: 0.5\n" for n in range(5)))
    answer = json.loads(run_command("check", str(log), "--json").stdout)
    (run,) = answer["runs"]
    assert run["step"] == 4
    assert run["indicators"]["reward"] == {"key": "my/score", "value": 0.5, "step": 4}


BROKEN = {
    "name = ": "Invalid value",
    'name = "mine"': "has no 'names'",
    ENTRY.replace("(?P<step>", "("): "`step` needs a group",
    ENTRY.replace("\\d+)", "\\d+"): "missing ), unterminated",
    ENTRY.replace('"reward"', '"rewrd"'): "no indicator is called rewrd",
    ENTRY.replace("[[console]]", "[[conosle]]"): "a trainer has no conosle",
}


def test_broken_entries_are_named(tmp_path, monkeypatch):
    entry(tmp_path, "")
    for at, text in enumerate(BROKEN):
        (tmp_path / f"trainers/{at}.toml").write_text(text)
    monkeypatch.setenv("VERL_TUI_CONFIG", str(tmp_path / "config.toml"))
    asks = "from verl_tui import cli, trainers; print(cli.main(['check', '.']), trainers.broken())"
    done = python("-c", asks)
    assert done.stdout.startswith("64 ")
    assert "0.toml: Invalid value" in done.stderr
    for at, reason in enumerate(BROKEN.values()):
        assert f"{at}.toml: {reason}" in done.stdout


SAMPLES = {
    "NeMo-RL": (
        "exp/train_data_step7.jsonl",
        '{"content": [["Why?", "Because."]], "rewards": [0.5], "input_lengths": [9]}',
    ),
    "prime-rl": (
        "rollouts/step_7/train/effective/traces.jsonl",
        """{"group": {"id": "7-0"}, "run": {"type": "train"}, "traces": [{"nodes": [
        {"message": {"role": "user", "content": "Why?"}}, {"message": {"role": "assistant", "content": "Because."}}],
        "rewards": {"right": {"score": 1.0, "weight": 0.25}, "form": {"score": 0.5, "weight": 0.5}}}]}""",
    ),
    "AReaL": (
        "rollout/7/0.jsonl",
        """{"task_id": 0, "sample_idx": 1, "tail_version": 7, "reward": 0.5, "prompt": "Why?",
        "completion": "Because."}""",
    ),
    "SkyRL": (
        "dumped_evals/global_step_7_evals/gsm.jsonl",
        """{"input_prompt": "Why?", "output_response": "Because.", "score": [0.25, 0.25], "stop_reason": "stop"}""",
    ),
    "tinker-cookbook": (
        "iteration_000007/train_rollout_summaries.jsonl",
        """{"group_idx": 0, "traj_idx": 0, "total_reward": 0.5,
        "steps": [{"logs": {"assistant_content": "Because."}}]}""",
    ),
    "rLLM": (
        "episodes/train_step_7_epoch_0/episode_hash1_id7-0_0.json",
        """{"episode_id": "7-0:0", "task_hash": "1", "trajectories": [{"reward": 0.5, "steps": [{"chat_completions": [
        {"role": "user", "content": "Why?"}, {"role": "assistant", "content": "Because."}]}]}]}""",
    ),
}
"""Trainer -> where it writes a sample of step 7, and the record."""


def test_every_layout_of_samples_has_its_row_here():
    assert {one.name for one in trainers() if one.samples} == set(SAMPLES)


@pytest.mark.parametrize("trainer", SAMPLES)
def test_samples_are_read(tmp_path, trainer, capsys):
    place, text = SAMPLES[trainer]
    record = json.loads(text)
    (tmp_path / "metrics.jsonl").write_text(
        "".join(f'{{"step": {n}, "data": {{"a": 1}}}}\n' for n in range(1, 9))
    )
    for step in ("7", "8"):
        path = tmp_path / place.replace("7", step)
        write_file(path, json.dumps(record) + "\n")
    main(["get", "samples", str(tmp_path), "--json"])
    answer = json.loads(capsys.readouterr().out)
    sample = answer["samples"][-1]
    assert answer["total"] == 1
    assert (sample["step"], sample["score"]) == (8, 0.5)
    assert sample["validation"] == (trainer == "SkyRL")
    assert "Because." in sample["response"]


def test_samples_that_easyr1_prints_are_of_its_validation(tmp_path):
    path = tmp_path / "train.log"
    shown = "[prompt] Why?\n[output] Because.\n[ground_truth] So.\n[score] 0.5\n\n"
    path.write_bytes(
        b"".join(
            shown.encode() + printed(FORMS["EasyR1"][0].replace("{n}", str(n)), 1)
            for n in range(3)
        )
    )
    run = read_run(path)
    assert [(one.step, one.validation) for one in run.samples.places] == [
        (step, True) for step in range(3)
    ]


def test_what_easyr1_writes_into_its_directory_is_one_run(tmp_path):
    (tmp_path / "experiment_log.jsonl").write_text(
        '{"step": 1, "reward": {"overall": 0.25}}\n'
    )
    (tmp_path / "experiment_config.json").write_text('{"algorithm": {"gamma": 1.0}}')
    (tmp_path / "generations.log").write_text(
        "[prompt] 1+1?\n[output] 2\n[ground_truth] 2\n[score] 1.0\n\n"
    )
    (run,) = read_runs(tmp_path).values()
    assert values(run, run.indicators["reward"]) == {1: 0.25}
    assert run.settings["algorithm.gamma"] == 1.0
    assert len(run.samples.places) == 1
