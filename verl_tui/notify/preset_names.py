"""Names of the forms that messages have, apart from their code: the command line lists them."""

PRESETS = ("json", "slack", "feishu", "dingtalk", "ntfy", "apprise")
