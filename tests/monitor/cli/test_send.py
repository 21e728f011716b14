"""What `whilst send` and `whilst simulate` put where, and what they refuse in one line."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from kafka import KafkaProducer
from typer.testing import CliRunner

from monitor.cli import app
from tests.services.kafka import Broker

PROGRAM = "stream p(x) delay 1.\nq(X, T) <- p(X, T).\nquery q(X, T).\n"
FACTS = "".join(f'{{"fact": "p", "args": ["a{n}"], "time": {n}}}\n' for n in range(500))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.rules").write_text(PROGRAM)
    (tmp_path / "facts.jsonl").write_text(FACTS)
    (tmp_path / "facts.csv").write_text("fact,x,time\np,a,1\n")
    packed = gzip.compress(FACTS.encode())
    (tmp_path / "facts.jsonl.gz").write_bytes(packed)
    (tmp_path / "cut.jsonl.gz").write_bytes(packed[: len(packed) // 2])
    (tmp_path / "log").mkdir()
    return tmp_path


@pytest.mark.parametrize("file", ["facts.jsonl", "facts.jsonl.gz"])
def test_events_are_sent_as_they_are(folder: Path, file: str) -> None:
    for target in ("sent.jsonl", "log"):
        assert CliRunner().invoke(app, ["send", file, "--to", target]).stdout == "500 events sent\n"
    (made,) = (folder / "log").iterdir()
    assert made.read_text() == (folder / "sent.jsonl").read_text() == FACTS


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("send facts.csv --to log", "facts.csv: a line of CSV says nothing without its header"),
        ("send facts.jsonl --to none/sent", "none/sent: cannot be written: No such file"),
        ("send facts.jsonl --to none/", "none/: no such folder: make it first"),
        ("send cut.jsonl.gz --to log", "cut.jsonl.gz: the gzip data is cut short or damaged"),
        ("send none.jsonl --to log", "none.jsonl: cannot be read: No such file"),
        ("simulate p.rules --count 1 --to none/made", "none/made: cannot be written: No such file"),
    ],
)
def test_what_cannot_be_sent_is_told_in_a_line(arguments: str, said: str) -> None:
    done = CliRunner().invoke(app, arguments.split())
    assert done.exit_code == 1
    assert isinstance(done.exception, SystemExit)
    assert done.stderr.startswith(f"error: {said}")
    assert done.stderr.count("\n") == 1


def test_a_topic_that_is_not_there_is_told(kafka: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KafkaProducer.DEFAULT_CONFIG, "max_block_ms", 1000)  # it waits a minute
    to = f"kafka://{kafka.bootstrap}/no-such-topic"
    done = CliRunner().invoke(app, ["send", "facts.jsonl", "--to", to])
    assert done.exit_code == 1
    assert done.stderr == f"error: {to}: there is no such topic: make it, or check the name\n"
