"""Golden cases: a program, a log, and what `whilst trace` prints, worked out by hand.

Each folder of `tests/golden` says in its program where it comes from. Every case is run by the
command, by the steps and by the definition.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from monitor.cli import app
from monitor.programs import read_program
from resolution import reference
from resolution.facts import Arrivals, Fact, RejectedEvent, read_event
from resolution.incremental import Incremental
from resolution.lives import steps
from resolution.premises import premise_sets
from resolution.program import Program, compile_program
from resolution.triples import Triple, by_time

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
CASES = sorted(folder for folder in GOLDEN.iterdir() if (folder / "expected.jsonl").exists())

Line = dict[str, Any]
golden = pytest.mark.parametrize("folder", CASES, ids=lambda folder: folder.name)


def test_there_are_golden_cases() -> None:
    assert len(CASES) >= 18


@golden
def test_a_case_says_where_it_comes_from(folder: Path) -> None:
    assert (folder / "program.rules").read_text().startswith("% ")


@golden
def test_trace_prints_what_is_expected(folder: Path) -> None:
    files = [str(folder / "program.rules"), str(folder / "facts.jsonl")]
    result = CliRunner().invoke(app, ["trace", *files, "--format", "json"])
    assert result.exit_code == 0, result.output
    assert ordered(map(json.loads, result.stdout.splitlines())) == expected(folder)


@golden
def test_trace_at_a_time_point_prints_what_holds_then(folder: Path) -> None:
    """At the τ of a change, the answers of that τ; a point before the next one, the same."""
    lines = expected(folder)
    taus = sorted({line["tau"] for line in lines})
    files = [str(folder / "program.rules"), str(folder / "facts.jsonl")]
    for tau in taus:
        options = ["--at", str(tau), "--format", "json"]
        result = CliRunner().invoke(app, ["trace", *files, *options])
        found = ordered(map(json.loads, result.stdout.splitlines()))
        assert found == [line for line in lines if line["tau"] == tau]


@golden
def test_the_definition_gives_what_is_expected(folder: Path) -> None:
    program, arrivals = loaded(folder)
    sets = [premise_sets(program, query) for query in program.queries]

    def at(tau: int) -> list[Triple]:
        arrived = arrivals.by(tau)
        return [t for of in sets for t in reference.answers(of, program.delays, arrived, tau)]

    assert ordered(traced(program, arrivals, at)) == expected(folder)


@golden
def test_the_steps_give_what_is_expected(folder: Path) -> None:
    program, arrivals = loaded(folder)
    states = [Incremental(premise_sets(program, q), program.delays) for q in program.queries]
    held = {
        tau: [triple for state in states for triple in state.answers()]
        for tau, _ in steps(states, arrivals.first)
    }

    def at(tau: int) -> list[Triple]:
        known = [before for before in held if before <= tau]
        return held[known[-1]] if known else []

    assert ordered(traced(program, arrivals, at)) == expected(folder)


def expected(folder: Path) -> list[Line]:
    return ordered(map(json.loads, (folder / "expected.jsonl").read_text().splitlines()))


def ordered(lines: Iterator[Line]) -> list[Line]:
    return sorted(lines, key=lambda line: json.dumps(line, sort_keys=True))


def loaded(folder: Path) -> tuple[Program, Arrivals]:
    program = compile_program(*read_program(folder / "program.rules"))
    return program, Arrivals.of(_facts(folder / "facts.jsonl", program), program.delays)


def _facts(path: Path, program: Program) -> Iterator[Fact]:
    for line in path.read_text().splitlines():
        try:
            yield read_event(line, program)
        except RejectedEvent:
            continue


def traced(
    program: Program, arrivals: Arrivals, at: Callable[[int], list[Triple]]
) -> Iterator[Line]:
    """The lines of `trace`, from nothing but the answers at each τ."""
    first, last = min(arrivals.first.values()), max(arrivals.first.values())
    before: set[str] = set()
    for tau in range(first, last + 80):
        lines = [_line(program, triple) for triple in at(tau)]
        now = {json.dumps(line) for line in lines}
        if now != before:
            yield from ({"tau": tau, **line} for line in lines)
        before = now


def _line(program: Program, triple: Triple) -> Line:
    return {
        "query": triple.premises.query.name,
        "answer": str(triple.answer),
        "status": "confirmed" if triple.confirmed else "pending",
        "evidence": [str(atom) for atom in by_time(triple.evidence)],
        "hypotheses": [str(atom) for atom in by_time(triple.hypotheses)],
        "conditions": [str(condition) for condition in triple.conditions],
        "deadline": triple.deadline(program.delays),
    }


# --- the short stops of a public data set --------------------------------------------------------


def test_short_stops() -> None:
    """All 1,263 of them, and those that a plain reading of the task finds."""
    folder = GOLDEN / "short-stops"
    files = [str(folder / "program.rules"), str(folder / "facts.jsonl.gz")]
    result = CliRunner().invoke(app, ["trace", *files, "--at", "400", "--format", "json"])
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert {line["status"] for line in lines} == {"confirmed"}
    assert len(lines) == 1_263
    assert {line["answer"] for line in lines} == set(_short_stops(folder / "facts.jsonl.gz"))


def _short_stops(path: Path) -> Iterator[str]:
    inside: set[tuple[str, int]] = set()
    outside: set[tuple[str, int]] = set()
    with gzip.open(path, "rt") as file:
        for event in map(json.loads, file):
            there = inside if event["fact"] == "Pos" else outside
            there.add((event["args"][0], event["time"]))
    for vehicle, time in outside:
        for k in (1, 2, 3, 4):
            before = all((vehicle, time - step) in inside for step in range(1, k + 1))
            if before and (vehicle, time - k - 1) in outside:
                yield f"Stop({vehicle}, {time})"
