"""What a person meets who does not know the commands yet: help, and what is said about mistakes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from monitor.cli import app

PROGRAM = "stream p(x) delay 1.\nq(X, T) <- p(X, T).\nquery q(X, T).\n"


def _leaves(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if not hasattr(command, "commands"):
        yield path
        return
    for name, sub in command.commands.items():
        yield from _leaves(sub, (*path, name))


@pytest.mark.parametrize("path", list(_leaves(typer.main.get_command(app))), ids=" ".join)
def test_help_shows_an_example(path: tuple[str, ...]) -> None:
    told = CliRunner().invoke(app, [*path, "--help"]).stdout
    assert "Example" in told
    assert f"whilst {' '.join(path)}" in told.partition("Example")[2]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "p.rules").write_text(PROGRAM)
    (tmp_path / "facts.jsonl").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "code", "next_step"),
    [
        ("run p.rules --source facts.jsonl --webhook https://a.b/c", 1, "--webhook-secret"),
        ("run p.rules --source facts.jsonl --once --until noon", 1, "write a time point such as 4"),
        ("trace p.rules facts.jsonl --at noon", 2, "write a time point such as 4"),
        ("trace p.rules facts.jsonl --until -1", 2, "write a time point such as 4"),
    ],
)
def test_a_mistake_is_told_with_the_next_step(
    folder: Path, arguments: str, code: int, next_step: str
) -> None:
    done = CliRunner().invoke(app, arguments.split(), env={"COLUMNS": "200"})
    assert done.exit_code == code
    assert next_step in done.output
    assert isinstance(done.exception, SystemExit)
