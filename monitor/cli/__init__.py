"""The command `whilst`. Each module here registers one group of commands."""

from __future__ import annotations

import importlib

import typer

app = typer.Typer(
    name="whilst",
    help="Answers while you wait: which hold, which may still come, and what each waits for.\n\n"
    "Example: `whilst init farm`",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)

_GROUPS = (
    "language",
    "explain",
    "trace",
    "run",
    "send",
    "store",
    "setup",
    "lsp",
    "alerts",
    "dashboard",
    "bench",
    "demo",
)

for _name in _GROUPS:
    importlib.import_module(f"monitor.cli.{_name}").register(app)


def main() -> None:
    app()
