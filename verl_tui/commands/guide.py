"""`verl-tui guide`: the rules in force."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.commands.arguments import seconds
from verl_tui.commands.options import config_option, configuration

if TYPE_CHECKING:
    import argparse

    from verl_tui.commands.arguments import CommandParser

NAME = "guide"
HELP = "the rules in force, with their thresholds and sources"
EXAMPLES = ("verl-tui guide", "verl-tui guide --format prometheus > verl-rules.yml")
EXITS = "0 done"


def options(parser: CommandParser) -> None:
    """Add its options."""
    formats = "text (default), Prometheus' alert rules, or a Grafana dashboard"
    parser.add_argument(
        "--format",
        choices=("text", "prometheus", "grafana"),
        default="text",
        help=formats,
    )
    step = (
        "how long a step usually takes: alert rules look back by the clock "
        "(default: %(default)g)"
    )
    parser.add_argument(
        "--step", type=seconds, default=60.0, metavar="SECONDS", help=step
    )
    config_option(parser)


def run(options: argparse.Namespace) -> int:
    """Write the rules; return the exit code."""
    from verl_tui.health.guide_settings import load_guide

    guide = load_guide(configuration(options).guide)
    if options.format == "prometheus":
        from verl_tui.exporters.guide.alerts import alert_rules

        print(alert_rules(guide, options.step), end="")
    elif options.format == "grafana":
        from verl_tui.exporters.guide.grafana import dashboard

        print(dashboard(guide))
    else:
        from verl_tui.exporters.guide import describe

        for line in describe(guide):
            print(line)
    return 0
