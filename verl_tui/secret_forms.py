"""What secrets look like: names of settings and variables, places; and by `secret_forms.toml` the
forms that services give their keys, addresses that let anybody write to a chat, programs that take
a password as a word.
"""

from __future__ import annotations

import re

from verl_tui.patterns import pattern
from verl_tui.toml_tables import toml_table

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

_TABLE = toml_table(__file__, "secret_forms.toml")
FORMS = pattern(rf"(?<![A-Za-z0-9])(?:{'|'.join(_TABLE['keys'].values())})")
"""Keys by their own form."""

_CHAT = "|".join(_TABLE["chats"].values())
_UP_TO_BLANK = r"[^\s'\"<>]+"
WEBHOOK = pattern(rf"((?:{_CHAT})){_UP_TO_BLANK}")

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
        "|".join(rf"{name}\s" for name in _TABLE["programs"]),
        "(?-i:"
        + "|".join(
            rf"(?<![\w.-]){name}\s(?:[^\n]{{0,300}}?\s)?(?:{option})"
            for name, options in _TABLE["programs"].items()
            for option in options
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

PUBLIC = frozenset(_TABLE["domains"]["public"].split())
"""Domains of services that everybody uses: their names say nothing of who writes."""
