"""What `explain` says of a program, as data, in words and as a tree."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from monitor.cli import app
from resolution.explain import as_text, as_tree, explain
from resolution.program import load

TURBINES = """\
stream Temp(device, level) delay 1.
delay Temp(wt7, _) = 4.
Flag(X, T)   <- Temp(X, high, T).
Cool(X, T+1) <- Flag(X, T), Flag(X, T+1).
Shdn(X, T+1) <- Cool(X, T), Flag(X, T+1).
Malf(X, T-2) <- Shdn(X, T).
query Malf(X, T).
"""
LOGINS = """\
stream Login(user, result) delay 5.
Brute(U, T2) <- Login(U, fail, T1), Login(U, success, T2), T1 < T2, T2 <= T1+60.
query Brute(U, T).
"""
NEAR = """\
stream Temp(device) delay 1.
rigid Near(a, b).
Near(w1, w2).
Both(X, Y, T) <- Temp(X, T), Near(X, Y), Temp(Y, T+1).
query Both(X, Y, T).
"""


def only(text: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The explanation of a program with one query, and that of its one premise set."""
    (query,) = explain(load(text))
    (premises,) = query["premise_sets"]
    return query, premises


def test_atoms_with_their_delays_and_closings() -> None:
    _, premises = only(TURBINES)
    assert premises["atoms"] == [
        {"atom": f"Temp(X, high, {time})", "delay": 4, "least_delay": 1, "from": n, "to": n,
         "closes": closes}
        for n, (time, closes) in enumerate([("T", "T+4"), ("T+1", "T+5"), ("T+2", "T+6")])
    ]  # fmt: skip


def test_what_decides_an_answer_and_when() -> None:
    query, premises = only(TURBINES.replace("delay Temp(wt7, _) = 4.\n", ""))
    assert premises["decided"] == {"at": "T+3", "after": 3, "by": ["Temp(X, high, T+2)"]}
    said = "an answer at T is decided at the latest at T+3: when Temp(X, high, T+2) closes"
    assert premises["says"] == said
    assert query["decided"] == 3


def test_key_window_and_group() -> None:
    query, premises = only(TURBINES)
    assert premises["key"] == ["X", "T"]
    assert premises["window"] == query["window"] == {"from": 0, "to": 2}
    assert query["group"] == {"key": ["X"], "block": 16, "reach": 5}
    assert premises["warnings"] == query["warnings"] == []


def test_a_window_is_as_wide_as_its_comparisons() -> None:
    _, premises = only(LOGINS)
    assert premises["window"] == {"from": -60, "to": 0}
    assert premises["conditions"] == ["T1 < T", "T <= T1+60"]
    assert premises["decided"] == {"at": "T+5", "after": 5, "by": ["Login(U, success, T)"]}
    assert premises["key"] == ["U"]


def test_a_time_point_in_a_rule_closes_by_itself() -> None:
    text = "stream A() delay 1. stream B() delay 2. P(T) <- A(T), B(7). query P(T)."
    _, premises = only(text)
    assert premises["decided"] == {"at": "T+1 or 9", "after": None, "by": ["A(T)", "B(7)"]}
    assert "at T+1 or 9, whichever is later" in premises["says"]


def test_what_never_closes_is_said() -> None:
    rule = 'D(X, 0) <- Temp(X, high, T1), Temp(X, "n/a", T2).'
    text = f"stream Temp(x, l) delay 1. {rule} query D(X, T)."
    query, premises = only(text)
    assert query["decided"] is None
    assert premises["decided"] is None
    assert query["group"]["block"] is None
    assert premises["window"] == {"from": 0, "to": None}
    assert premises["says"].startswith("an answer at 0 may stay pending for ever")
    assert len([w for w in premises["warnings"] if "never closes" in w]) == 2


def test_premises_without_a_common_variable_are_one_group() -> None:
    streams = "stream p(x) delay 1. stream r(y) delay 1."
    text = f"{streams} q(X, T) <- p(X, T), r(Y, S), S < T. query q(X, T)."
    _, premises = only(text)
    assert premises["key"] == []
    assert "in one group" in premises["warnings"][0]


def test_a_premise_set_without_a_stream_atom() -> None:
    text = (
        "rigid N(a). N(b). stream S(x) delay 1. P(X, 0) <- N(X). P(X, T) <- S(X, T). query P(X, T)."
    )
    (query,) = explain(load(text))
    bare = next(p for p in query["premise_sets"] if not p["atoms"])
    assert "no stream atom" in bare["warnings"][0]
    assert bare["rigid"] == ["N(b)"]
    assert as_text(query)


def test_a_query_that_never_has_an_answer() -> None:
    (query,) = explain(load("stream S(x) delay 1. P(X, T) <- S(X, T), T < 0. query P(X, T)."))
    assert query["premise_sets"] == []
    assert query["warnings"] == ["it has no premise sets, so it never has an answer"]
    assert "0 premise sets" in as_text(query)


def test_rigid_facts_that_were_used() -> None:
    query, premises = only(NEAR)
    assert premises["rigid"] == ["Near(w1, w2)"]
    assert premises["answer"] == "Both(w1, w2, T)"
    assert query["group"]["key"] == ["X", "Y"]


def test_the_derivation_names_the_rules() -> None:
    _, premises = only(TURBINES)
    nodes = premises["derivation"]
    assert [(node["depth"], node["atom"], node["rule"], node["line"]) for node in nodes[:5]] == [
        (0, "Malf(X, T)", 4, 6),
        (1, "Shdn(X, T+2)", 3, 5),
        (2, "Cool(X, T+1)", 2, 4),
        (3, "Flag(X, T)", 1, 3),
        (4, "Temp(X, high, T)", None, None),
    ]
    assert {node["kind"] for node in nodes} == {"derived", "stream"}


def test_the_tree() -> None:
    (query,) = explain(load(TURBINES))
    assert (
        as_tree(query)
        == """\
query Malf(X, T)

  1. Malf(X, T)
     Malf(X, T)  (rule 4, line 6)
     └─ Shdn(X, T+2)  (rule 3, line 5)
        ├─ Cool(X, T+1)  (rule 2, line 4)
        │  ├─ Flag(X, T)  (rule 1, line 3)
        │  │  └─ Temp(X, high, T)  (stream)
        │  └─ Flag(X, T+1)  (rule 1, line 3)
        │     └─ Temp(X, high, T+1)  (stream)
        └─ Flag(X, T+2)  (rule 1, line 3)
           └─ Temp(X, high, T+2)  (stream)
"""
    )


def test_the_words() -> None:
    (query,) = explain(load(NEAR))
    told = as_text(query)
    for line in (
        "query Both(X, Y, T): 1 premise set",
        "  an answer is decided at most 2 time points after its own",
        "  1. Both(w1, w2, T)",
        "       Temp(w2, T+1)  delay 1, closes at T+2",
        "     with Near(w1, w2)",
        "     key: T; window: 0 to 1; lines: 4",
        "     an answer at T is decided at the latest at T+2: when Temp(w2, T+1) closes",
    ):
        assert line in told.splitlines()


def test_how_the_kernel_evaluates_it() -> None:
    assert only(TURBINES)[0]["evaluation"][0]["way"] == "cells"
    assert only(LOGINS)[0]["evaluation"][0]["way"] == "forms"


def test_a_long_chain_of_rules_is_no_deep_recursion() -> None:
    links = [f"P{n + 1}(T+1) <- P{n}(T)." for n in range(1_500)]
    text = "\n".join(["stream S() delay 1.", "P0(T) <- S(T).", *links, "query P1500(T)."])
    query, premises = only(text)
    assert premises["atoms"][0]["atom"] == "S(T-1500)"
    assert json.dumps(query)
    assert as_text(query)
    assert as_tree(query).count("rule") == 1_501


TWO_THOUSAND = {
    "constants": [f"P(X, T) <- S(X, c{n}, T)." for n in range(2_000)],
    "offsets": [f"P(X, T) <- S(X, a, T), S(X, b, T+{n})." for n in range(2_000)],
    "thresholds": [f"P(X, T) <- S(X, V, T), V > {n}." for n in range(2_000)],
    "windows": [
        f"P(X, T) <- S(X, a, T), S(X, b, U), U >= T+{n}, U <= T+{n + 5}." for n in range(2_000)
    ],
    "rigid facts": [
        "P(X, T) <- S(X, Y, T), Near(X, Y), S(Y, Y, T+1).",
        *(f"Near(a{n % 500}, b{n})." for n in range(2_000)),
    ],
}


@pytest.mark.parametrize("shape", TWO_THOUSAND)
def test_two_thousand_premise_sets(shape: str) -> None:
    """It would take minutes if sets were compared with each other without an index."""
    rigid = ["rigid Near(a, b)."] if shape == "rigid facts" else []
    text = ["stream S(x, y) delay 1.", *rigid, *TWO_THOUSAND[shape], "query P(X, T)."]
    (query,) = explain(load("\n".join(text)))
    assert len(query["premise_sets"]) == 2_000


# --- the command ---------------------------------------------------------------------------------


def test_the_command(tmp_path: Path) -> None:
    program = tmp_path / "turbines.rules"
    program.write_text(TURBINES)
    run = CliRunner().invoke
    told = run(app, ["explain", str(program), "--format", "json"])
    assert told.exit_code == 0
    whole = json.loads(told.stdout)
    assert whole["queries"] == explain(load(TURBINES, str(program)))
    assert whole["rules"][3] == {"number": 4, "line": 6, "text": "Malf(X, T-2) <- Shdn(X, T)."}
    assert "1 premise set" in run(app, ["explain", str(program)]).stdout
    assert "(rule 4, line 6)" in run(app, ["explain", str(program), "--format", "tree"]).stdout
    assert run(app, ["explain", str(program), "--format", "xml"]).exit_code == 2


def test_a_program_with_mistakes_is_not_explained(tmp_path: Path) -> None:
    program = tmp_path / "bad.rules"
    program.write_text("stream p() delay 1. q(T) <- r(T). query q(T).")
    told = CliRunner().invoke(app, ["explain", str(program)])
    assert told.exit_code == 1
    assert told.stdout == ""
    assert "bad.rules:1:" in told.stderr
    assert CliRunner().invoke(app, ["explain", str(tmp_path / "none.rules")]).exit_code == 2


def test_rules_that_multiply_are_named(tmp_path: Path) -> None:
    program = tmp_path / "many.rules"
    body = ", ".join(f"O(T+{n})" for n in range(20))
    program.write_text(
        f"stream S(x) delay 1.\nO(T) <- S(a, T).\nO(T) <- S(b, T).\nP(T) <- {body}.\nquery P(T).\n"
    )
    told = CliRunner().invoke(app, ["explain", str(program)])
    assert told.exit_code == 1
    assert "P has more than 50,000 premise sets: its rules multiply" in told.stderr
    assert "line 4: O in 2 ways, 20 times: P in 1,048,576 ways" in told.stderr
