"""The library: one public surface, and nothing heavy behind it."""

from __future__ import annotations

import json
import subprocess
import sys

import resolution

HEAVY = (
    "pyspark",
    "sqlalchemy",
    "pyarrow",
    "pandas",
    "numpy",
    "streamlit",
    "lark",
    "typer",
    "rich",
)


def test_every_name_is_there_and_documented() -> None:
    assert resolution.__doc__ is not None
    for name in resolution.__all__:
        assert getattr(resolution, name).__doc__, name


def test_importing_it_pulls_in_nothing_heavy() -> None:
    code = (
        f"import json, sys, resolution; print(json.dumps([m for m in {HEAVY} if m in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


def test_using_it_needs_neither_spark_nor_a_database() -> None:
    code = """
import sys
from resolution import Arrivals, load, premise_sets, read_event, trace
program = load("stream A(x) delay 1. P(X, T) <- A(X, T), A(X, T+1). query P(X, T).")
facts = [read_event('{"fact": "A", "args": ["a"], "time": 0}', program)]
for tau, triples in trace(program, Arrivals.of(facts, program.delays).first):
    print(tau, *triples)
assert not {"pyspark", "sqlalchemy", "pyarrow", "pandas"} & set(sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["0 P(a, 0) <- A(a, 0) | A(a, 1) | ", "2"]
