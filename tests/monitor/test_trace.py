"""`whilst trace`: what it reads, what it prints, and what it says of bad and late facts."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from monitor.cli import app

PROGRAM = """\
unit 1s.
stream Temp(device, level) delay 1.
stream Note(text: string, value) delay 1.
Flag(X, T) <- Temp(X, high, T), Temp(X, high, T+1).
Said(X, V, T) <- Note(X, V, T).
query Flag(X, T).
query Said(X, V, T).
"""
KEYS = ["tau", "query", "answer", "status", "evidence", "hypotheses", "conditions", "deadline"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "p.rules").write_text(PROGRAM)
    return tmp_path


def trace(folder: Path, *arguments: str, stdin: bytes | None = None) -> Result:
    command = ["trace", str(folder / "p.rules"), *arguments]
    return CliRunner().invoke(app, command, input=stdin)


def lines(result: Result) -> list[dict[str, Any]]:
    assert result.exit_code == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def temp(device: str, time: int, arrival: int | None = None) -> str:
    late = {} if arrival is None else {"arrival": arrival}
    return json.dumps({"fact": "Temp", "args": [device, "high"], "time": time, **late})


def write(folder: Path, *events: str, name: str = "facts.jsonl") -> str:
    path = folder / name
    path.write_text("".join(f"{event}\n" for event in events))
    return str(path)


# --- what it prints ------------------------------------------------------------------------------


def test_an_object_a_line_with_these_keys_in_this_order(folder: Path) -> None:
    found = lines(trace(folder, write(folder, temp("a", 0), temp("a", 1)), "--format", "json"))
    assert [list(line) for line in found] == [KEYS] * len(found)
    assert found[0] == {
        "tau": 0,
        "query": "Flag",
        "answer": "Flag(a, 0)",
        "status": "pending",
        "evidence": ["Temp(a, high, 0)"],
        "hypotheses": ["Temp(a, high, 1)"],
        "conditions": [],
        "deadline": 2,
    }
    assert [(line["tau"], line["answer"], line["status"]) for line in found] == [
        (0, "Flag(a, 0)", "pending"),
        (1, "Flag(a, 0)", "confirmed"),
        (1, "Flag(a, 1)", "pending"),
        (3, "Flag(a, 0)", "confirmed"),
    ]


def test_at_a_time_point(folder: Path) -> None:
    facts = write(folder, temp("a", 0), temp("a", 1))
    for tau, answers in {
        0: ["Flag(a, 0)"],
        2: ["Flag(a, 0)", "Flag(a, 1)"],
        9: ["Flag(a, 0)"],
    }.items():
        found = lines(trace(folder, facts, "--at", str(tau), "--format", "json"))
        assert [line["answer"] for line in found] == answers
        assert {line["tau"] for line in found} == {tau}
    instant = lines(trace(folder, facts, "--at", "1970-01-01T00:00:02.9Z", "--format", "json"))
    assert {line["tau"] for line in instant} == {2}


def test_nothing_before_the_first_arrival(folder: Path) -> None:
    facts = write(folder, temp("a", 5))
    assert lines(trace(folder, facts, "--at", "4", "--format", "json")) == []


def test_until_a_time_point(folder: Path) -> None:
    facts = write(folder, temp("a", 0), temp("a", 1), temp("a", 7))
    found = lines(trace(folder, facts, "--until", "2", "--format", "json"))
    assert {line["tau"] for line in found} == {0, 1}


def test_all_queries_whenever_one_of_them_changes(folder: Path) -> None:
    note = json.dumps({"fact": "Note", "args": ["x", 1], "time": 1})
    found = lines(trace(folder, write(folder, temp("a", 0), note), "--format", "json"))
    assert [(line["tau"], line["query"]) for line in found] == [
        (0, "Flag"),
        (1, "Flag"),
        (1, "Said"),
        (2, "Said"),
    ]


def test_a_table_for_people_plain_in_a_pipe(folder: Path) -> None:
    result = trace(folder, write(folder, temp("[red]", 0), temp("[red]", 1)))
    assert result.exit_code == 0
    assert "τ = 1" in result.stdout
    assert 'Temp("[red]", high, 0), Temp("[red]", high, 1)' in result.stdout
    assert "\x1b" not in result.stdout


def test_colour_on_a_terminal(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[" in trace(folder, write(folder, temp("a", 0))).stdout


def test_an_atom_a_line_on_a_terminal(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eighty columns hold an atom in each column of the table, and not two."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    facts = write(folder, temp("a", 0), temp("a", 1))
    lines = trace(folder, facts, "--at", "1").stdout.splitlines()
    at = next(n for n, line in enumerate(lines) if "Temp(a, high, 0)" in line)
    assert "Temp(a, high, 1)" not in lines[at]
    assert "Temp(a, high, 1)" in lines[at + 1]


def test_what_is_empty_is_said(folder: Path) -> None:
    assert "τ = 2: no answers" in trace(folder, write(folder, temp("a", 0))).stdout
    assert trace(folder, write(folder)).stdout == ""


# --- bad and late facts --------------------------------------------------------------------------

BAD = {
    "not json": "not JSON",
    "[1]": "not a fact",
    '{"fact": "Temp", "args": ["a", "high"]}': '"time" is missing',
    '{"fact": "Flag", "args": ["a"], "time": 0}': "not a stream predicate",
    '{"fact": "Temp", "args": ["a"], "time": 0}': "2 fields",
    '{"fact": "Temp", "args": ["a", null], "time": 0}': "null",
    '{"fact": "Temp", "args": ["a", "high"], "time": -1}': "count from 0",
    '{"fact": "Temp", "args": ["a", "high"], "time": 3, "arrival": 2}': "before its own",
    '{"fact": "Note", "args": [1, 1], "time": 0}': "type string",
    '{"fact": "Temp", "device": "a", "time": 0}': "lacks level",
    '{"fact": "Temp", "fact": "Temp", "args": ["a", "b"], "time": 0}': "stands twice",
}


def test_bad_facts_are_reported_by_line_and_reason_and_do_not_stop_it(folder: Path) -> None:
    facts = write(folder, *BAD, temp("a", 0))
    result = trace(folder, facts, "--format", "json")
    assert len(lines(result)) == 1
    told = result.stderr.splitlines()
    for number, (line, reason) in enumerate(zip(told, BAD.values(), strict=False), start=1):
        assert line.startswith(f"{facts}:{number}: ")
        assert reason in line
    assert told[-1] == f"rejected events: {len(BAD)}, late facts: 0"


def test_strict_stops_at_bad_facts_after_naming_all_of_them(folder: Path) -> None:
    facts = write(folder, "x", temp("a", 0), "y")
    result = trace(folder, facts, "--format", "json", "--strict")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert f"{facts}:1: " in result.stderr
    assert f"{facts}:3: " in result.stderr


def test_strict_has_nothing_against_late_facts(folder: Path) -> None:
    assert trace(folder, write(folder, temp("a", 0, 5)), "--strict").exit_code == 0


def test_late_facts_are_named_and_counted(folder: Path) -> None:
    facts = write(folder, temp("a", 0), temp("a", 1, 3))
    result = trace(folder, facts, "--format", "json")
    assert len(lines(result)) == 1
    assert result.stderr.splitlines() == [
        f"{facts}:2: Temp(a, high, 1) is late: it arrived at 3, its bound was 2",
        "rejected events: 0, late facts: 1",
    ]


# --- files ---------------------------------------------------------------------------------------


def test_gzip_and_standard_input_and_several_files(folder: Path) -> None:
    plain = f"{temp('a', 0)}\n".encode()
    packed = gzip.compress(f"{temp('a', 1)}\n".encode())
    (folder / "facts.jsonl.gz").write_bytes(packed)
    (folder / "plain.jsonl").write_bytes(plain)
    both = [str(folder / "plain.jsonl"), str(folder / "facts.jsonl.gz"), "--format", "json"]
    expected = lines(trace(folder, *both))
    assert "confirmed" in {line["status"] for line in expected}
    assert (
        lines(trace(folder, str(folder / "plain.jsonl"), "-", "--format", "json", stdin=packed))
        == expected
    )
    assert (
        lines(trace(folder, str(folder / "facts.jsonl.gz"), "-", "--format", "json", stdin=plain))
        == expected
    )


def test_csv_with_a_header(folder: Path) -> None:
    facts = write(
        folder,
        "fact,device,level,text,value,time,arrival",
        "Temp,a,high,,,0,",
        'Temp,a,"high",,,1,2',
        "Note,,,12,7.0,3,",
        "Note,,,,x,4,",
        "Temp,a,,,,5,",
        "Temp,a,high",
        'Temp,"a,high,,,0,',
        "",
        name="facts.csv",
    )  # fmt: skip
    result = trace(folder, facts, "--at", "9", "--format", "json")
    assert [line["answer"] for line in lines(result)] == [
        "Flag(a, 0)",
        'Said("12", 7, 3)',
        'Said("", x, 4)',
    ]
    told = result.stderr.splitlines()
    assert told[0] == f"{facts}:6: Temp lacks level"
    assert told[1] == f"{facts}:7: the header has 7 columns, the event 3"
    assert told[2].startswith(f"{facts}:8: not CSV: ")


def test_csv_in_gzip_and_without_a_header(folder: Path) -> None:
    packed = folder / "facts.csv.gz"
    packed.write_bytes(gzip.compress(b"fact,device,level,time\nTemp,a,high,1970-01-01T00:00:00Z\n"))
    assert len(lines(trace(folder, str(packed), "--at", "0", "--format", "json"))) == 1
    result = trace(folder, write(folder, "Temp,a,high,0", name="bare.csv"))
    assert result.exit_code == 1
    assert "bare.csv:1: a CSV file has a header" in result.stderr


def test_long_lines_wrong_bytes_and_empty_lines(folder: Path) -> None:
    facts = folder / "facts.jsonl"
    event = temp("a", 0).encode()
    long = b'{"fact": "' + b"x" * 10_000_000 + b'"}'
    wide = b'"' + "é".encode() * 1_000_000 + b'"'
    facts.write_bytes(
        b"\n".join([b"\xef\xbb\xbf" + event, long, b"", b"\xff\xfe", b"  ", wide, event + b"\r"])
    )
    result = trace(folder, str(facts), "--format", "json")
    assert len(lines(result)) == 1
    told = result.stderr.splitlines()
    assert told == [
        f"{facts}:2: the event is longer than 1,000,000 characters",
        f"{facts}:4: not UTF-8 at byte 1",
        f"{facts}:6: the event is longer than 1,000,000 characters",
        "rejected events: 3, late facts: 0",
    ]


def test_files_that_cannot_be_read(folder: Path) -> None:
    cut = folder / "cut.gz"
    cut.write_bytes(gzip.compress(temp("a", 0).encode() * 99)[:-9])
    for name in ("none.jsonl", ".", "cut.gz"):
        result = trace(folder, str(folder / name))
        assert result.exit_code == 1
        assert result.stderr.startswith("error: ")
        assert len(result.stderr.splitlines()) == 1


# --- usage ---------------------------------------------------------------------------------------


def test_wrong_usage(folder: Path) -> None:
    facts = write(folder, temp("a", 0))
    for arguments in (
        [facts, "--at", "soon"],
        [facts, "--at", "-3"],
        [facts, "--at", "1", "--until", "2"],
        [facts, "--format", "xml"],
        [],
    ):
        assert trace(folder, *arguments).exit_code == 2, arguments


def test_a_program_with_mistakes_is_not_traced(folder: Path) -> None:
    (folder / "p.rules").write_text("stream A() delay 1. query B(T).")
    result = trace(folder, write(folder))
    assert result.exit_code == 1
    assert "p.rules:1:" in result.stderr


def test_lines_are_written_as_they_are_found(folder: Path) -> None:
    """A reader gets the first lines of a trace that never would fit into memory, and may leave."""
    facts = write(folder, *(temp(f"d{n}", n) for n in range(3_000)))
    command = [sys.executable, "-c", "from monitor.cli import main; main()", "trace"]
    process = subprocess.Popen(
        [*command, str(folder / "p.rules"), facts, "--format", "json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert isinstance(process.stdout, io.BufferedReader)
    assert isinstance(process.stderr, io.BufferedReader)
    assert json.loads(process.stdout.readline())["tau"] == 0
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait() == 0
