"""The guide as Prometheus' alert rules: what promtool says of them, and when they fire."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from verl_tui.exporters.guide import alert_name, alert_rules, why_not_promql
from verl_tui.health.guide_settings import load_guide
from verl_tui.indicators import dialect, spellings
from verl_tui.prometheus_names import named

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from verl_tui.health.guide import Guide, Rule

GUIDE = load_guide()
SAID = [rule for rule in GUIDE.rules if why_not_promql(rule) is None]
needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="needs Debian's package prometheus"
)


def keys(rule: Rule) -> list[str]:
    """Return what a rule may judge, by the logs that it is for."""
    if not rule.indicator:
        return list(rule.metric)
    known = spellings(rule.indicator)
    return [one for one in known if dialect((one,)) in rule.dialects]


def series(rule: Rule, key: str, value: float, run: str = "a") -> list[dict[str, str]]:
    """Return series of a run whose judged number is this one all the time; a step a minute."""
    where = f'{{run="{run}",job="x"}}'
    number = f"{value * named(key).factor!r}x99"
    made = {"verl_training_steps_total": "0+1x99", named(key).name: number}
    if rule.stream == "difference":
        made[named(rule.beside_metric[0]).name] = "0x99"
    return [{"series": name + where, "values": it} for name, it in made.items()]


def beyond(rule: Rule) -> list[float]:
    """Return values in breach of a rule, one beyond each limit."""
    if rule.condition == "outside":
        return [rule.high + 0.1, rule.low - 0.1]
    return [rule.threshold - 0.1 if rule.condition == "below" else rule.threshold + 0.1]


def within(rule: Rule) -> list[float]:
    """Return healthy values of a rule, one near each limit."""
    near = 1e-3
    if rule.condition == "outside":
        return [rule.high - near, rule.low + near]
    return [rule.threshold + (near if rule.condition == "below" else -near)]


def case(
    rule: Rule,
    what: str,
    inputs: Iterable[Mapping[str, str]],
    *,
    fires: Iterable[str],
    minutes: int,
    among: str = ".*",
) -> dict[str, Any]:
    """Return a case for promtool: after so many minutes the rule's alert fires for these runs and
    no others among those that match.
    """
    name = alert_name(rule.id)
    asked = f'count by (alertname, run, id, severity) (ALERTS{{alertstate="firing", alertname="{name}", run=~"{among}"}})'
    labels = f'alertname="{name}", id="{rule.id}", severity="{rule.severity.word}"'
    samples = [{"labels": f'{{{labels}, run="{run}"}}', "value": 1} for run in fires]
    ask = {"expr": asked, "eval_time": f"{minutes}m", "exp_samples": samples}
    return {
        "name": f"{rule.name}: {what}",
        "interval": "1m",
        "input_series": list(inputs),
        "promql_expr_test": [ask],
    }


def together(cases: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return one case of several, for which promtool evaluates all rules once instead of once for
    each.
    """
    whole: dict[str, Any] = {"name": "all rules", "interval": "1m"}
    whole |= {"input_series": [], "promql_expr_test": []}
    for one in cases:
        whole["input_series"] += one["input_series"]
        whole["promql_expr_test"] += one["promql_expr_test"]
    return whole


def late(rule: Rule) -> int:
    """Return minutes after which a rule has seen enough steps of a minute."""
    return 3 + 3 * (rule.count if rule.condition == "streak" else rule.window) // 2


ONLY_SAID = load_guide(
    {"silence": sorted({rule.id for rule in GUIDE.rules} - {rule.id for rule in SAID})}
)


def promtool(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """Ask promtool."""
    command = ["promtool", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def check_alerts(tmp_path):
    """Return what asks promtool whether the rules do as expected."""

    def ask(cases: list[dict[str, Any]], guide: Guide = ONLY_SAID) -> None:
        (tmp_path / "rules.yml").write_text(alert_rules(guide), encoding="utf-8")
        file = {"rule_files": ["rules.yml"], "evaluation_interval": "1m"}
        text = yaml.safe_dump({**file, "tests": cases})
        (tmp_path / "tests.yml").write_text(text, encoding="utf-8")
        said = promtool("test", "rules", tmp_path / "tests.yml")
        assert said.returncode == 0, said.stdout + said.stderr

    return ask


@pytest.mark.prometheus
@needs_promtool
@pytest.mark.parametrize("step", [1.0, 60.0, 900.0])
def test_promtool_finds_no_fault_in_the_rules(tmp_path, step):
    file = tmp_path / "rules.yml"
    file.write_text(alert_rules(GUIDE, step), encoding="utf-8")
    done = promtool("check", "rules", file)
    assert done.returncode == 0, done.stderr
    assert "duplicate" not in done.stdout


def test_there_is_an_alert_for_every_rule_and_it_tells_what_to_do():
    groups = yaml.safe_load(alert_rules(GUIDE))["groups"]
    rules = [rule for group in groups for rule in group["rules"] if "alert" in rule]
    told = {rule["alert"]: rule["annotations"] for rule in rules}
    assert told.keys() == {alert_name(rule.id) for rule in GUIDE.rules}
    assert all({"summary", "source"} <= one.keys() for one in told.values())
    assert "Lower the learning rate" in told["VerlKlHigh"]["description"]


def test_what_the_user_silenced_has_no_alert_and_what_he_changed_is_changed():
    changed = {"kl-high": {"threshold": 0.345}}
    text = alert_rules(load_guide({"silence": ["plateau"], "rules": changed}))
    assert "VerlPlateau" not in text
    assert "> 0.345" in text


def test_words_of_a_user_are_no_template():
    rule = {"severity": "info", "metric": ["my/x"], "condition": "above"}
    rule |= {"threshold": 1, "window": 3, "advice": "look at {{ .Boom }}"}
    text = alert_rules(load_guide({"rules": {"mine": rule}}))
    assert "{{ `{{` }} .Boom" in text
    assert "verl_my_x" in text


@pytest.mark.prometheus
@needs_promtool
def test_every_rule_said_in_promql_fires_in_breach_and_not_in_health(check_alerts):
    assert len(SAID) >= 15
    cases = []
    for rule in SAID:
        inputs, fires = [], []
        for key in keys(rule):
            for value in beyond(rule):
                fires.append(f"{rule.name} {key} {value}")
                inputs += series(rule, key, value, fires[-1])
            for value in within(rule):
                inputs += series(rule, key, value, f"{rule.name} {key} sound {value}")
        own = {"fires": fires, "minutes": late(rule), "among": f"{rule.name} .*"}
        cases.append(case(rule, "all its keys", inputs, **own))
    check_alerts([together(cases)])


@pytest.mark.prometheus
@needs_promtool
def test_every_finding_is_an_alert_while_it_holds(check_alerts):
    def finding(rule: Rule, run: str, value: int) -> dict[str, str]:
        own = f'id="{rule.id}",severity="{rule.severity.word}"'
        labels = f'{{run="{run}",{own},job="x"}}'
        return {"series": f"verl_finding_active{labels}", "values": f"{value}x9"}

    def found(rule: Rule) -> dict[str, Any]:
        inputs = [finding(rule, "sick", 1), finding(rule, "sound", 0)]
        return case(rule, "found", inputs, fires=["sick"], minutes=2)

    rules = {rule.id: rule for rule in reversed(GUIDE.rules)}.values()
    check_alerts([together(found(rule) for rule in rules)], GUIDE)


KL = next(rule for rule in GUIDE.rules if rule.name == "kl-high")
BAD = {"series": 'verl_actor_ppo_kl{run="a",job="x"}', "values": "0.15x99"}
STEPS = {"series": 'verl_training_steps_total{run="a",job="x"}', "values": "0+1x99"}


@pytest.mark.prometheus
@needs_promtool
def test_an_alert_stays_silent_where_it_could_not_be_sure(check_alerts):
    judged = {"series": 'verl_run_state{run="a"}', "values": "1x99"}
    slow = {**STEPS, "values": "0 0 0 0 0 1 1 1 1 1 2 2 2 2 2 3"}
    silent = {
        ("verl-tui judges the run itself", 60): [BAD, STEPS, judged],
        ("no further step was made", 60): [BAD, {**STEPS, "values": "7x99"}],
        ("steps take five minutes", 15): [BAD, slow],
        ("too few steps were made yet", 9): [BAD, STEPS],
        ("half are healthy", 60): [{**BAD, "values": "0.15 0.01 " * 40}, STEPS],
    }
    cases = [
        case(KL, why, inputs, fires=[], minutes=minutes)
        for (why, minutes), inputs in silent.items()
    ]
    others = sorted({rule.id for rule in GUIDE.rules} - {KL.id})
    check_alerts(cases, load_guide({"silence": others}))


@pytest.mark.prometheus
@needs_promtool
def test_runs_of_rl_insight_are_judged_under_its_names(check_alerts):
    cases = []
    for rule in SAID:
        inputs, fires = [], []
        for key in keys(rule):
            if rule.stream != "value" or dialect((key,)) != "verl":
                continue
            flat = key.replace("/", "_").replace(":", "_")
            project = f"math {rule.name}"
            where = f'{{project="{project}",experiment_name="{flat}",job="rl"}}'
            bad = f"{beyond(rule)[0]!r}x99"
            for name, values in (("training_global_step", "0+1x99"), (flat, bad)):
                one = f"rl_insight_monitor_{name}{where}"
                inputs.append({"series": one, "values": values})
            fires.append(f"{project}/{flat}")
        if fires:
            own = {"minutes": late(rule), "among": f"math {rule.name}/.*"}
            cases.append(case(rule, "all its keys", inputs, fires=fires, **own))
    assert len(cases) > 10
    check_alerts([together(cases)])
