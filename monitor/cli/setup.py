"""Commands for the start: is everything here, get what is not, make a project."""

from __future__ import annotations

import json
import shlex
from enum import StrEnum
from pathlib import Path
from typing import Annotated, NoReturn

import typer


class Format(StrEnum):
    text = "text"
    json = "json"


_MARKS = {
    "ok": ("ok", typer.colors.GREEN),
    "warning": ("note", typer.colors.YELLOW),
    "problem": ("PROBLEM", typer.colors.RED),
}


def register(app: typer.Typer) -> None:
    app.callback()(_whilst)
    app.command()(doctor)
    app.command()(init)
    app.command("setup-jars")(setup_jars)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"whilst {version('whilst')}")
        raise typer.Exit


def _whilst(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say the version.")
    ] = False,
) -> None:
    """Options of `whilst` itself; what it is for stands where `app` is made."""


def doctor(
    format: Annotated[Format, typer.Option("--format", help="A line a check, or JSON.")] = (
        Format.text
    ),
) -> None:
    """Say what is on this machine, and what to do about what is not.

    Ends with 1 if something is missing that Whilst cannot do without.

    Example: `whilst doctor --format json`
    """
    from dataclasses import asdict

    from monitor.setup.doctor import look

    whole = True
    for finding in look():
        whole &= finding.state != "problem"
        if format is Format.json:
            typer.echo(json.dumps(asdict(finding)))
            continue
        mark, colour = _MARKS[finding.state]
        typer.echo(typer.style(f"{mark:8}", fg=colour) + f"{finding.check:10} {finding.detail}")
        if finding.do:
            typer.echo(f"{'':19}→ {finding.do}")
    if not whole:
        raise typer.Exit(1)


def init(
    name: Annotated[Path, typer.Argument(help="The folder to make.", show_default=False)],
) -> None:
    """Make a small project: rules, sample facts, configuration.

    Example: `whilst init farm`
    """
    from monitor.setup import project
    from monitor.setup.places import SetupError

    try:
        made = project.make(name)
    except SetupError as error:
        _fail(error)
    for path in made:
        typer.echo(path)
    typer.echo(f"\nNext: cd {shlex.quote(str(name))} && whilst trace turbines.rules facts.jsonl")


def setup_jars(
    broker: Annotated[
        bool, typer.Option("--broker", help="A whole Kafka broker too, for tests.")
    ] = False,
) -> None:
    """Fetch the JVM parts: Spark's Kafka connector. In a clone, `make setup` has done it.

    Example: `whilst setup-jars`
    """
    from monitor.setup import jars
    from monitor.setup.places import SetupError

    sets: tuple[jars.JarSet, ...] = ("spark", "kafka") if broker else ("spark",)
    try:
        for jar_set in sets:
            jars.fetch(jar_set)
            typer.echo(f"{jar_set}: {len(jars.manifest(jar_set))} jars in {jars.folder(jar_set)}")
    except SetupError as error:
        _fail(error)


def _fail(error: Exception) -> NoReturn:
    typer.echo(f"error: {error}", err=True)
    raise typer.Exit(1)
