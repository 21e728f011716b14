"""What `explain` says of a program."""

from __future__ import annotations

import json

from typer.testing import CliRunner

from monitor.cli import app
from resolution.explain import explain, sentences, tree
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


def test_premise_sets_with_their_windows_and_delays() -> None:
    (query,) = explain(load(TURBINES))
    assert query["query"] == "Malf(X, T)"
    assert query["key"] == ["X"]
    assert query["decided_after"] == 6  # T+2, and wt7 may be 4 late
    (premises,) = query["premise_sets"]
    assert [atom["atom"] for atom in premises["atoms"]] == [
        "Temp(X, high, T)",
        "Temp(X, high, T+1)",
        "Temp(X, high, T+2)",
    ]
    assert [atom["closes_after"] for atom in premises["atoms"]] == [4, 5, 6]
    assert premises["window"] == {"from": 0, "to": 2}
    assert query["evaluation"] == [
        {
            "premise_sets": [1],
            "way": "cells",
            "reason": "every premise alone says which answer it is for",
        }
    ]


def test_the_derivation_names_the_rules_by_line() -> None:
    (query,) = explain(load(TURBINES))
    assert list(tree(query["premise_sets"][0]["derivation"])) == [
        "Malf(X, T)   by line 6",
        "  Shdn(X, T+2)   by line 5",
        "    Cool(X, T+1)   by line 4",
        "      Flag(X, T)   by line 3",
        "        Temp(X, high, T)",
        "      Flag(X, T+1)   by line 3",
        "        Temp(X, high, T+1)",
        "    Flag(X, T+2)   by line 3",
        "      Temp(X, high, T+2)",
    ]


def test_a_window_is_as_wide_as_its_comparisons() -> None:
    (query,) = explain(load(LOGINS))
    assert query["premise_sets"][0]["window"] == {"from": -60, "to": 0}
    assert query["evaluation"][0]["way"] == "forms"
    assert "does not say which answer" in query["evaluation"][0]["reason"]


def test_what_never_closes_is_said() -> None:
    text = "stream p(x) delay 1. stream r(y) delay 1. q(X, T) <- p(X, T), r(Y, S). query q(X, T)."
    (query,) = explain(load(text))
    assert query["decided_after"] is None
    assert query["block"] is None
    assert any("kept for ever" in note for note in query["notes"])
    assert any("one group" in note for note in query["notes"])
    assert any("perhaps never" in line for line in sentences(query))


def test_two_thousand_premise_sets() -> None:
    rules = [f"Low(X, T) <- p(X, a{n}, T), p(X, b, T+{n})." for n in range(2000)]
    text = "\n".join(["stream p(x, y) delay 1.", *rules, "query Low(X, T)."])
    (query,) = explain(load(text))
    assert len(query["premise_sets"]) == 2000


def test_the_command(tmp_path) -> None:  # type: ignore[no-untyped-def]
    program = tmp_path / "turbines.rules"
    program.write_text(TURBINES)
    runner = CliRunner()
    told = runner.invoke(app, ["explain", str(program), "--format", "json"])
    assert told.exit_code == 0
    assert json.loads(told.stdout)[0]["name"] == "Malf"
    assert "premise set 1" in runner.invoke(app, ["explain", str(program)]).stdout
    assert "by line 6" in runner.invoke(app, ["explain", str(program), "--format", "tree"]).stdout
    assert runner.invoke(app, ["explain", str(program), "--format", "xml"]).exit_code == 2
    program.write_text("stream p() delay 1. q(T) <- r(T). query q(T).")
    assert runner.invoke(app, ["explain", str(program)]).exit_code == 1
