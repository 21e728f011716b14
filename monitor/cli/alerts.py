"""`whilst deliver` and `whilst alerts`: webhooks, sent, looked at and looked after."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from monitor.cli.store import Format, StoreOption

alerts = typer.Typer(
    help="Look after webhooks: list, retry, test, disable, enable.\n\n"
    "Example: `whilst alerts list`",
    no_args_is_help=True,
)

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Name of the alert.")]
ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="Declarations; whilst.toml where it is there."),
]

_DEFAULT = Path("whilst.toml")


def register(app: typer.Typer) -> None:
    app.command()(deliver)
    app.add_typer(alerts, name="alerts")


@contextlib.contextmanager
def _said() -> Iterator[None]:
    """Errors as one line and exit code 1."""
    import psycopg

    from monitor.alerts import AlertError
    from storage.errors import StoreError, translated

    try:
        yield
    except (AlertError, StoreError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from None
    except psycopg.Error as error:
        typer.echo(f"error: {translated(error) or 'the store failed'}", err=True)
        raise typer.Exit(1) from None


@contextlib.contextmanager
def _store(url: str | None) -> Iterator[str]:
    """The URL of the store for the role that writes."""
    from storage.store import open_store

    with _said(), open_store(url) as opened:
        yield opened.url("writer")


def _registered(url: str, config: Path | None) -> None:
    """Put the declarations of the configuration into the store."""
    from monitor.alerts import AlertError, from_file, outbox

    if config is not None and not config.exists():
        raise AlertError(f"there is no {config}: name a file that is there, or leave --config out")
    path = config or _DEFAULT
    if path.exists():
        outbox.register(url, from_file(path), str(path.absolute()))


def deliver(
    once: Annotated[bool, typer.Option("--once", help="End when nothing is due.")] = False,
    config: ConfigOption = None,
    store: StoreOption = None,
) -> None:
    """Deliver the alerts that wait in the store, beside runs or without any.

    `whilst run` does the same while it runs. Several may deliver from one store at once.

    Example: `whilst deliver --once`
    """
    import asyncio
    import logging
    import signal

    from monitor.alerts.deliverer import Deliverer

    logging.basicConfig(format="%(message)s")
    logging.getLogger("whilst").setLevel(logging.INFO)  # and not of all that libraries say
    with _store(store) as url:
        _registered(url, config)

        async def run() -> Deliverer:
            deliverer = Deliverer(url, once=once)
            for number in (signal.SIGINT, signal.SIGTERM):
                asyncio.get_running_loop().add_signal_handler(number, deliverer.stop)
            await deliverer.run()
            return deliverer

        done = asyncio.run(run())
    typer.echo(f"delivered {done.delivered}, failed attempts {done.failed}")
    if once and (done.failed or done.troubles):
        if done.failed:
            typer.echo("`whilst alerts list` says what failed", err=True)
        raise typer.Exit(1)


@alerts.command("list")
def list_(
    dead: Annotated[bool, typer.Option("--dead", help="List alerts that were given up.")] = False,
    limit: Annotated[int, typer.Option(min=1, help="With --dead: at most so many.")] = 100,
    format: Annotated[Format, typer.Option("--format", help="How to print rows.")] = Format.table,
    config: ConfigOption = None,
    store: StoreOption = None,
) -> None:
    """List where alerts go, how many wait, went and were given up, and the last attempt.

    JSON and CSV hold more: events, queries, the oldest that waits, latency.

    Examples: `whilst alerts list`, `whilst alerts list --dead`
    """
    import sys

    from monitor.alerts import outbox
    from storage.printing import write

    with _store(store) as url:
        _registered(url, config)
        rows = outbox.dead(url, limit) if dead else outbox.summary(url)
        if format is Format.table and not dead:
            rows = outbox.in_short(rows)
        write(rows, format.value, sys.stdout)


@alerts.command()
def retry(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="All of this alert.")] = None,
    ids: Annotated[
        list[int] | None, typer.Option("--id", help="One, by its number in `list --dead`.")
    ] = None,
    store: StoreOption = None,
) -> None:
    """Try again what was given up or waits for its next attempt, under the same webhook-id.

    Example: `whilst alerts retry pager`
    """
    import shlex

    from monitor.alerts import outbox

    if name is None and not ids:
        raise typer.BadParameter("name an alert, or give --id NUMBER (see `list --dead`)")
    with _store(store) as url:
        count, disabled = outbox.retry(url, name, ids or [])
    typer.echo(f"{count} to be tried again; `whilst deliver` or a run sends them")
    for one in disabled:
        typer.echo(f"{one} is disabled: first `whilst alerts enable {shlex.quote(one)}`")


@alerts.command("test")
def try_out(name: NameArgument, config: ConfigOption = None, store: StoreOption = None) -> None:
    """Send one alert of type `test` now, as real ones are sent, and say what came of it.

    Example: `whilst alerts test pager`
    """
    import asyncio
    import uuid
    from datetime import UTC, datetime

    from monitor.alerts import body, outbox
    from monitor.alerts.sending import Outcome, Sender, Target

    async def sent(target: Target) -> Outcome:
        message = body.test(f"msg_test_{uuid.uuid4().hex}", datetime.now(UTC))
        async with Sender(target) as sender:
            return await sender.send(message.webhook_id, body.text(message, target.alert))

    with _store(store) as url:
        _registered(url, config)
        outcome = asyncio.run(sent(Target.of(outbox.endpoint(url, name).alert)))
    if not outcome.delivered:
        typer.echo(f"error: {name}: {outcome.error}", err=True)
        raise typer.Exit(1)
    typer.echo(f"{name}: {outcome.status} in {outcome.latency_ms:.0f} ms")


@alerts.command()
def disable(name: NameArgument, store: StoreOption = None) -> None:
    """Send nothing more there, and write no more alerts for it; what waits is kept.

    Example: `whilst alerts disable pager`
    """
    from monitor.alerts import outbox

    with _store(store) as url:
        outbox.switch(url, name, "disabled", "by `whilst alerts disable`")
    typer.echo(f"{name} is disabled; `whilst alerts enable` takes it up again")


@alerts.command()
def enable(name: NameArgument, store: StoreOption = None) -> None:
    """Take an endpoint up again, and with it what waits for it.

    Example: `whilst alerts enable pager`
    """
    from monitor.alerts import outbox

    with _store(store) as url:
        outbox.switch(url, name, "enabled", None)
    typer.echo(f"{name} is enabled")
