"""Every example gives its expected answers by the reference, by the kernel, and on Spark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from monitor.cli import app
from monitor.programs import check_program
from resolution.premises import premise_sets
from resolution.printer import format
from resolution.reference import answers
from tests.examples.cases import ALL, EXAMPLES, Example, ordered

examples = pytest.mark.parametrize("example", ALL, ids=lambda example: example.folder.name)


def test_the_examples_are_those_that_the_list_shows() -> None:
    listed = (EXAMPLES / "README.md").read_text()
    assert len(ALL) == 6
    for example in ALL:
        assert f"({example.folder.name}/README.md)" in listed


@examples
def test_the_reference_gives_the_expected_answers(example: Example) -> None:
    assert example.by_reference() == example.expected()


@examples
def test_the_kernel_gives_the_expected_answers(example: Example) -> None:
    assert example.by_kernel() == example.expected()


@examples
def test_the_definition_gives_the_expected_answers(example: Example) -> None:
    """Straight from SEMANTICS, which knows of no steps and no kernel."""
    program, arrived = example.program, example.arrivals.by(example.tau)
    found = {
        (str(t.answer), tuple(sorted(map(str, t.hypotheses))), t.deadline(program.delays))
        for query in program.queries
        for t in answers(premise_sets(program, query), program.delays, arrived, example.tau)
    }
    assert found == {
        (line["answer"], tuple(sorted(line["hypotheses"])), line["deadline"])
        for line in example.expected()
    }


@examples
def test_trace_prints_the_expected_answers(example: Example) -> None:
    arguments = [str(example.rules), str(example.facts), "--at", str(example.tau)]
    done = CliRunner().invoke(app, ["trace", *arguments, "--format", "json"])
    assert done.exit_code == 0
    assert done.stdout == (example.folder / "expected.jsonl").read_text()


@examples
def test_it_has_late_and_out_of_order_arrivals(example: Example) -> None:
    assert example.arrivals.late
    assert [fact.arrival for fact in example.log] == sorted(fact.arrival for fact in example.log)
    assert [fact.time for fact in example.log] != sorted(fact.time for fact in example.log)


@examples
def test_it_shows_confirmed_and_pending_answers(example: Example) -> None:
    assert {line["status"] for line in example.expected()} == {"confirmed", "pending"}


@examples
def test_the_rules_are_without_a_warning_and_laid_out(example: Example) -> None:
    assert not check_program(example.rules).found
    assert format(example.rules.read_text()) == example.rules.read_text()


def statuses(name: str) -> dict[str, str]:
    """Written by hand below, so that a new snapshot cannot make a wrong answer right."""
    lines = map(json.loads, (EXAMPLES / name / "expected.jsonl").read_text().splitlines())
    return {f"{line['answer']}": line["status"] for line in lines}


def test_turbines_by_hand() -> None:
    assert statuses("turbines") == {
        "Malf(wt2, 0)": "confirmed",
        "Malf(wt7, 0)": "confirmed",  # the slow line: 0 arrived at 4, 1 at 5
        "Malf(wt4, 8)": "pending",
        "Malf(wt4, 9)": "pending",
        "Malf(wt7, 6)": "pending",  # until 11
    }  # not Malf(wt4, 3): the reading of 5 was late


def test_defects_by_hand() -> None:
    assert statuses("defects") == {
        "Defective(wt2, 0)": "pending",
        "Defective(wt3, 0)": "confirmed",  # 899 s apart
        "Defective(wt6, 0)": "confirmed",
    }  # not wt5: its one n/a was late


def test_logins_by_hand() -> None:
    confirmed = {a for a, status in statuses("logins").items() if status == "confirmed"}
    assert confirmed == {"Brute(ann, 30)", "Brute(cat, 35)", 'Spray("192.0.2.66", 41)'}


def test_intrusion_by_hand() -> None:
    confirmed = {a for a, status in statuses("intrusion").items() if status == "confirmed"}
    assert confirmed == {"Black(n1, 3)", "Black(n4, 8)"}


def test_short_stops_by_hand() -> None:
    """veh52: N10 P11 N12, N18 P19 M20, M20 P21 M22; veh39: M8 P9 P10 P11 M12, and M18 late."""
    confirmed = {a for a, status in statuses("short-stops").items() if status == "confirmed"}
    assert confirmed == {
        "ShortStop(veh39, 12)",
        "ShortStop(veh52, 12)",
        "ShortStop(veh52, 20)",
        "ShortStop(veh52, 22)",
    }


def test_deliveries_by_hand() -> None:
    confirmed = {a for a, status in statuses("deliveries").items() if status == "confirmed"}
    assert confirmed == {'OnTime("P-100", 29540770)', 'Heavy("P-101", harbour, 29540748)'}


def whilst(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", "from monitor.cli import main; main()", *arguments],
        cwd=folder,
        env={k: v for k, v in os.environ.items() if not k.startswith("WHILST_")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.spark
@pytest.mark.postgres
def test_spark_gives_the_expected_answers(tmp_path: Path) -> None:
    """Two examples into one store, by the commands that a person types.

    Each run starts a Java of its own; `tests/monitor` has all examples on a shared session.
    """
    for example in (e for e in ALL if e.folder.name in ("deliveries", "logins")):
        whilst(tmp_path, "run", str(example.rules), "--source", str(example.facts), "--once")
        columns = "query, answer, evidence, hypotheses, conditions, deadline"
        rows = json.loads(
            whilst(
                tmp_path,
                "sql",
                f"select 'pending' as status, {columns} from pending_answers "
                f"where program = '{example.rules.stem}' union all "
                f"select 'confirmed', {columns} from confirmed_answers "
                f"where program = '{example.rules.stem}'",
                "--format",
                "json",
            )
        )
        assert ordered({"tau": example.tau, **row} for row in rows) == example.expected()
