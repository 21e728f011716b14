"""Alerts: webhooks on what becomes of answers. `docs/design/alerts.md` says how they are delivered.

A run does this, before it reads its first fact:

    declared = alerts.gather(Path("whilst.toml"), program="turbines")   # AlertError: wrong usage
    handle = alerts.start(store, declared)
    …
    handle.stop(drain=10)

Declarations are in the store from `start` on, so that the writer fills the outbox for them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from monitor.alerts.declarations import Alert, declared, from_file, webhook
from monitor.alerts.errors import AlertError

if TYPE_CHECKING:
    from monitor.alerts.background import Background
    from storage.store import Store

__all__ = ["Alert", "AlertError", "declared", "from_file", "gather", "start", "webhook"]


def gather(
    config: Path | None,
    *,
    program: str,
    queries: Collection[str] | None = None,
    url: str | None = None,
    secret: str | None = None,
    allow_private: bool = False,
) -> dict[str, tuple[Alert, ...]]:
    """The alerts of the configuration file and of `--webhook`, by where they are declared.

    Every one that concerns the program is checked whole: its secret, and where it names the program
    its `queries` too.
    """
    from monitor.alerts.sending import Target

    if url is None and (secret is not None or allow_private):
        raise AlertError("there is no --webhook URL to go with that")
    made: dict[str, tuple[Alert, ...]] = {f"run {program}": ()}
    if url is not None:
        made[f"run {program}"] = webhook(url, secret, program=program, allow_private=allow_private)
    if config is not None:
        made[str(config.absolute())] = from_file(config)
    for alerts in made.values():
        for alert in alerts:
            if alert.program not in (None, program):
                continue
            try:
                Target.of(alert)
            except AlertError as error:
                raise AlertError(f"alert {alert.name}: {error}") from None
            unknown = set(alert.queries or ()) - set(queries or ())
            if queries is not None and alert.program is not None and unknown:
                raise AlertError(
                    f"alert {alert.name}: {program} has no query {min(unknown)}; "
                    f"it has {', '.join(sorted(queries))}"
                )
    return made


def start(store: Store, gathered: Mapping[str, tuple[Alert, ...]]) -> Background:
    """Register the alerts, and deliver in the background until `stop` of what is returned."""
    from monitor.alerts import outbox
    from monitor.alerts.background import Background

    for origin, alerts in gathered.items():
        outbox.register(store.url("writer"), alerts, origin)
    return Background(store.url("writer"))
