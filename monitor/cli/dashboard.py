"""`whilst dashboard`: what is known, what may come and what it waits for, in a browser."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
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
    leashed: Annotated[bool, typer.Option("--leashed", hidden=True)] = False,
) -> None:
    """Watch the answers of a store in a browser.

    Example: `whilst dashboard --port 8600`
    """
    with _said():
        from dashboard.server import serve
        from dashboard.sign_in import NotSafe
        from storage.store import open_store

        with open_store(store) as opened:
            if leashed:
                _end_with_who_started_us()
            try:
                serve(opened.url("reader"), host, port, sign_in)
            except NotSafe as error:
                typer.echo(f"error: {error}", err=True)
                raise typer.Exit(1) from None


@contextlib.contextmanager
def beside(port: int | None, store: str | None) -> Iterator[None]:
    """A dashboard of the same store on that port, for as long as this lasts; None: no dashboard.

    A process of its own: Streamlit wants the main thread. It ends with us even if we are killed.
    """
    if port is None:
        yield
        return
    process = subprocess.Popen(
        [
            *(sys.executable, "-c", "from monitor.cli import main; main()"),
            *("dashboard", f"--port={port}", "--leashed"),
        ],
        env=os.environ if store is None else os.environ | {"WHILST_STORE": store},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C is for the run, which ends it in its turn
    )
    typer.echo(f"the dashboard is at http://127.0.0.1:{port}", err=True)
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)


def _end_with_who_started_us() -> None:
    """Our standard input ends when the process at its other end does."""
    import signal
    import threading

    def wait() -> None:
        sys.stdin.buffer.read()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, daemon=True).start()
