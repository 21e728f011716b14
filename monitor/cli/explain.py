"""`whilst explain`: how the queries of a program are answered."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated

import typer

from monitor.cli.programs import ProgramFile, failing, program_of


class Form(StrEnum):
    text = "text"
    json = "json"
    tree = "tree"


def register(app: typer.Typer) -> None:
    app.command()(explain)


def explain(
    program_file: ProgramFile,
    form: Annotated[
        Form,
        typer.Option("--format", help="Words, a JSON object, or the rules behind each set."),
    ] = Form.text,
) -> None:
    """Show how queries are answered: premise sets, keys, windows, delays, what decides and when.

    Example: `whilst explain turbines.rules`
    """
    from resolution.explain import as_text, as_tree, rules
    from resolution.explain import explain as explained_queries

    program = program_of(program_file)
    with failing():
        queries = explained_queries(program)
        if form is Form.json:
            whole = {"program": program.source.name, "rules": rules(program), "queries": queries}
            typer.echo(json.dumps(whole, ensure_ascii=False, indent=2))
        else:
            write = as_text if form is Form.text else as_tree
            typer.echo("\n".join(map(write, queries)), nl=False)
