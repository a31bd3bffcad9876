"""Keys, tokens and passwords are hidden; settings that only sound so are not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from log_reading import read_run

from verl_tui.cli import main
from verl_tui.secrets import HIDDEN, Mask, hide, hide_setting

HEX = "0123456789abcdef" * 2 + "01234567"
HF = "hf_" + "aB3" * 11


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("WANDB_API_KEY", HEX),
        ("+ray_init.runtime_env.env_vars.WANDB_API_KEY", HEX),
        ("use_wandb", HEX),
        ("wandb-key", "short"),
        ("hub_token", "abc"),
        ("push_to_hub_token", "abc"),
        ("token", "abc"),
        ("db.password", "hunter2"),
        ("judge_secret", "x y"),
        ("SLACK_WEBHOOK_URL", "https://chat.example/hooks/x"),
        ("VERL_TUI_NOTIFY_URL", "https://chat.example/hooks/x"),
        ("AWS_ACCESS_KEY_ID", "AKIA"),
        ("judge.key", HEX),
        ("anything", HF),
    ],
)
def test_a_setting_that_gives_access_is_hidden(name, value):
    assert hide_setting(name, value) == HIDDEN


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("data.prompt_key", "prompt"),
        ("data.reward_fn_key", "data_source"),
        ("tokenizer.eos_token", "<|im_end|>"),
        ("data.image_key", "images"),
        ("max_tokens", 512),
        ("hub_token", None),
        ("hub_token", "<HUB_TOKEN>"),
        ("api_key", "${oc.env:OPENAI_API_KEY}"),
        ("use_auth_token", True),
        ("use_wandb", True),
        ("git.commit", HEX),
        ("loss_agg_mode", "token-mean"),
        ("trainer.experiment_name", "qwen3-8b_gsm8k_2026-11-22"),
        ("wandb.name", "qwen3-8b"),
        ("password", ""),
    ],
)
def test_other_settings_stay(name, value):
    assert hide_setting(name, value) == value


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (f"export WANDB_API_KEY={HEX} LR=1", f"export WANDB_API_KEY={HIDDEN} LR=1"),
        (f"['a.api_key={HEX}', 'b=1']", f"['a.api_key={HIDDEN}', 'b=1']"),
        (f"{{'WANDB_API_KEY': '{HEX}'}}", f"{{'WANDB_API_KEY': '{HIDDEN}'}}"),
        (f"--hub_token {HEX} --lr 1", f"--hub_token {HIDDEN} --lr 1"),
        (f"Incorrect key provided: sk-{HEX}.", f"Incorrect key provided: {HIDDEN}."),
        ("postgres://bob:hunter2@host/db", f"postgres://bob:{HIDDEN}@host/db"),
        ("401: invalid access token provided", "401: invalid access token provided"),
        ("KeyError: 'reward_fn_key'", "KeyError: 'reward_fn_key'"),
        ("at http://localhost:8265/jobs", "at http://localhost:8265/jobs"),
    ],
)
def test_of_a_line_only_the_secret_is_hidden(line, expected):
    assert hide(line) == expected


def test_a_log_with_keys_shows_none(tmp_path, capsys):
    path = tmp_path / "train.log"
    path.write_text(
        f"+ WANDB_API_KEY={HEX} python3 -m verl.trainer.main_ppo data.n=8 a.lr=1e-6 +b.token={HEX} --use_wandb {HEX}\n"
        f"Error executing job with overrides: ['a.lr=1', 'b.n=2', 'c.n=3', 'd.api_key={HEX}']\n"
        f"Traceback (most recent call last):\nopenai.AuthenticationError: Incorrect API key provided: {HF}\n"
    )
    run = read_run(path)
    assert run.settings["data.n"] == 8
    assert HEX not in repr(run.settings)
    main(["check", str(path), "--json"])
    said = capsys.readouterr().out
    assert "AuthenticationError" in said
    assert "api_key" in said
    assert not [secret for secret in (HEX, HF) if secret in said]


# -- texts for others -------------------------------------------------------------------------------

MASK = Mask(
    {"WANDB_API_KEY": HEX, "PWD": "/scratch/logs", "HOME": "/data/carol"},
    user="alice",
    host="node-17.cluster",
)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (f"logged in with {HEX}", f"logged in with {HIDDEN}"),
        ("/scratch/logs/run_7", "/scratch/logs/run_7"),
        ("--hub_token hunter2 --lr 1", f"--hub_token {HIDDEN} --lr 1"),
        ("['--api-key', 'a b', '--lr']", f"['--api-key', {HIDDEN}, '--lr']"),
        ("password=abc user=x", f"password={HIDDEN} user=x"),
        ('{"password": "a, b", "n": 1}', f'{{"password": {HIDDEN}, "n": 1}}'),
        ("GET /x?token=abc&n=1", f"GET /x?token={HIDDEN}&n=1"),
        ("Authorization: Bearer abc.def==", f"Authorization: Bearer {HIDDEN}"),
        ("postgres://bob:p@ss/w@host:5432/db", f"postgres://{HIDDEN}@host:5432/db"),
        ("https://x0x0@github.com/a/b", f"https://{HIDDEN}@github.com/a/b"),
        (f"https://{'x0' * 1500}@host/a", f"https://{HIDDEN}@host/a"),
        (f"https://{'x0' * 1500}:basic@host/a", f"https://{HIDDEN}@host/a"),
        (f"https://aws:{'x0' * 1500}@host/a b@c", f"https://{HIDDEN}@host/a b@c"),
        ("https://hooks.slack.com/services/T0/B0/xyz", f"https://hooks.slack.com/services/{HIDDEN}"),
        ("/home/eve/run /mnt/fs/home/eve/x", "~/run ~/x"),
        ("File \"/root/.cache/x.py\"", 'File "~/.cache/x.py"'),
        (r"C:\Users\Eve Doe\x.py", r"~\x.py"),
        ("file:///Users/eve/x", "file://~/x"),
        ("%2Fhome%2Feve%2Fx", "~%2Fx"),
        ("/data/carol/logs /data/carola", "~/logs /data/carola"),
        ("alice on node-17: ssh alice@node-17.cluster", "USER on HOST: ssh EMAIL"),
        ("events.out.tfevents.1700.gpu9.12.0", "events.out.tfevents.1700.HOST.12.0"),
        ("ip=131.2.3.4, 10.0.0.7:6379", "ip=IP, IP:6379"),
        (f"-----BEGIN PRIVATE KEY-----\n{HEX}\n-----END PRIVATE KEY-----", HIDDEN),
        (f"{HEX}AAAA\n-----END RSA PRIVATE KEY-----", HIDDEN),
        ("\x1b[31mred\x1b[0m", "red"),
    ],
)  # fmt: skip
def test_a_text_for_others_says_neither_secrets_nor_who_and_where(line, expected):
    assert MASK.text(line) == expected


PLAIN = "Zq7wXk29Lm4t"
"""A secret that has no form of its own."""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # names
        ("OTHER_TOKEN={}", "OTHER_TOKEN=***"),
        ("NAME_SECRET_1={} n=1", "NAME_SECRET_1=*** n=1"),
        ("export API_KEY_PROD='{}'", "export API_KEY_PROD=***"),
        ("{{'MY_TOKEN_2': '{}'}}", "{{'MY_TOKEN_2': ***}}"),
        ("os.environ['OTHER_TOKEN'] = '{}'", "os.environ['OTHER_TOKEN'] = ***"),
        ("MYSQL_PWD={} SMTP_PASS={}", "MYSQL_PWD=*** SMTP_PASS=***"),
        ("api_keys: ['{}', 'b']", "api_keys: ***]"),
        ("clientSecret: {}", "clientSecret: ***"),
        ("X-Vault-Token: {}", "X-Vault-Token: ***"),
        ("//registry.npmjs.org/:_authToken={}", "//registry.npmjs.org/:_authToken=***"),
        ('{{"args": "{{\\"api_key\\": \\"{}\\"}}"}}', '{{"args": "{{\\"api_key\\": ***}}"}}'),
        ('{{"cmd": "x --api_key \\"{}\\""}}', '{{"cmd": "x --api_key ***"}}'),
        ("accessKeyId: {}", "accessKeyId: ***"),
        ("SIGNING_KEY={}", "SIGNING_KEY=***"),
        ("X-CSRF-Token: {}", "X-CSRF-Token: ***"),
        ("os.environ.get('JUDGE_TOKEN', '{}')", "os.environ.get('JUDGE_TOKEN', ***)"),
        ('{{"name": "API_KEY", "value": "{}"}}', '{{"name": "API_KEY", "value": ***}}'),
        ("invalid api_key is {}", "invalid api_key is ***"),
        # addresses
        ("https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key={}", "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=***"),
        ("https://api.telegram.org/bot12345678:{}/sendMessage", "https://api.telegram.org/bot***"),
        ("https://discord.com/api/webhooks/123/{}", "https://discord.com/api/webhooks/***"),
        ("https://oapi.dingtalk.com/robot/send?access_token={}&a=1", "https://oapi.dingtalk.com/robot/send?access_token=***&a=1"),
        ("with url: /services/T0123ABCD/B0123ABCD/{} (Caused by x)", "with url: /services/*** (Caused by x)"),
        ("with url: /cgi-bin/webhook/send?debug=1&key={}", "with url: /cgi-bin/webhook/send?debug=1&key=***"),
        ("https://ptb.discord.com/api/v10/webhooks/1/{}", "https://ptb.discord.com/api/v10/webhooks/***"),
        ("https://github.com/x?sig={}", "https://github.com/x?sig=***"),
        # programs
        ("sshpass -p {} ssh a", "sshpass -p *** ssh a"),
        ("sshpass -p'{}' ssh a", "sshpass -p*** ssh a"),
        ("curl -s -u bob:{} http://h/", "curl -s -u *** http://h/"),
        ("curl --user=bob:{} http://h/", "curl --user=*** http://h/"),
        ("curl -sSu bob:{} http://h/", "curl -sSu *** http://h/"),
        ("curl -b 'sid={}' http://h/", "curl -b *** http://h/"),
        ("twine upload -u bob -p {}", "twine upload -u bob -p ***"),
        ("mysql -u root -p{} db", "mysql -u root -p*** db"),
        ("docker login -u bob -p {} r.io", "docker login -u bob -p *** r.io"),
        ("redis-cli -h h -a {} ping", "redis-cli -h h -a *** ping"),
        ("echo {} | docker login --password-stdin", "echo *** | docker login --password-stdin"),
        # headers and files of programs
        ("Cookie: session={}; theme=dark", "Cookie: ***"),
        ("Set-Cookie: sid={}; Path=/", "Set-Cookie: ***"),
        ("curl -H 'Cookie: a={}' http://h", "curl -H 'Cookie: ***' http://h"),
        ('{{"auths": {{"r.io": {{"auth": "{}=="}}}}}}', '{{"auths": {{"r.io": {{"auth": "***"}}}}}}'),
        # the next line
        ('"api_key":\n    "{}",', '"api_key":\n    ***,'),
        ("hub_token:\n  desc: null\n  value: {}", "hub_token:\n  desc: null\n  value: ***"),
        ("password: |\n  {}\nn: 1", "password: |\n  ***\nn: 1"),
        ('"hub_token": {{\n  "value": "{}"\n}}', '"hub_token": {{\n  "value": ***\n}}'),
        ("- name: API_KEY\n  value: {}", "- name: API_KEY\n  value: ***"),
        ('"--api-key",\n"{}",\n"--lr",\n"1"', '"--api-key",\n***,\n"--lr",\n"1"'),
        ('"api_keys": [\n  "{}",\n  "b"\n],', '"api_keys": [\n  ***,\n  ***\n],'),
        ("secrets:\n- {}\n- b\nn: 1", "secrets:\n- ***\n- ***\nn: 1"),
        ("(T pid=1) 'api_key':\n(T pid=1)   '{}',", "(T pid=1) 'api_key':\n(T pid=1)   ***,"),
        ("x.py --hub_token \\\n  {} --lr 1", "x.py --hub_token \\\n  *** --lr 1"),
    ],
)  # fmt: skip
def test_whatever_stands_before_a_secret_it_is_hidden(text, expected):
    assert Mask({}).text(text.format(PLAIN, PLAIN)) == expected.format()


LONG = "aB3" * 12


@pytest.mark.parametrize(
    "key",
    [
        f"hf_{LONG}", f"sk-proj-{LONG}", f"sk-ant-api03-{LONG}", f"sk_live_{LONG}", f"rk_live_{LONG}",
        f"ghp_{LONG}", f"github_pat_{LONG}", f"glpat-{LONG}", f"AKIA{'A1' * 8}", f"ASIA{'A1' * 8}",
        f"xoxb-12-{LONG}", f"123456789:AA{LONG}", f"wandb_v1_{LONG}", f"nvapi-{LONG}", f"AIza{LONG[:35]}",
        f"ya29.{LONG}", f"npm_{LONG}", f"pypi-{LONG}{LONG}", f"gsk_{LONG}", f"xai-{LONG}", f"r8_{LONG}",
        f"fw_{LONG}", f"jina_{LONG}", f"tvly-{LONG}", f"s.{LONG[:24]}", f"pk-lf-{'0a1b-' * 6}",
        f"secret_{LONG}", f"glc_{LONG}", f"{LONG[:14]}.atlasv1.{LONG}", f"N{LONG[:24]}.{LONG[:6]}.{LONG[:30]}",
        f"dapi{'0123456789abcdef' * 2}", f"hvs.{LONG}", f"SG.{LONG[:22]}.{LONG}", f"AGE-SECRET-KEY-1{'Q7' * 29}",
        f"pplx-{LONG}", f"csk-{LONG}", f"tgp_v1_{LONG}", f"rpa_{'A1' * 20}", f"ak-{LONG[:22]}", f"pcsk_{LONG}",
        f"lsv2_pt_{LONG}", f"glsa_{LONG}", f"sntrys_{LONG}", f"dckr_pat_{LONG}", f"dop_v1_{'0a' * 32}",
        f"tskey-auth-{LONG}", f"ntn_{LONG}", f"LTAI{LONG[:20]}", f"AKID{LONG[:32]}", f"AKLT{LONG}",
        f"bce-v3/ALTAK-{LONG}/{LONG}", f"eyJ{LONG}.{LONG}.{LONG}",
    ],
)  # fmt: skip
def test_a_key_is_known_by_its_form_wherever_it_stands(key):
    for text in ("is {} ", "run_{}", "({})", "x={},", "/data/{} y"):
        for hidden in (hide(text.format(key)), Mask({}).text(text.format(key))):
            assert hidden == text.format(HIDDEN)


@pytest.mark.parametrize(
    "learnt",
    [
        "judge_api_key={}", "https://bob:{}@host/x", "curl -u bob:{} http://h", "--hub_token {}",
        "'api_key':\n  '{}'", "Authorization: Bearer {}", "docker login -p {}",
        '"said": "api_key={}\\nTraceback"', "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key={}",
    ],
)  # fmt: skip
def test_what_is_a_secret_in_one_text_is_hidden_in_all(learnt):
    mask = Mask({})
    mask.learn(learnt.format(PLAIN))
    assert mask.text(f"got {PLAIN}, run_{PLAIN}") == "got ***, run_***"
    assert mask.data([{"note": f"with {PLAIN}"}]) == [{"note": "with ***"}]


@pytest.mark.parametrize(
    "said",
    [
        "token: expired", "secret=disabled", "password=critic/score/mean", "api_key=OPENAI_API_KEY",
        "api_key=/run/secrets/key", "token=gsm8k", "credentials: default", "password: 1.5e-06",
    ],
)  # fmt: skip
def test_everyday_words_are_hidden_nowhere_else(said):
    mask = Mask({})
    mask.spare({"gsm8k"})
    mask.learn(said)
    word = said.rsplit("=", maxsplit=1)[-1].rsplit(": ", maxsplit=1)[-1]
    assert mask.text(f"the word {word} stays") == f"the word {word} stays"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("http://gpu-17.corp.example:8000/v1", "http://HOST:8000/v1"),
        ("ray://node7:10001 https://ml.acme.com/x", "ray://HOST:10001 https://HOST/x"),
        ("Cannot connect to host gpu-17.corp:8000 ssl", "Cannot connect to host HOST:8000 ssl"),
        ("HTTPConnectionPool(host='judge-3', port=80)", "HTTPConnectionPool(host='HOST', port=80)"),
        ("TaskRunner hostname: gpu-17, PID: 5", "TaskRunner hostname: HOST, PID: 5"),
        ("wandb://qwen2-7b/run ms://gsm8k/x host: cuda, host=localhost", None),
        ("root@gpu-17:~# ls on gpu-17", "root@HOST:~# ls on HOST"),
        ("https://github.com/a https://docs.ray.io/b http://localhost:8265", None),
        ("s3://bucket-7/run hf://datasets/x redis://host:6379", None),
    ],
)  # fmt: skip
def test_hosts_in_addresses_are_hidden_where_they_say_who_writes(text, expected):
    mask = Mask({})
    mask.learn(text)
    assert mask.text(text) == (expected or text)
    assert Mask({}, keep_names=True).text(text) == text


def test_lines_of_a_log_are_masked_as_one_text(tmp_path, asked):
    path = tmp_path / "train.log"
    text = (
        f"step:1 - critic/score/mean:0.5 {PLAIN}\npassword:\n  {PLAIN}\n-----BEGIN PRIVATE KEY-----\n"
        f"{HEX}\n-----END PRIVATE KEY-----\nstep:2 - critic/score/mean:0.5\n"
    )
    path.write_text(text)
    said = asked("get", "log", path, "--last", "9", "--mask")
    assert said.out == (
        "step:1 - critic/score/mean:0.5 ***\npassword:\n  ***\n***\n***\n***\n"
        "step:2 - critic/score/mean:0.5\n"
    )
    assert asked("get", "log", path, "--last", "9").out == text
    assert asked("get", "log", path, "--grep", "no such", "--mask").out == ""


@pytest.mark.parametrize(
    "line",
    [
        "token: 12, num_tokens=3, max_tokens: 512, eos_token: <|im_end|>",
        "data.reward_fn_key=data_source",
        "hub_token: null, password=None, use_auth_token=True, api_key=${oc.env:KEY}",
        "nvidia-curand-cu12==10.3.2.106 torch 2.6.0 12.1.3.1",
        "at http://localhost:8265/jobs, http://127.0.0.1/x",
        "File \"/opt/venv/lib/python3.12/site-packages/verl/x.py\", line 3",
        "commit 0123456789abcdef0123456789abcdef00000000",
        "malice and nodes stay",
        "max_new_tokens=512 token_mult_prob_error=0.1 timing_per_token_ms/gen:0.05 pass@1: 0.35",
        "EOS_TOKEN=<|im_end|> PAD_TOKEN=<pad> NUM_TOKEN=abc mask_token: [MASK] stop_token: '</answer>'",
        "data.prompt_key=prompt image_key: images dataset_key: 'openai_gsm8k_main_v20240101'",
        "api_key_file: /run/secrets/key password_file=/x/y api_key_env: KEY secret_weight=0.3",
        "unexpected token: '}'",
        "invalid token in line 3, authentication failed, API keys are read from the environment",
        "Enter your password:\nroot: starting step 1",
        "credentials:\n  file: /x",
        "- name: API_KEY\n  valueFrom: x",
        "name: prompt_key\nvalue: question",
        "x --use_auth_token\ntraining starts",
        "getattr(config, 'prompt_key', 'prompt') in ('tokens', 'lengths')",
        "Processed tokens 12345678 of 23456789; the key idea is 12345678",
        "curl -XPUT http://localhost/x && curl -b cookies.txt http://localhost/",
        "api_key=\npassword: \n  \nstep 1",
        "sk-learn, hf_transfer, npm_config_cache, dapi, r8_x, SG.x, xai, risk-adjusted-return-of-the-policy",
        "curl -O https://github.com/x && zip -r out.zip dir && echo hello | tee x && mysql -p",
        '"auth": null, "auth": "none", auth_type: basic, cookies are disabled, cookie=1',
        "VLLM_USE_V1=1 TOKENIZERS_PARALLELISM=true tokenizer=/models/Qwen2.5-7B loss_agg_mode=token-mean",
        "wandb: Run data is saved locally in /x/wandb/run-20250101_000000-abcd1234",
        "step:1 - critic/score/mean:0.5 - response_length/mean:300 - perf/throughput:1234.5",
    ],
)  # fmt: skip
def test_other_text_for_others_stays(line):
    assert MASK.text(line) == line


def test_names_are_learnt_from_homes_unless_they_are_words_of_the_training():
    mask = Mask({})
    mask.spare({"verl"})
    mask.learn("/home/mallory/a /home/verl/b /home/ubuntu/c")
    assert mask.text("mallory's verl on ubuntu") == "USER's verl on ubuntu"


def test_names_stay_on_request_and_homes_do_not():
    mask = Mask({}, user="alice", host="node-17", keep_names=True)
    said = mask.text("alice@node-17: /home/alice/x at 10.0.0.7:80")
    assert said == "alice@node-17: ~/x at 10.0.0.7:80"


def test_data_are_masked_by_their_names_as_well():
    data = {
        "hub_token": "x",
        "password": 12345678,
        "max_tokens": 5,
        "l": ["/home/eve/q"],
    }
    masked = {"hub_token": HIDDEN, "password": HIDDEN, "max_tokens": 5, "l": ["~/q"]}
    found = MASK.data({"a": data, "secret": ["y"], "n": None})
    assert found == {"a": masked, "secret": [HIDDEN], "n": None}


@given(st.text(max_size=200))
def test_any_text_is_masked(text):
    MASK.learn(text)
    assert isinstance(MASK.text(text), str)


def test_addresses_that_messages_go_to_are_in_no_text_for_others():
    mask = Mask({"VERL_TUI_NOTIFY_URL": "https://chat.example/hook-1"})
    said = mask.text("post to https://chat.example/hook-1 failed")
    assert said == f"post to {HIDDEN} failed"
