"""`whilst check` and `whilst fmt`, as they are called."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from monitor.cli import app

GOOD = "stream S(x) delay 0.\nquery S(X, T).\n"
UNTIDY = "stream S( x )delay 0. % a\nquery S(X,T).\n"
BAD = "stream S(x) delay 0.\nquery R(X, T).\nquery S(X T).\n"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in (("good", GOOD), ("untidy", UNTIDY), ("bad", BAD)):
        (tmp_path / f"{name}.rules").write_text(text, encoding="utf-8")
    (tmp_path / "binary.rules").write_bytes(b"\x7fELF\xff\x00")
    return tmp_path


def whilst(*arguments: str) -> Result:
    result = CliRunner().invoke(app, arguments)
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


def test_check_clean(files: Path) -> None:
    result = whilst("check", "good.rules")
    assert (result.exit_code, result.stdout) == (0, "1 program checked: 0 errors, 0 warnings\n")


def test_check_warnings_are_no_mistakes(files: Path) -> None:
    (files / "warn.rules").write_text(f"{GOOD}stream Idle(x) delay 0.\n", encoding="utf-8")
    result = whilst("check", "warn.rules")
    assert result.exit_code == 0
    assert result.stdout.endswith("0 errors, 1 warning\n")


def test_check_mistakes(files: Path) -> None:
    result = whilst("check", "good.rules", "bad.rules", "binary.rules")
    assert result.exit_code == 1
    assert "bad.rules:2:7: error: `R` cannot be asked for" in result.stdout
    assert "bad.rules:3:11: error: expected `,` or `)`, found `T`" in result.stdout
    assert "binary.rules:1:5: error: byte 4 (0xff) is not UTF-8" in result.stdout
    assert result.stdout.endswith("3 programs checked: 3 errors, 0 warnings\n")


def test_check_json(files: Path) -> None:
    result = whilst("check", "bad.rules", "--format", "json")
    first, second = map(json.loads, result.stdout.splitlines())
    assert result.exit_code == 1
    assert first == {
        "file": "bad.rules",
        "line": 2,
        "column": 7,
        "end_line": 2,
        "end_column": 8,
        "severity": "error",
        "message": "`R` cannot be asked for: nothing defines it",
        "hint": None,
    }
    assert second["line"] == 3


@pytest.mark.parametrize(
    "arguments",
    [
        ("check",),
        ("check", "none.rules"),
        ("check", "good.rules", "."),
        ("check", "good.rules", "--format", "xml"),
        ("fmt",),
        ("fmt", "none.rules"),
    ],
)
def test_wrong_usage(files: Path, arguments: tuple[str, ...]) -> None:
    result = whilst(*arguments)
    assert result.exit_code == 2
    assert result.stderr


def test_fmt_writes(files: Path) -> None:
    result = whilst("fmt", "untidy.rules", "good.rules")
    assert (result.exit_code, result.stdout) == (0, "formatted untidy.rules\n")
    assert (files / "untidy.rules").read_text(encoding="utf-8") == (
        "stream S(x) delay 0.  % a\nquery S(X, T).\n"
    )
    assert whilst("fmt", "--check", "untidy.rules").exit_code == 0


def test_fmt_keeps_links_and_permissions(files: Path) -> None:
    (files / "untidy.rules").chmod(0o640)
    (files / "link.rules").symlink_to("untidy.rules")
    assert whilst("fmt", "link.rules").exit_code == 0
    assert (files / "link.rules").is_symlink()
    assert (files / "untidy.rules").stat().st_mode & 0o777 == 0o640
    assert sorted(path.name for path in files.iterdir()) == [
        "bad.rules",
        "binary.rules",
        "good.rules",
        "link.rules",
        "untidy.rules",
    ]


@pytest.mark.parametrize(("option", "code"), [("--check", 1), ("--diff", 0)])
def test_fmt_without_writing(files: Path, option: str, code: int) -> None:
    result = whilst("fmt", option, "untidy.rules", "good.rules")
    assert result.exit_code == code
    assert (files / "untidy.rules").read_text(encoding="utf-8") == UNTIDY
    if option == "--diff":
        assert "-query S(X,T).\n" in result.stdout
        assert "+query S(X, T).\n" in result.stdout


def test_fmt_with_a_reader_that_leaves(files: Path) -> None:
    """As `whilst fmt --diff … | head -1`: what is wrong is not the file."""
    lines = "".join(f"% {n}\n  p{n}(X,T) <- S(X,T).\n" for n in range(5_000))
    (files / "long.rules").write_text(GOOD + lines, encoding="utf-8")
    command = [sys.executable, "-c", "from monitor.cli import main; main()"]
    command += ["fmt", "--diff", "long.rules"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.readline()
        running.stdout.close()
        assert running.stderr.read() == b""


def test_fmt_leaves_what_it_cannot_read(files: Path) -> None:
    result = whilst("fmt", "bad.rules", "binary.rules", "untidy.rules")
    assert result.exit_code == 1
    assert "bad.rules:3:11: error:" in result.stderr
    assert (files / "bad.rules").read_text(encoding="utf-8") == BAD
    assert (files / "untidy.rules").read_text(encoding="utf-8") != UNTIDY
