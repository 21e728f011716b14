"""`whilst lsp`: the language server, for editors."""

from __future__ import annotations

import typer


def register(app: typer.Typer) -> None:
    app.command()(lsp)


def lsp() -> None:
    """Serve an editor: mistakes as you type, premise sets on hover, formatting.

    Speaks the Language Server Protocol on standard input and output; an editor starts it.

    Example, in the settings of a language client: `whilst lsp`
    """
    try:
        from monitor.lsp import server
    except ModuleNotFoundError as error:
        typer.echo(f"error: {error.name} is missing; pip install pygls", err=True)
        raise typer.Exit(1) from None
    server().start_io()
