"""Spark's Java dies under a run: the run ends with one line that says what to do."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from tests.chaos.processes import Child, command_line, family, signalled
from tests.chaos.test_secrets import PROGRAM, whilst_command

PATIENCE = 300


@pytest.mark.spark
@pytest.mark.postgres
def test_a_run_whose_java_is_killed(tmp_path: Path) -> None:
    (tmp_path / "p.rules").write_text(PROGRAM)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.jsonl").write_text('{"fact": "p", "args": ["a"], "time": 1}\n')
    command, environment = whilst_command(tmp_path, "run", "p.rules", "--source", "in")
    run = Child("run", command, tmp_path, environment)
    try:
        run.ensure()
        ends = time.monotonic() + PATIENCE
        while not list(tmp_path.glob("home/checkpoints/*/*/spark/commits/0")):
            assert run.pid is not None, run.text()
            assert time.monotonic() < ends, run.text()
            time.sleep(0.1)
        assert run.pid is not None
        [java] = [p for p in family(run.pid) if command_line(p).split(" ")[0].endswith("java")]
        assert signalled(java, signal.SIGKILL)
        while run.pid is not None:
            assert time.monotonic() < ends, run.text()
            time.sleep(0.1)
        run._reap()
    finally:
        run.end()
    assert run.codes == [1]
    assert run.text().splitlines()[-1].startswith("error: its Java process has ended")
    assert "monitor/start.py" not in run.text()
