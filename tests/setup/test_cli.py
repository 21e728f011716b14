"""`whilst doctor`, `init`, `setup-jars` and `--version` as a person types them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from monitor.cli import setup
from monitor.setup import jars

app = typer.Typer()
setup.register(app)


def whilst(*arguments: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, arguments)
    return done.exit_code, done.stdout, done.stderr


def test_version() -> None:
    assert whilst("--version") == (0, f"whilst {version('whilst')}\n", "")


def test_doctor_is_content_after_setup_and_says_so_a_line_a_check() -> None:
    code, out, _ = whilst("doctor")
    assert code == 0
    assert "java" in out
    assert "PROBLEM" not in out


def test_doctor_ends_with_1_and_the_command_where_a_part_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WHILST_JARS", str(tmp_path))
    code, out, _ = whilst("doctor", "--format", "json")
    found = {line["check"]: line for line in map(json.loads, out.splitlines())}
    assert code == 1
    assert found["connector"]["state"] == "problem"
    assert "setup" in found["connector"]["do"]


def test_init_tells_the_next_command_and_refuses_a_second_time(tmp_path: Path) -> None:
    code, out, _ = whilst("init", str(tmp_path / "a farm"))
    assert code == 0
    assert f"cd '{tmp_path}/a farm' && whilst trace turbines.rules facts.jsonl" in out
    code, out, err = whilst("init", str(tmp_path / "a farm"))
    assert (code, out) == (1, "")
    assert err.startswith("error: ")
    assert "another name" in err


def test_setup_jars_finds_everything_there() -> None:
    code, out, _ = whilst("setup-jars", "--broker")
    assert code == 0
    assert str(jars.folder("spark")) in out
    assert str(jars.folder("kafka")) in out


def test_setup_jars_without_a_way_out_is_one_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WHILST_JARS", str(tmp_path))
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=9")
    code, out, err = whilst("setup-jars")
    assert (code, out) == (1, "")
    assert "is the network there?" in err
    assert not list((tmp_path / "spark").iterdir())


def test_the_command_is_installed_and_offers_completion() -> None:
    command = shutil.which("whilst", path=str(Path(sys.executable).parent))
    assert command is not None
    done = subprocess.run([command, "--help"], capture_output=True, text=True)
    assert done.returncode == 0
    assert "--install-completion" in done.stdout
