"""A live run that is told to end, as from a terminal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = [pytest.mark.spark, pytest.mark.postgres]


def test_ctrl_c_ends_a_run_in_order(tmp_path: Path) -> None:
    example = ROOT / "monitor" / "setup" / "template"
    run = subprocess.Popen(
        [
            *(sys.executable, "-c", "from monitor.cli import main; main()"),
            *("run", example / "turbines.rules", "--source", example / "facts.jsonl"),
        ],
        cwd=tmp_path,
        env={**os.environ, "WHILST_HOME": str(tmp_path / "home"), "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert run.stderr is not None
    said = next((line for line in run.stderr if "facts" in line), "")
    run.send_signal(signal.SIGINT)
    told, rest = run.communicate()
    assert run.returncode == 0, said + rest
    assert told.startswith("13 facts, 1 late"), rest
    assert "Traceback" not in rest
