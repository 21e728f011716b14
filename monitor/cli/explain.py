"""`whilst explain`: what a program comes to."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from monitor.cli.programs import ProgramFile, failing, program_of

FORMATS = ("text", "json", "tree")


def register(app: typer.Typer) -> None:
    app.command()(explain)


def explain(
    program: ProgramFile,
    format: Annotated[str, typer.Option(help="text, json, or tree: which rules led where.")] = (
        "text"
    ),
) -> None:
    """Show what each query comes to: premise sets, key, window, delays, what decides an answer.

    Examples: `whilst explain farm.rules`, `whilst explain farm.rules --format tree`
    """
    from resolution.explain import explain as explanations
    from resolution.explain import sentences, tree

    if format not in FORMATS:
        typer.echo(f"error: --format {format} is not one of {', '.join(FORMATS)}", err=True)
        raise typer.Exit(2)
    with failing():
        found = explanations(program_of(program))
    if format == "json":
        typer.echo(json.dumps(found, ensure_ascii=False, indent=2))
        return
    for number, query in enumerate(found):
        if number:
            typer.echo("")
        if format == "text":
            for line in sentences(query):
                typer.echo(line)
            continue
        for premises in query["premise_sets"]:
            typer.echo(f"premise set {premises['number']}")
            for line in tree(premises["derivation"], "  "):
                typer.echo(line)
