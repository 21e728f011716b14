"""Three short rounds of `make chaos`, every process real: what is left is what the log says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.plan import KINDS, Plan
from tests.chaos.round import play

ROUNDS = 3


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.postgres
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_nothing_is_lost_and_nothing_invented(seed: int, tmp_path: Path) -> None:
    plan = Plan.of(seed, seconds=12, events=160, faults=3)
    outcome = play(plan, tmp_path)
    assert outcome.found.wrong == [], f"{[str(f) for f in plan.faults]}\n{plan.text}"
    assert outcome.found.records >= len(plan.sends)  # a producer that is cut off may send twice
    assert outcome.found.answers.total() > 0


def test_a_seed_is_a_plan() -> None:
    plans = [Plan.of(number, seconds=12, events=50) for number in range(12)]
    assert plans[5] == Plan.of(5, seconds=12, events=50)
    assert len({plan.text for plan in plans}) > 4
    assert {fault.kind for plan in plans for fault in plan.faults} >= set(KINDS)
    assert any(plan.executors for plan in plans)
