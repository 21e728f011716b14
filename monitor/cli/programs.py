"""A program on the command line, and how a command ends that cannot go on."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from resolution.program import Program

ProgramFile = Annotated[Path, typer.Argument(help="The program file.", metavar="PROGRAM")]


def program_of(path: Path) -> Program:
    """The program in a file. Exits with 1 where it has mistakes, with 2 where it is not there."""
    from monitor.programs import UnreadableFile, check_program
    from resolution.errors import SHOWN, render
    from resolution.program import compile_program

    try:
        checked = check_program(path)
    except UnreadableFile as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2) from None
    errors = [(d, source) for d, source in checked.found if d.severity == "error"]
    for diagnostic, source in errors[:SHOWN]:
        typer.echo(render(diagnostic, source), err=True)
    if len(errors) > SHOWN:
        typer.echo(f"{path}: and {len(errors) - SHOWN} more", err=True)
    if errors:
        raise typer.Exit(1)
    return compile_program(checked.tree, checked.rigid)


@contextmanager
def failing() -> Iterator[None]:
    """What Whilst refuses is told, with exit code 1; a reader that left ends it in silence."""
    from resolution.errors import WhilstError

    try:
        yield
        sys.stdout.flush()
    except WhilstError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from None
    except BrokenPipeError:  # `whilst trace … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None
