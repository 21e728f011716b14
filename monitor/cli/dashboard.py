"""`whilst dashboard`: what is known, what may come and what it waits for, in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from monitor.cli.store import StoreOption, _said


def register(app: typer.Typer) -> None:
    app.command()(dashboard)


def dashboard(
    store: StoreOption = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; one that others reach needs --sign-in.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.", min=1, max=65535)] = 8501,
    sign_in: Annotated[
        Path | None,
        typer.Option(
            "--sign-in", metavar="FILE", help="Show it to none but who signs in by OpenID Connect."
        ),
    ] = None,
) -> None:
    """Watch the answers of a store in a browser."""
    with _said():
        from dashboard.server import serve
        from dashboard.sign_in import NotSafe
        from storage.store import open_store

        with open_store(store) as opened:
            try:
                serve(opened.url("reader"), host, port, sign_in)
            except NotSafe as error:
                typer.echo(f"error: {error}", err=True)
                raise typer.Exit(1) from None
