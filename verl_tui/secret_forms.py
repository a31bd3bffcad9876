"""What secrets look like, as tables: names of settings and variables, the forms that services give
their keys, addresses that let anybody write to a chat, programs that take a password as a word.
"""

from __future__ import annotations

import re

from verl_tui.patterns import pattern

NAMES = (
    r"(?:api|access|secret|private|auth|account|subscription|encryption|signing|master"
    r"|service|ssh|fernet|openai|azure|kaggle|wandb|swanlab|comet|license)[_-]?key"
    r"|(?:api|hub|hf|hugging[_-]?face|auth|access|wandb|swanlab|github|gitlab|bearer|session"
    r"|refresh|bot|login|private|identity|registry|vault|npm|pypi|slack|telegram|csrf"
    r"|xsrf)[_-]?token"
    r"|secret|password|passwd|passphrase|credentials?|(?:web[_-]?hook|notify)[_-]?(?:url|key)"
)
_MORE = (
    r"(?:_?id)?(?:[_-](?!(?:env|var|file|path|dir|name|type|len|length|count|num|field|header"
    r"|column|policy|required|enabled|format|weight|rate|level)(?![A-Za-z0-9]))"
    r"[A-Za-z0-9]{1,16}){0,2}"
)
"""What may stand behind a name without making it another: `API_KEY_PROD`, but `api_key_file`."""
_OF_MODELS = (
    "EOS|BOS|PAD|UNK|MASK|SEP|CLS|STOP|START|END|IMAGE|VIDEO|AUDIO|SPECIAL|THINK|FIRST|LAST|NEXT"
    "|MAX|MIN|NUM|PER"
)
_VARIABLE = (
    rf"(?-i:(?<![A-Za-z0-9_])(?!(?:[A-Z0-9]{{1,20}}_){{0,3}}(?:{_OF_MODELS})_TOKEN)"
    r"[A-Z][A-Z0-9_]{0,60}?_(?:TOKEN|PASS|PWD)(?:_[A-Z0-9]{1,16}){0,2}(?![A-Za-z0-9_]))"
)
"""A variable of the environment, except those that hold words of a model."""
_KEYS = rf"(?:(?:{NAMES})s?{_MORE}|{_VARIABLE})"
_ANY = (
    rf"(?:{_KEYS}"
    r"|(?<![A-Za-z0-9-])(?:[a-z]{1,20}-){1,3}(?:token|secret)"
    r"|(?<![A-Za-z0-9_])(?:token|pwd|_auth|sig|signature|x-amz-\w+|passcode|\w{0,6}sessionid)"
    r"|(?<![A-Za-z0-9])(?:smtp|mail|db|mysql|pg|redis|ssh|ftp|proxy|root|admin|user)_?pass"
    r"|(?<![A-Za-z0-9_])(?:pass|pw)(?=\s{0,3}=))"
)
ANY_NAME = pattern(rf"{_ANY}$", re.IGNORECASE)
"""The end of a name under which a text for others shows nothing."""
SAYS_NOTHING = (
    r"(?:None|null|nil|True|False|true|false"
    r"|-?\d{1,6}(?:\.\d+)?|<[\w |-]+>|\$\{?[\w.:]+\}?|[)\]}>.,;:|&*=+-]{1,2})"
)
"""Values that are no secrets under any name: switches, counts, references, signs."""

_FORMS = (
    (r"hf_[A-Za-z0-9]{20,}|api_org_[A-Za-z0-9]{20,}", "Hugging Face"),
    (r"sk-[\w-]{20,}", "OpenAI, Anthropic, OpenRouter, DeepSeek and others"),
    (r"(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{10,}|whsec_[A-Za-z0-9+/=]{20,}", "Stripe"),
    (r"gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}", "GitHub"),
    (r"gl(?:pat|dt|ptt|rt|soat|cbt|ft|imt|agent|oas)-[\w-]{16,}", "GitLab"),
    (r"(?:A[KS]IA|ABIA|ACCA)[0-9A-Z]{16}", "AWS"),
    (r"xox[abeprs]-[\w-]{10,}|xapp-[\w-]{10,}", "Slack"),
    (r"\d{8,10}:AA[\w-]{32,}", "Telegram"),
    (r"wandb_v\d_\w{20,}", "W&B"),
    (r"nvapi-[\w-]{20,}", "NVIDIA"),
    (r"AIza[\w-]{35}|ya29\.[\w-]{20,}|GOCSPX-[\w-]{20,}", "Google"),
    (r"npm_[A-Za-z0-9]{30,}", "npm"),
    (r"pypi-[\w-]{40,}", "PyPI"),
    (r"gsk_\w{20,}", "Groq"),
    (r"xai-[A-Za-z0-9-]{20,}", "xAI"),
    (r"r8_[A-Za-z0-9]{20,}", "Replicate"),
    (r"dapi[0-9a-f]{32}", "Databricks"),
    (r"hv[sbr]\.[\w-]{20,}|s\.(?=\w*\d)(?=\w*[A-Z])[A-Za-z0-9]{24}\b", "Vault"),
    (r"SG\.[\w-]{16,}\.[\w-]{16,}", "SendGrid"),
    (r"AGE-SECRET-KEY-1[0-9A-Za-z]{20,}", "age"),
    (r"pplx-[A-Za-z0-9]{32,}", "Perplexity"),
    (r"csk-[A-Za-z0-9]{32,}", "Cerebras"),
    (r"tgp_v\d_[\w-]{20,}", "Together"),
    (r"rpa_[0-9A-Z]{32,}", "RunPod"),
    (r"a[ks]-[A-Za-z0-9]{22}", "Modal"),
    (r"pcsk_\w{20,}", "Pinecone"),
    (r"lsv2_[a-z]{2}_\w{20,}", "LangSmith"),
    (r"glsa_\w{20,}", "Grafana"),
    (r"sntry[su]_[\w+/=-]{20,}", "Sentry"),
    (r"dckr_pat_[\w-]{20,}", "Docker"),
    (r"dop_v1_[0-9a-f]{32,}", "DigitalOcean"),
    (r"tskey-[A-Za-z0-9-]{16,}", "Tailscale"),
    (r"(?:ntn|secret)_[A-Za-z0-9]{30,}", "Notion"),
    (r"fw_[A-Za-z0-9]{20,}", "Fireworks"),
    (r"jina_[A-Za-z0-9]{24,}", "Jina"),
    (r"tvly-[\w-]{20,}", "Tavily"),
    (r"fc-[0-9a-f]{32}", "Firecrawl"),
    (r"e2b_[0-9a-f]{32,}", "E2B"),
    (r"pk-lf-[0-9a-f-]{20,}", "Langfuse"),
    (r"KGAT_\w{20,}", "Kaggle"),
    (r"phc_[A-Za-z0-9]{30,}", "PostHog"),
    (r"sbp_[0-9a-f]{32,}", "Supabase"),
    (r"lin_api_[A-Za-z0-9]{30,}", "Linear"),
    (r"ATATT3[\w=-]{30,}", "Atlassian"),
    (r"dp\.pt\.[A-Za-z0-9]{30,}", "Doppler"),
    (r"[A-Za-z0-9]{14}\.atlasv1\.[\w-]{30,}", "Terraform"),
    (r"glc_[\w+/=]{30,}", "Grafana Cloud"),
    (r"[MNO][\w-]{23,25}\.[\w-]{6}\.[\w-]{27,}", "Discord's bots"),
    (r"LTAI[A-Za-z0-9]{12,}", "Alibaba"),
    (r"AKID[A-Za-z0-9]{28,}", "Tencent"),
    (r"AKLT[\w=-]{28,}", "Volcengine"),
    (r"bce-v3/ALTAK-[\w/-]{20,}", "Baidu"),
    (r"eyJ[\w-]{10,1000}\.[\w-]{10,}\.[\w-]*", "JSON web tokens"),
)  # fmt: skip
"""Keys by their own form, and whose they are."""
FORMS = pattern(rf"(?<![A-Za-z0-9])(?:{'|'.join(form for form, _ in _FORMS)})")

_CHATS = (
    (r"hooks\.slack\.com/(?:services|workflows|triggers)/|/services/(?=T[A-Z0-9]{6,}/B)", "Slack"),
    (r"/api/(?:v\d{1,2}/)?webhooks/", "Discord"),
    (r"api\.telegram\.org/(?:file/)?bot", "Telegram"),
    (r"/cgi-bin/webhook/[\w/-]{1,100}\?(?:[\w=-]{1,60}&){0,3}key=", "WeCom"),
    (r"/open-apis/bot/v2/hook/", "Feishu, Lark"),
    (r"(?:webhook\.office\.com|outlook\.office\.com/webhook)/", "Teams"),
    (r"ntfy\.sh/", "ntfy"),
    (r"(?:api\.day\.app|sctapi\.ftqq\.com|sc\.ftqq\.com)/", "Bark, ServerChan"),
    (r"hooks\.zapier\.com/hooks/", "Zapier"),
    (r"/trigger/[\w-]{1,100}/(?:json/)?with/key/", "IFTTT"),
    (r"hc-ping\.com/", "Healthchecks"),
    (r"/hooks/(?=[A-Za-z0-9]{16})", "Mattermost, Rocket.Chat"),
)  # fmt: skip
"""Addresses that let anybody write to a chat, up to what gives access, and whose they are. Errors
of connections tell them without the host.
"""
_CHAT = "|".join(form for form, _ in _CHATS)
_UP_TO_BLANK = r"[^\s'\"<>]+"
WEBHOOK = pattern(rf"((?:{_CHAT})){_UP_TO_BLANK}")

_PROGRAMS = (
    ("sshpass", r"-p\s{0,3}"),
    ("curl", r"(?:-[uU]|--user|--proxy-user)[\s=]{0,3}|-[a-zA-Z]{1,6}[uU]\s{1,3}"),
    ("curl", r"(?:-b|--cookie)[\s=]{0,3}(?=['\"]?[^\s'\"=]{1,60}=)"),
    (r"mysql\w{0,8}", r"-p(?=\S)"),
    (r"mariadb[\w-]{0,8}", r"-p(?=\S)"),
    (r"mongo\w{0,8}", r"-p\s{1,3}"),
    ("login", r"-p[\s=]{0,3}"),  # of docker, podman, helm registry and others
    ("twine upload", r"-p\s{1,3}"),
    ("redis-cli", r"-a\s{1,3}"),
    (r"ldap\w{1,10}", r"-w\s{1,3}"),
    ("zip", r"-P\s{0,3}"),
    ("unzip", r"-P\s{0,3}"),
    ("7z", r"-p(?=\S)"),
    ("unrar", r"-p(?=\S)"),
    ("openssl", r"-pass(?:in|out)?\s{1,3}pass:"),
    ("ipmitool", r"-P\s{1,3}"),
    ("smbclient", r"-U\s{1,3}[^%\s]{1,60}%"),
)  # fmt: skip
"""Programs, and the option behind which they take a password."""
_WORD = r"\"[^\"\n]*(?:\"|$)|'[^'\n]*(?:'|$)|[^\s'\"]+"
_QUOTED = r"\\?\"[^\"\n]*(?:\"|$)|\\?'[^'\n]*(?:'|$)"
_IS = r"\\?['\"]?\]?\s{0,3}[=:]\s{0,3}"
_NAMED = (
    r"(?:key|(?<!num_)token|secret|pass|phrase|credential|pwd|pw|auth|sig|x-amz|url|sessionid)"
    r"[\w-]{0,40}"
)
_ASSIGNED = (
    rf"{_NAMED}\\?['\"]?\]?\s{{0,3}}[=:]"
    r"(?!\s{0,3}-?\d{1,6}(?:\.\d{1,20})?(?:[\s,]|$))"
)
_PLACES = (
    (
        "authorization|bearer",
        rf"\bauthorization{_IS}\\?['\"]?(?:\w+ )?|\bbearer ",
        r"[^\s'\",;\\]+",
    ),
    (
        "cookie",
        rf"\b(?:set-)?cookies?(?:{_IS}|\s)\\?['\"]?",
        r"[^\s=;'\"]{1,100}=[^'\"\n]+|\{\\?['\"][^}\n]+",
    ),
    (
        r"auth\\?['\"]",  # docker's, of user and password
        rf"['\"]auth{_IS}\\?['\"]",
        r"(?-i:(?=[^'\"]{0,200}[A-Z0-9=])[\w+/=-]{8,})",
    ),
    (
        _ASSIGNED,
        rf"{_ANY}{_IS}(?:\{{\s?['\"]value{_IS})?"
        rf"(?!\\?['\"]?{SAYS_NOTHING}(?:[\s'\"\\,;)\]}}&]|$)|[{{\[]\s*$)",
        rf"{_QUOTED}|\[[^\]\n]+|[^\s'\",;)\]}}&]+",
    ),
    (
        _ASSIGNED,  # what looks like a key, under a name that may be one's
        rf"(?<![A-Za-z0-9])[\w.-]{{0,60}}?(?:key|token){_IS}\\?['\"]?",
        r"(?-i:(?=(?:[A-Za-z_-]*\d){3})"
        r"(?:(?=[\w-]*[a-z])(?=[\w-]*[A-Z])[\w-]{20,}|[0-9a-f]{32,}))",
    ),
    (
        rf"-[\w.-]{{0,60}}?{_NAMED}['\"]?,?(?: |$)",
        rf"(?<![\w.-])--?[\w.-]{{0,60}}?(?:{NAMES}|token)(?:_id)?['\"]?,?[ ]+(?!['\"]?-|\\\s*$)",
        rf"{_QUOTED}|[^\s'\",;]+",
    ),
    (
        r"(?:key|token|secret|passw(?:or)?d|phrase|credentials?|url)(?:_id)?['\"]? (?:is )?['\"]?"
        r"(?=[^\s\d]{0,200}\d)\S{8}",
        # `Incorrect API key 12ab`, which is no word
        rf"(?:{NAMES})(?:_id)?['\"]?[ ](?:is[ ])?['\"]?",
        r"(?=[^\s\d]{0,200}\d)[^\s'\",;)\]}]{8,}",
    ),
    (r"\(['\"][\w-]{1,60}['\"],", rf"\(['\"]{_KEYS}['\"],\s{{0,3}}", "'[^'\n]+'|\"[^\"\n]+\""),
    (
        rf"name\\?['\"]?\s?[=:]\s?\\?['\"]?[\w-]{{0,60}}?{_NAMED}\\?['\"]?(?:,|$)",
        rf"\bname{_IS}\\?['\"]?{_KEYS}\\?['\"]?,\s{{0,3}}\\?['\"]?value{_IS}",
        rf"{_QUOTED}|[^\s'\",;)\]}}&]+",
    ),
    ("://|url: /|hook", rf"(?-i:{_CHAT})", _UP_TO_BLANK),
    ("://", r"://[^\s'\"<>]{1,300}?[?&](?:key|auth|sign)=", r"[^\s&#'\"<>]+"),
    ("login", r"\blogin (?:-\S{1,100} ){0,10}", r"[\w-]{20,}"),
    (
        "|".join(rf"{name}\s" for name, _ in _PROGRAMS),
        "(?-i:"
        + "|".join(
            rf"(?<![\w.-]){name}\s(?:[^\n]{{0,300}}?\s)?(?:{option})"
            for name, option in _PROGRAMS
        )
        + ")",
        _WORD,
    ),
    (
        "echo ",  # into the standard input of a program
        r"\becho\s{1,3}(?:-n\s{1,3})?",
        rf"(?:{_WORD})"
        r"(?=\s{0,3}\|\s{0,3}(?:sudo|docker|podman|gh|wandb|huggingface-cli|hf|chpasswd)\b)",
    ),
)  # fmt: skip
PLACES = tuple(
    (
        pattern(sign),
        pattern(
            rf"(?P<before>{before})(?P<value>{value})", re.IGNORECASE | re.MULTILINE
        ),
    )
    for sign, before, value in _PLACES
)
"""Where secrets stand, in the order of looking: what a line with one has, in small letters, which
is found fast; and what stands before the secret, with the secret.
"""
SUSPECT = pattern(
    "|".join(sorted({"://", *(sign for sign, _, _ in _PLACES)})), re.MULTILINE
)
"""What every line has, in small letters, that holds a secret known by its place, or an address."""
_LINE = (
    r"^(?P<before>(?:\([^)\n]{1,120}\) ?|\[?rank\d{1,5}\]?: ?)?\s*(?:- )?"
    rf"(?:['\"]?value{_IS})%s)(?!['\"]?{SAYS_NOTHING}['\"]?,?\s*$)"
    r"(?P<value>\"[^\"]+\"|'[^']+'|[^\s'\":{\[-][^\s'\"]*(?<![:{\[,]))(?=\s{0,3}[,\\]?\s*$)"
)
"""A line that is a value, behind what says whose line it is."""
NEXT = tuple(
    (pattern(rf"{end}\s{{0,3}}$", re.IGNORECASE), pattern(line))
    for end, line in (
        (
            rf"{_ANY}\\?['\"]?\]?\s{{0,3}}[=:]\s{{0,3}}(?:[|>][+-]?|[{{\[])?",
            _LINE % "?",
        ),
        (rf"\bname{_IS}['\"]?{_KEYS}['\"]?,?", _LINE % ""),
        (rf"(?<![\w.-])--?[\w.-]{{0,60}}?(?:{NAMES}|token)['\"]?,?", _LINE % "?"),
        (
            rf"{_ANY}\s{{1,3}}\\",
            r"^(?P<before>\s*)(?P<value>[^\s'\"]+|\"[^\"]+\"|'[^']+')",
        ),
    )
)
"""The end of a line whose value stands on the next one, and that line: of data, of variables as
Kubernetes lists them, of words of a command one a line, of a command that goes on.
"""

PUBLIC = frozenset({
    "aliyun.com", "anthropic.com", "apache.org", "arxiv.org", "debian.org", "deepseek.com",
    "dingtalk.com", "discord.com", "discordapp.com", "docker.com", "docker.io", "feishu.cn",
    "gitee.com", "github.com", "github.io", "githubusercontent.com", "gitlab.com", "google.com",
    "googleapis.com", "hf-mirror.com", "hf.co", "huggingface.co", "hydra.cc", "kubernetes.io",
    "larksuite.com", "modelscope.cn", "ntfy.sh", "nvidia.com", "office.com", "openai.com",
    "prometheus.io", "pypi.org", "python.org", "pythonhosted.org", "pytorch.org", "ray.io",
    "readthedocs.io", "readthedocs.org", "slack.com", "stackoverflow.com", "swanlab.cn",
    "telegram.org", "tensorflow.org", "ubuntu.com", "vllm.ai", "w3.org", "wandb.ai", "wandb.me",
    "weixin.qq.com", "wikipedia.org",
})  # fmt: skip
"""Domains of services that everybody uses: their names say nothing of who writes."""
