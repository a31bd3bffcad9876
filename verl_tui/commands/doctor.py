"""`verl-tui doctor`: what is found and how it is recognised, and what it runs on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from verl_tui.config import Config, ConfigError, config_path
from verl_tui.given_files import NothingError, is_there

if TYPE_CHECKING:
    from verl_tui.commands.shared import Options

HELP = """
What is found at paths, by which evidence, what is passed over; terminal, GPUs, limits.

--json
PATH...  log, directory, quoted glob, address or -; none: the machine alone
--config FILE

for example:
    verl-tui doctor
    verl-tui doctor logs/run_7
    verl-tui doctor logs --json

exit codes: 0 fine, 1 something is wrong, 3 nothing readable
"""


def run(options: Options) -> int:
    """Write the report; return the exit code."""
    from verl_tui.bundle.versions import installed
    from verl_tui.check.data import is_readable
    from verl_tui.doctor.examination import (
        VERSION,
        change_notices,
        doctor_text,
        examine,
        notices_folder,
        nvml,
        terminal,
        wrong,
    )
    from verl_tui.monitor import Monitor, load

    now = options.now
    config, about = _configuration(options)
    paths = options.paths
    monitor = load(paths, config, now) if paths else Monitor(config)
    found: dict[str, Any] = {
        "version": VERSION,
        "versions": installed(),
        **examine(monitor, now),
        "terminal": terminal(config),
        "nvml": nvml(now),
        "notices": change_notices(notices_folder(paths)),
        "config": about,
    }
    found["wrong"] = wrong(found)
    if options.json:
        print(json.dumps(found, indent=2, allow_nan=False, default=str))
    else:
        print(doctor_text(found, monitor.runs), end="")
    if paths and not is_readable(found):
        return NothingError.code
    return 1 if found["wrong"] else 0


def _configuration(options: Options) -> tuple[Config, dict[str, Any]]:
    """Return the configuration and remarks on it; the defaults in place of a faulty one."""
    from verl_tui.doctor.examination import changes

    path = config_path(options.config)
    problem = None
    try:
        config = options.settings
    except ConfigError as error:
        config = Config()
        problem = f"{error}; the defaults are used here"
    about = {"path": str(path), "exists": is_there(path), "problem": problem}
    return config, {**about, "changes": changes(config)}
