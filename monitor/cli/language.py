"""`whilst check` and `whilst fmt`: programs as texts."""

from __future__ import annotations

import difflib
import json
import os
import tempfile
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from monitor.programs import Checked
    from resolution.errors import Diagnostic, Lines
    from resolution.syntax import Source

Programs = Annotated[list[Path], typer.Argument(help="Program files.", metavar="PROGRAM")]


class Form(StrEnum):
    text = "text"
    json = "json"


def register(app: typer.Typer) -> None:
    app.command()(check)
    app.command()(fmt)


def check(
    programs: Programs,
    form: Annotated[
        Form, typer.Option("--format", help="text, or a JSON object a line for each mistake.")
    ] = Form.text,
) -> None:
    """Report all mistakes of programs: 0 if there is none, 1 if there are, 2 if unreadable.

    Example: `whilst check turbines.rules`
    """
    from monitor.programs import UnreadableFile, check_program

    errors = warnings = 0
    unreadable = False
    for path in programs:
        try:
            checked = check_program(path)
        except UnreadableFile as error:
            typer.echo(f"error: {error}", err=True)
            unreadable = True
            continue
        wrong = sum(diagnostic.severity == "error" for diagnostic, _ in checked.found)
        errors += wrong
        warnings += len(checked.found) - wrong
        if form is Form.json:
            _print_json(checked)
        else:
            _print_text(checked)
    if form is Form.text and not (unreadable and len(programs) == 1):
        told = f"{_count(errors, 'error')}, {_count(warnings, 'warning')}"
        typer.echo(f"{_count(len(programs), 'program')} checked: {told}")
    raise typer.Exit(2 if unreadable else 1 if errors else 0)


def _print_text(checked: Checked) -> None:
    from resolution.errors import SHOWN, render

    sources = _Sources()
    for diagnostic, source in checked.found[:SHOWN]:
        typer.echo(render(diagnostic, source, sources.lines(source)))
    if len(checked.found) > SHOWN:
        typer.echo(f"{checked.tree.source.name}: and {len(checked.found) - SHOWN} more")


def _print_json(checked: Checked) -> None:
    sources = _Sources()
    for diagnostic, source in checked.found:
        typer.echo(json.dumps(_object(diagnostic, source, sources.lines(source))))


def _object(diagnostic: Diagnostic, source: Source, lines: Lines) -> dict[str, object]:
    line, column = lines.place(diagnostic.span.start)
    end_line, end_column = lines.place(diagnostic.span.end)
    return {
        "file": source.name,
        "line": line,
        "column": column,
        "end_line": end_line,
        "end_column": end_column,
        "severity": diagnostic.severity,
        "message": diagnostic.message,
        "hint": diagnostic.hint,
    }


class _Sources:
    """The lines of each source, found once."""

    def __init__(self) -> None:
        self._lines: dict[int, Lines] = {}

    def lines(self, source: Source) -> Lines:
        from resolution.errors import Lines

        if id(source) not in self._lines:
            self._lines[id(source)] = Lines(source.text)
        return self._lines[id(source)]


def fmt(
    programs: Programs,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; 1 if a file would change.")
    ] = False,
    diff: Annotated[
        bool, typer.Option("--diff", help="Write nothing; show what would change.")
    ] = False,
) -> None:
    """Bring programs into the one layout, with their comments.

    Examples: `whilst fmt turbines.rules`, `whilst fmt --check *.rules`
    """
    from monitor.programs import UnreadableFile, read_text
    from resolution.errors import ProgramErrors
    from resolution.printer import format

    changed, failed = 0, 0
    for path in programs:
        try:
            before = read_text(path)
            after = format(before, str(path))
            if after != before:
                changed += 1
                if diff:
                    _print_diff(path, before, after)
                elif not check:
                    _replace(path, after)
                if not diff:
                    typer.echo(f"{'would format' if check else 'formatted'} {path}")
        except ProgramErrors as errors:
            typer.echo(str(errors), err=True)
            failed = max(failed, 1)
        except UnreadableFile as error:
            typer.echo(f"error: {error}", err=True)
            failed = 2
        except BrokenPipeError:  # `whilst fmt --diff … | head`: nothing is wrong with the file
            raise
        except OSError as error:
            typer.echo(f"error: {path}: cannot be written: {error.strerror}", err=True)
            failed = max(failed, 1)
    raise typer.Exit(failed or int(check and changed > 0))


def _print_diff(path: Path, before: str, after: str) -> None:
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), str(path), f"{path} (formatted)", lineterm=""
    )
    for line in lines:
        typer.echo(line)


def _replace(path: Path, text: str) -> None:
    """Write a file whole or not at all, keeping its permissions and what links to it."""
    target = path.resolve()
    with tempfile.NamedTemporaryFile("wb", dir=target.parent, delete=False) as file:
        try:
            file.write(text.encode())
            file.close()
            os.chmod(file.name, target.stat().st_mode)
            os.replace(file.name, target)
        except BaseException:
            os.unlink(file.name)
            raise


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
