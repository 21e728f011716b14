"""Alerts beside a run, by the command: what it confirms reaches the receiver, signed, once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.alerts.conftest import SECRET
from tests.services.receiver import Receiver

PROGRAM = """\
stream Temp(device, level) delay 1.
Hot(X, T) <- Temp(X, high, T), Temp(X, high, T+1).
query Hot(X, T).
"""


@pytest.mark.spark
@pytest.mark.postgres
def test_a_run_sends_what_it_confirms(tmp_path: Path, receiver: Receiver) -> None:
    (tmp_path / "hot.rules").write_text(PROGRAM)
    facts = [{"fact": "Temp", "args": ["wt2", "high"], "time": at} for at in (0, 1, 3)]
    (tmp_path / "facts.jsonl").write_text("".join(json.dumps(fact) + "\n" for fact in facts))
    command = [
        *(sys.executable, "-c", "from monitor.cli import main; main()"),
        *("run", "hot.rules", "--source", "facts.jsonl", "--once"),
        *("--webhook", receiver.url, "--webhook-secret", "env:HOOK_SECRET"),
        "--webhook-allow-private",
    ]
    environment = {
        **os.environ,
        "WHILST_HOME": str(tmp_path / "home"),
        "HOOK_SECRET": SECRET,
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert SECRET not in done.stdout + done.stderr
    (request,) = receiver.requests
    said = request.verified(SECRET)
    assert isinstance(said, dict)
    assert (said["type"], said["answer"]) == ("answer.confirmed", "Hot(wt2, 0)")
