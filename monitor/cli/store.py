"""`whilst sql` and `whilst db`: reading the store, and looking after it."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

db = typer.Typer(
    help="Look after the store: start, stop, status, url, upgrade, prune and more.\n\n"
    "Example: `whilst db status`",
    no_args_is_help=True,
)


def _store_of_the_run(store: str | None) -> str | None:
    """Where none is named, the one that `whilst run` writes by the same configuration."""
    if store is not None:
        return store
    from monitor.config import ConfigError, store_of

    file = os.environ.get("WHILST_CONFIG")
    try:
        return store_of(Path(file) if file else None)
    except ConfigError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2) from None


StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        envvar="WHILST_STORE",
        metavar="URL",
        callback=_store_of_the_run,
        help="Another Postgres than the embedded one.",
    ),
]


class Format(StrEnum):
    table = "table"
    json = "json"
    csv = "csv"


def register(app: typer.Typer) -> None:
    app.command()(sql)
    app.add_typer(db, name="db")


@contextlib.contextmanager
def _said() -> Iterator[None]:
    """Errors of the store as one line and exit code 1."""
    import psycopg

    from storage.errors import StoreError, one_line

    try:
        yield
    except StoreError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from None
    except psycopg.Error as error:
        typer.echo(f"error: the store said: {one_line(error)}", err=True)
        raise typer.Exit(1) from None
    except BrokenPipeError:  # `whilst sql … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None


def sql(
    statement: Annotated[
        str | None, typer.Argument(help="The statement; `-` reads standard input.")
    ] = None,
    format: Annotated[Format, typer.Option("--format", help="How to print rows.")] = Format.table,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", help="Read the statement from a file.")
    ] = None,
    timeout: Annotated[str, typer.Option(help="Time limit: 500ms, 30s, 2m.")] = "30s",
    store: StoreOption = None,
) -> None:
    """Ask the store in SQL. Read-only: nothing can be changed through it.

    Views: `pending_answers`, `confirmed_answers`, `refuted_answers`, `late_facts`,
    `rejected_events`, `answer_history`, and one for each query, named after it.

    Example: `whilst sql "select answer, hypotheses, deadline from pending_answers"`
    """
    text = _statement(statement, file)
    seconds = _seconds(timeout)
    with _said():
        from storage.printing import write
        from storage.reading import read
        from storage.store import open_store

        with open_store(store) as opened:
            write(read(opened.url("reader"), text, seconds), format.value, sys.stdout)


def _statement(statement: str | None, file: Path | None) -> str:
    if (statement is None) == (file is None):
        if statement is not None or sys.stdin.isatty():
            raise typer.BadParameter("give a statement, or --file FILE, or `-` for standard input")
        statement = "-"
    if file is not None and str(file) != "-":
        try:
            return file.read_text(encoding="utf-8")
        except OSError as error:
            raise typer.BadParameter(f"cannot read {file}: {error.strerror}") from None
        except UnicodeDecodeError:
            raise typer.BadParameter(f"{file} is no UTF-8 text") from None
    if statement in (None, "-"):
        return sys.stdin.read()
    return statement


_UNITS = {"ms": 0.001, "s": 1.0, "": 1.0, "m": 60.0, "h": 3600.0}


def _seconds(text: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h|)", text.strip())
    if found is None or float(found[1]) == 0:
        raise typer.BadParameter(f"{text!r} is no time limit: write 500ms, 30s or 2m")
    return float(found[1]) * _UNITS[found[2]]


@db.command()
def start() -> None:
    """Start the embedded store and keep it up until `whilst db stop`.

    Example: `whilst db start`
    """
    with _said():
        from storage import embedded
        from storage.store import home_folder, open_store

        home = home_folder()
        with open_store(home=home):
            embedded.kept(home, True)
        typer.echo(f"the store in {home} is up; `whilst db stop` ends it")


@db.command()
def stop(
    force: Annotated[bool, typer.Option("--force", help="End it even if it is in use.")] = False,
) -> None:
    """End the embedded store that `whilst db start` keeps.

    Example: `whilst db stop`
    """
    with _said():
        from storage import embedded
        from storage.store import home_folder

        home = home_folder()
        if not (home / "postgres").exists():
            typer.echo(f"there is no store in {home}")
            return
        embedded.kept(home, False)
        if embedded.used(home) and not force:
            typer.echo(f"the store in {home} is in use: it ends when the last one leaves (--force)")
            return
        embedded.stop(home)
        typer.echo(f"the store in {home} is down")


@db.command()
def url(
    role: Annotated[str, typer.Option(help="owner, writer or reader.")] = "reader",
    store: StoreOption = None,
) -> None:
    """Print the URL of the store for other programs (with the password of that role).

    Example: `psql "$(whilst db url)"`
    """
    if role not in ("owner", "writer", "reader"):
        raise typer.BadParameter("the roles are owner, writer and reader")
    with _said():
        from storage.store import open_store

        with open_store(store) as opened:
            typer.echo(opened.url(role))


@db.command()
def upgrade(store: StoreOption = None) -> None:
    """Bring the tables of a store to the version of this whilst.

    Example: `whilst db upgrade`
    """
    with _said():
        from storage import schema, version
        from storage.store import open_store

        with open_store(store, prepare=False) as opened, opened.engine("owner") as engine:
            schema.upgrade(engine)
            typer.echo(f"{opened.name} has schema version {version.head()}")


@db.command()
def downgrade(
    version: Annotated[str, typer.Argument(help="Version to go down to; `base` removes all.")],
    store: StoreOption = None,
) -> None:
    """Bring the tables of a store down to an older version.

    Example: `whilst db downgrade 0001`
    """
    with _said():
        from storage import schema
        from storage.store import open_store

        with open_store(store, prepare=False) as opened, opened.engine("owner") as engine:
            schema.downgrade(engine, version)
            typer.echo(f"{opened.name} has schema version {version}")


@db.command()
def status(store: StoreOption = None) -> None:
    """Say where the store is, whether it is up, what it holds and for how long.

    Example: `whilst db status`
    """
    with _said():
        from storage import embedded, retention, version
        from storage.store import home_folder, open_store

        home = home_folder()
        if store is None and embedded.pid(home) is None:
            typer.echo(f"the store in {home} is down; it starts when it is needed")
            return
        with open_store(store, prepare=False) as opened, opened.engine("owner") as engine:
            found = version.of(opened.url("owner"))
            typer.echo(f"{opened.name} is up, schema version {found or 'none yet'}")
            if found != version.head():
                raise version.wrong(found, opened.name)
            with engine.connect() as connection:
                for line in retention.report(connection):
                    typer.echo(line)


@db.command()
def prune(
    keep: Annotated[
        list[str] | None,
        typer.Option("--keep", metavar="WHAT=DAYS", help="Set how long to keep; `ever`: no limit."),
    ] = None,
    dry: Annotated[bool, typer.Option("--dry-run", help="Only tell what would go.")] = False,
    store: StoreOption = None,
) -> None:
    """Drop what is older than the store's settings say, and set them.

    Kinds: late_facts, rejected_events, batches, delivery_attempts, history, answers, alerts, runs.
    With --dry-run nothing changes, settings neither.

    Example: `whilst db prune --keep history=90 --keep late_facts=30 --dry-run`
    """
    settings = dict(_setting(text) for text in keep or ())
    with _said():
        from storage import retention
        from storage.printing import size
        from storage.store import open_store

        with open_store(store) as opened, opened.engine("owner") as engine:
            if not dry:
                for what, days in settings.items():
                    retention.keep(engine, what, days)
            gone = retention.prune(engine, dry=dry, keeping=settings)
            for one in gone:
                verb = "would drop" if dry else "dropped"
                typer.echo(f"{verb} {size(one.bytes)} of {one.what} ({one.table})")
            if not gone:
                typer.echo("nothing is older than the settings say (`whilst db status`)")


def _setting(text: str) -> tuple[str, int | None]:
    what, _, days = text.partition("=")
    if days == "ever":
        return what, None
    found = re.fullmatch(r"(\d+)d?", days)
    if found is None:
        raise typer.BadParameter(f"{text!r}: write --keep history=90 or --keep history=ever")
    return what, int(found[1])


@db.command()
def diagram() -> None:
    """Draw the tables of the store as a Mermaid diagram.

    Example: `whilst db diagram > store.mmd`
    """
    from storage.diagram import mermaid

    typer.echo(mermaid(), nl=False)
