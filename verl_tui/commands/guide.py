"""`verl-tui guide`: the rules in force."""

from __future__ import annotations

from verl_tui.commands.shared import Options, guide_of

HELP = """
The rules in force, with their thresholds and sources.

--format text|prometheus|grafana  text, Prometheus' alert rules, or a Grafana dashboard
                (default: text)
--step SECONDS  how long a step usually takes: alert rules look back by the clock (default: 60)
--config FILE

for example:
    verl-tui guide
    verl-tui guide --format prometheus > verl-rules.yml

exit codes: 0 done
"""


def run(options: Options) -> int:
    """Write the rules; return the exit code."""
    from verl_tui.exporters.guide import alert_rules, dashboard, describe

    guide = guide_of(options.settings)
    if options.format == "prometheus":
        print(alert_rules(guide, options.step), end="")
    elif options.format == "grafana":
        print(dashboard(guide))
    else:
        print(*describe(guide), sep="\n")
    return 0
