"""`whilst run --once`: after it the store holds `S_τ`, however the log was cut and ordered."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from monitor.run import Options
from tests.examples.cases import EXAMPLES, Example
from tests.monitor.conftest import Monitor, comparable, expected
from tests.random_programs import Case, cases

Make = Callable[..., Monitor]


FOLDERS = sorted(path.parent for path in EXAMPLES.glob("*/*.rules"))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_the_examples(folder: Path, monitor: Make) -> None:
    example = Example(folder)
    running = monitor(example.program, example.facts)
    running.once()
    assert comparable(running.answers()) == expected(
        example.program, example.arrivals.first, example.tau
    )
    assert len(running.late()) == len(example.arrivals.late)
    assert running.rejected() == []


LAWS = settings(
    max_examples=int(os.environ.get("WHILST_EXAMPLES", "5")),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    report_multiple_bugs=False,
)


@LAWS
@given(data=st.data())
def test_store_and_definition_agree_however_the_log_is_cut(
    tmp_path_factory: pytest.TempPathFactory, monitor: Make, data: st.DataObject
) -> None:
    case: Case = data.draw(cases(facts=12))
    files = data.draw(st.integers(1, 4))
    owner = data.draw(
        st.lists(st.integers(0, files - 1), min_size=len(case.events), max_size=len(case.events))
    )
    folder = tmp_path_factory.mktemp("facts")
    for number in range(files):
        mine = [e for e, of in zip(case.events, owner, strict=True) if of == number]
        (folder / f"{number}.jsonl").write_text("".join(json.dumps(e) + "\n" for e in mine))
    until = data.draw(st.none() | st.integers(0, 8))
    running = monitor(case.program, folder)
    most = data.draw(st.sampled_from([None, 1, 2]))
    running.once(Options(once=True, until=until, most_files=most))
    arrivals = [f.arrival for f in case.facts if until is None or f.arrival <= until]
    tau = max(arrivals, default=0) if until is None else until
    arrived = {a: at for a, at in case.arrivals.first.items() if at <= tau}
    assert comparable(running.answers()) == expected(case.program, arrived, tau)


def _write(path: Path, *events: dict[str, Any] | str) -> Path:
    lines = [e if isinstance(e, str) else json.dumps(e) for e in events]
    path.write_text("\n".join(lines) + "\n")
    return path
