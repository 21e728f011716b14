"""Program files, and the CSV files beside them."""

from __future__ import annotations

from pathlib import Path

import pytest

from monitor import programs
from monitor.programs import UnreadableFile, check_program, read_program
from resolution.errors import ProgramErrors

PROGRAM = """\
stream S(x) delay 0.
rigid Near(a, n: int, s: string) from "near.csv".
A(X, T) <- S(X, T), Near(X, _, _).
query A(X, T).
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "a.rules"
    path.write_text(PROGRAM, encoding="utf-8")
    return path


def rows(program: Path, data: str | bytes) -> tuple[tuple[object, ...], ...]:
    data = data.encode() if isinstance(data, str) else data
    (program.parent / "near.csv").write_bytes(data)
    return read_program(program)[1]["Near"]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("wt1,1,x\n", [("wt1", 1, "x")]),
        ("a,n,s\nwt1,1,x\n", [("wt1", 1, "x")]),
        ("a, n, s\r\nwt1, 1, x\r\n", [("wt1", 1, "x")]),
        ("n,a,s\n", None),
        ("7,1.0,7\n", [(7, 1, "7")]),
        ("-2.5e0,-1,-1\n", [(-2.5, -1, "-1")]),
        ('"a ""b""\nc",1,"x,y"\n', [('a "b"\nc', 1, "x,y")]),
        ("wt1,1,x\n\nwt1,1,x", [("wt1", 1, "x")]),
        (b"\xef\xbb\xbfwt1,1,x", [("wt1", 1, "x")]),
        ("", []),
    ],
)
def test_rows(program: Path, data: str | bytes, expected: list[tuple[object, ...]] | None) -> None:
    if expected is None:
        with pytest.raises(ProgramErrors):
            rows(program, data)
    else:
        assert rows(program, data) == tuple(expected)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ("wt1,1,x\nwt2,1\n", "near.csv:2:1: error: the row has 2 cells, `Near` has 3 fields"),
        ("wt1,one,x\n", "near.csv:1:1: error: `one` is no number, and `n` is int"),
        ("wt1,1.5,x\n", "near.csv:1:1: error: `1.5` is not whole, and `n` is int"),
        ("1e999,1,x\n", "near.csv:1:1: error: `1e999` is too large a number"),
        ('"a\nb",1,x\nwt2\n', "near.csv:3:1: error: the row has 1 cell"),
        ('wt1,1,"x', "near.csv:1:1: error: this is not CSV"),
        (b"wt1,1,x\nwt\xff,1,x", "near.csv:2:3: error: byte 10 (0xff) is not UTF-8"),
        ("wt1,1," + "x" * 200_000, "near.csv:1:1: error: this is not CSV: field larger than"),
        ("9" * 5000 + ",1,x", "is too large a number"),
    ],
)
def test_wrong_rows(program: Path, data: str | bytes, told: str) -> None:
    with pytest.raises(ProgramErrors) as caught:
        rows(program, data)
    assert told in str(caught.value)
    found = check_program(program).found
    assert [d for d, _ in found if d.severity == "error"] == list(caught.value.diagnostics)


def test_a_missing_file_is_told_at_its_declaration(program: Path) -> None:
    with pytest.raises(ProgramErrors) as caught:
        read_program(program)
    assert "a.rules:2:1: error: the rows of `Near` cannot be read: no such file" in str(
        caught.value
    )


@pytest.mark.parametrize("name", [".", "\\u0000", "x" * 5000])
def test_a_name_that_is_no_file(program: Path, name: str) -> None:
    program.write_text(PROGRAM.replace("near.csv", name), encoding="utf-8")
    with pytest.raises(ProgramErrors, match="cannot be read"):
        read_program(program)


def test_everything_wrong_is_told_at_once(program: Path) -> None:
    program.write_text(PROGRAM + "query B(X, T).\nquery.\n", encoding="utf-8")
    (program.parent / "near.csv").write_text("1,2\n", encoding="utf-8")
    found = check_program(program).found
    assert [source.name.rpartition("/")[2] for _, source in found] == [
        "a.rules",
        "a.rules",
        "near.csv",
    ]


def test_unreadable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in (tmp_path, tmp_path / "none.rules"):
        with pytest.raises(UnreadableFile, match="cannot be read"):
            check_program(path)
    large = tmp_path / "large.rules"
    monkeypatch.setattr(programs, "LARGEST", 10)
    large.write_bytes(b"%" * 11)
    with pytest.raises(UnreadableFile, match="larger than"):
        check_program(large)
