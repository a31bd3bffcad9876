"""`verl-tui guide`: the rules in force."""

from __future__ import annotations

from verl_tui.commands.shared import CONFIG, Options, guide_of

HELP = "the rules in force, with their thresholds and sources"
EXAMPLES = ("verl-tui guide", "verl-tui guide --format prometheus > verl-rules.yml")
EXITS = "0 done"
OPTIONS = f"""
--format text|prometheus|grafana  text, Prometheus' alert rules, or a Grafana dashboard
                (default: text)
--step SECONDS  how long a step usually takes: alert rules look back by the clock (default: 60)
{CONFIG}"""


def run(options: Options) -> int:
    """Write the rules; return the exit code."""
    guide = guide_of(options.configuration())
    if options.format == "prometheus":
        from verl_tui.exporters.guide.alerts import alert_rules

        print(alert_rules(guide, options.step), end="")
    elif options.format == "grafana":
        from verl_tui.exporters.guide.grafana import dashboard

        print(dashboard(guide))
    else:
        from verl_tui.exporters.guide.as_text import describe

        print(*describe(guide), sep="\n")
    return 0
