"""Opens the notifier for the commands that send notifications."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import TYPE_CHECKING

from verl_tui.commands.arguments import CommandError

if TYPE_CHECKING:
    from verl_tui.config import Config
    from verl_tui.notify.delivery import Destination
    from verl_tui.notify.notifier import Notifier
    from verl_tui.notify.notify_settings import NotifySettings

NO_ADDRESS = (
    "no address to notify: put it into VERL_TUI_NOTIFY_URL, or into a file that nobody else may "
    "read and its path into VERL_TUI_NOTIFY_FILE"
)


def settings_for(config: Config) -> NotifySettings:
    """Return the user's wishes."""
    from verl_tui.notify.notify_settings import NotifySettings, parse_settings

    if not config.notify:
        return NotifySettings()
    from verl_tui.health.guide_settings import load_guide

    return parse_settings(
        config.notify, {rule.id for rule in load_guide(config.guide).rules}
    )


def destination_for(
    settings: NotifySettings, preset: str | None = None
) -> Destination | None:
    """Return where messages go, None where the user has named no address.

    Raises:
        CommandError: The address or its file is not usable, or apprise is missing.
    """
    from verl_tui.notify.delivery import destination

    found = destination(os.environ, settings.file, preset or settings.preset)
    if found is not None and found.preset == "apprise" and not find_spec("apprise"):
        raise CommandError(
            f"{found.where}: this address needs apprise: pip install 'verl-tui[notify]'"
        )
    return found


def notifier_for(config: Config, command: str) -> Notifier | None:
    """Return the notifier of a command that sends without an option; None if there is no address,
    or the user has turned that off.
    """
    settings = settings_for(config)
    if command not in settings.commands:
        return None
    to = destination_for(settings)
    return None if to is None else _notifier(settings, to)


def sending_notifier(config: Config) -> Notifier:
    """Return the notifier of a command that was asked to send.

    Raises:
        CommandError: There is no address.
    """
    settings = settings_for(config)
    to = destination_for(settings)
    if to is None:
        raise CommandError(NO_ADDRESS)
    return _notifier(settings, to)


def _notifier(settings: NotifySettings, to: Destination) -> Notifier:
    from verl_tui.notify.notifier import Notifier

    return Notifier(settings, to)
