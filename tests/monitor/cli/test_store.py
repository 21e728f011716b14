"""Which store a command asks: that of the flag, else of the environment, else of the run's file."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from monitor.cli import app

_FILE = '[run]\nstore = "postgresql://127.0.0.1:1/of_the_file"\n'
_COMMANDS = (
    ["sql", "select 1"],
    ["db", "status"],
    ["db", "prune"],
    ["dashboard"],
    ["alerts", "list"],
)


@pytest.fixture(autouse=True)
def in_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WHILST_STORE", raising=False)
    (tmp_path / "whilst.toml").write_text(_FILE)
    return tmp_path


def said(*arguments: str) -> str:
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 1
    return done.stderr


@pytest.mark.parametrize("command", _COMMANDS, ids=" ".join)
def test_a_command_asks_the_store_that_the_run_writes(command: list[str]) -> None:
    assert "the store at 127.0.0.1/of_the_file does not answer" in said(*command)


def test_the_environment_and_the_flag_have_the_last_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WHILST_STORE", "postgresql://127.0.0.1:1/of_the_environment")
    assert "/of_the_environment does not" in said("sql", "select 1")
    flag = "postgresql://127.0.0.1:1/of_the_flag"
    assert "/of_the_flag does not" in said("sql", "select 1", "--store", flag)


def test_a_file_of_another_name(in_a_project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (in_a_project / "other.toml").write_text(_FILE.replace("file", "other"))
    monkeypatch.setenv("WHILST_CONFIG", "other.toml")
    assert "/of_the_other does not" in said("db", "status")


def test_a_file_that_is_wrong_is_told(in_a_project: Path) -> None:
    (in_a_project / "whilst.toml").write_text("[run]\nstore = 3\n")
    done = CliRunner().invoke(app, ["sql", "select 1"])
    assert done.exit_code == 2
    assert done.stderr == (
        "error: whilst.toml: [run] store must be a text, postgresql://user@host/database\n"
    )
