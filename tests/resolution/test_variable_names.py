"""What a program calls its variables changes nothing but the names that are shown."""

from __future__ import annotations

import re

import pytest

from resolution.facts import Arrivals, read_event
from resolution.lives import lives
from resolution.premises import premise_sets
from resolution.program import load

PROGRAM = """
stream Login(user, address) delay 5.
Spray(A, T2) <- Login(U, A, T1), Login(W, A, T2), U != W, T1 < T2, T2 <= T1+10.
query Spray(A, T).
"""
LOG = ['{"fact": "Login", "args": ["ann", "home"], "time": 1}']


def identities(text: str) -> set[str]:
    program = load(text)
    arrived = Arrivals.of((read_event(line, program) for line in LOG), program.delays).first
    found = lives(premise_sets(program, program.queries[0]), program.delays, arrived)
    return {life.triple.identity for life in found}


@pytest.mark.parametrize("names", ["V V0", "V0 V1", "V1 V0", "V0 V", "_1 _2", "X Y"])
def test_names_that_the_logic_might_use_itself(names: str) -> None:
    one, other = names.split()
    renamed = re.sub(r"\bW\b", other, re.sub(r"\bU\b", one, PROGRAM))
    assert len(identities(renamed)) == 2
    assert identities(renamed) == identities(PROGRAM)
