"""`verl-tui get`: small answers on one run for scripts, one module each."""

HELP = "small answers on one run for scripts: state, findings, metrics, samples, log"
EXAMPLES = ("verl-tui get state logs/run_7", "verl-tui get metrics logs/run_7 --json")
