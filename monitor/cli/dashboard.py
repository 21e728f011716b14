"""`whilst dashboard`: what is known, what may come and what it waits for, in a browser."""

from __future__ import annotations

from typing import Annotated

import typer

from monitor.cli.store import StoreOption, _said


def register(app: typer.Typer) -> None:
    app.command()(dashboard)


def dashboard(
    store: StoreOption = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; others than this machine's need sign-in.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.", min=1, max=65535)] = 8501,
) -> None:
    """Watch the answers of a store in a browser."""
    with _said():
        from dashboard.server import serve
        from storage.store import open_store

        with open_store(store) as opened:
            typer.echo(f"the dashboard of {opened.name} is at http://{host}:{port}")
            serve(opened.url("reader"), host, port)
