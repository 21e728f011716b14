"""Whatever goes wrong, no message repeats a password: it may end up in a log that many can read.

Logs and process lists of runs under faults are looked through in every round of `make chaos`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SECRET = "hunter2-and-more"
PROGRAM = "stream p(x) delay 1.\nq(X, T) <- p(X, T).\nquery q(X, T).\n"

STORES = [
    f"postgresql://u:{SECRET}@127.0.0.1:1/db",
    f"postgresql://u:{SECRET}@127.0.0.1:port/db",
    f"postgresql://u:a/{SECRET}@127.0.0.1:1/db",
    f"postgresql://u:a#{SECRET}@127.0.0.1:1/db",
    f"postgresql://u:a?{SECRET}@127.0.0.1:1/db",
    f"postgresql://u:[{SECRET}@127.0.0.1:1/db",
    f"postgresql://u:%zz{SECRET}@127.0.0.1:1/db",
    f"postgresql://u@127.0.0.1:1/db?password={SECRET}&nothing=1",
    f"mysql://u:{SECRET}@127.0.0.1:1/db",
]
LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
JAAS = f'{LOGIN} required username="u" password="{SECRET}";'


def whilst_command(
    folder: Path, *arguments: str, **environment: str
) -> tuple[list[str], dict[str, str]]:
    """A command of Whilst in a folder, and the environment it has."""
    command = [sys.executable, "-c", "from monitor.cli import main; main()", *arguments]
    own = {"WHILST_HOME": str(folder / "home"), "PYTHONPATH": str(Path(__file__).parents[2])}
    return command, {**os.environ, **own, **environment}


def whilst(folder: Path, *arguments: str, **environment: str) -> tuple[int, str]:
    command, around = whilst_command(folder, *arguments, **environment)
    done = subprocess.run(
        command, cwd=folder, env=around, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("store", STORES, ids=range(len(STORES)))
def test_a_store_that_cannot_be_reached(store: str, tmp_path: Path) -> None:
    code, said = whilst(tmp_path, "sql", "select 1", WHILST_STORE=store)
    assert code in (1, 2), said
    assert SECRET not in said
    assert "Traceback" not in said
    assert said.strip()


def test_a_broker_that_cannot_be_reached(tmp_path: Path) -> None:
    (tmp_path / "p.rules").write_text(PROGRAM)
    code, said = whilst(
        tmp_path,
        *("run", "p.rules", "--source", "kafka://127.0.0.1:1/facts"),
        *("--kafka", "security.protocol=SASL_PLAINTEXT", "--kafka", "sasl.mechanism=PLAIN"),
        WHILST_KAFKA=f"sasl.jaas.config={JAAS}",
    )
    assert code == 1
    assert SECRET not in said
    assert "no broker answers" in said


@pytest.mark.postgres
def test_a_secret_in_place_of_its_name(tmp_path: Path) -> None:
    (tmp_path / "p.rules").write_text(PROGRAM)
    (tmp_path / "facts.jsonl").touch()
    run = ("run", "p.rules", "--source", "facts.jsonl", "--once", "--webhook", "https://a.b/c")
    code, said = whilst(tmp_path, *run, WHILST_WEBHOOK_SECRET=SECRET)
    assert code in (1, 2)
    assert SECRET not in said
    (tmp_path / "whilst.toml").write_text(
        f'[[alert]]\nname = "a"\nurl = "https://a.b/{SECRET}"\nsecret = "{SECRET}"\n'
    )
    code, said = whilst(tmp_path, "deliver", "--once")
    assert code in (1, 2)
    assert SECRET not in said
