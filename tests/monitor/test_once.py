"""What `--once` does with a log: nothing is lost, and a second start goes on."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from monitor.checkpoint import ProgramChanged
from monitor.run import BatchDone, Options
from monitor.sources import SourceError
from resolution.program import load
from tests.monitor.conftest import Monitor, comparable

Make = Callable[..., Monitor]

PAIRS = """
    stream p(x) delay 2.
    stream r(x) delay 0.
    stream unused(x) delay 0.
    q(X, T) <- p(X, T), r(X, T).
    query q(X, T).
"""


def fact(name: str, value: Any, time: int, arrival: int | None = None) -> dict[str, Any]:
    return {"fact": name, "args": [value], "time": time, "arrival": arrival or time}


def write(path: Path, *events: dict[str, Any] | bytes) -> Path:
    lines = [e if isinstance(e, bytes) else json.dumps(e).encode() for e in events]
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


def test_every_event_is_a_fact_or_late_or_rejected(monitor: Make, tmp_path: Path) -> None:
    log = write(
        tmp_path / "log [1].jsonl",
        fact("p", "a", 1),
        b"not json",
        b"",
        fact("p", "late", 1, 4),
        b'{"fact": "p", "args": ["\xff"], "time": 1}',
        {"fact": "s", "args": ["a"], "time": 1},
        {"fact": "q", "args": ["a"], "time": 1},
        {"fact": "p", "args": ["a", "b"], "time": 1},
        {"fact": "p", "args": [None], "time": 1},
        b"not json",
        b'{"fact": "p", "fact": "p", "args": ["a"], "time": 1}',
        b'{"fact": "p", "args": ["' + b"x" * 10_000_000 + b'"], "time": 1}',
        fact("unused", "late too", 1, 4),
        fact("p", 1e30, 3),
    )
    running = monitor(PAIRS, log)
    running.once()
    assert [(line["fact"], line["place"]) for line in running.late()] == [
        ("p(late, 1)", "4"),
        ('unused("late too", 1)', "13"),
    ]
    rejected = running.rejected()
    assert {line["source"] for line in rejected} == {str(log)}
    assert [(line["place"], line["reason"].split(":")[0]) for line in rejected] == [
        ("2", "not JSON"),
        ("5", "not UTF-8 at byte 25"),
        ("6", "s is not a stream predicate of the program"),
        ("7", "q is not a stream predicate of the program"),
        ("8", "p has 1 field, the event 2"),
        ("9", "x is null; a name, string or number is wanted"),
        ("10", "not JSON"),
        ("11", 'the key "fact" stands twice'),
        ("12", "the event is longer than 1,000,000 characters"),
    ]
    assert rejected[0]["event"] == "not json"
    assert "\\xff" in rejected[1]["event"]
    batches = [b for b in running.happened if isinstance(b, BatchDone)]
    assert sum(b.events for b in batches) == 13
    assert sum(b.figures.facts for b in batches) == 2
    pending = [line["answer"] for line in running.answers() if line["status"] == "pending"]
    assert pending == []  # r must come at once, so q(a, 1) was over at 1 and q(1e30, 3) at 3
    assert [line["answer"] for line in running.answers()] == []


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_late_copy_is_the_same_fact(monitor: Make, tmp_path: Path, order: Any) -> None:
    folder = tmp_path / "log"
    folder.mkdir()
    copies = [fact("p", "a", 1, 2), fact("p", "a", 1, 7)]
    other = fact("p", "b", 1, 8)
    for number, which in enumerate(order):
        write(folder / f"{number}.jsonl", copies[which], other)
    running = monitor(PAIRS, folder)
    running.once(Options(once=True, most_files=1))
    assert {line["fact"] for line in running.late()} == {"p(b, 1)"}
    assert len([b for b in running.happened if isinstance(b, BatchDone)]) == 2


def test_gzip_and_several_sources(monitor: Make, tmp_path: Path) -> None:
    one = tmp_path / "one.jsonl.gz"
    with gzip.open(one, "wb") as file:
        file.write(json.dumps(fact("p", "a", 1)).encode() + b"\nrubbish\n")
    two = write(tmp_path / "two.jsonl", fact("r", "a", 1))
    running = monitor(PAIRS, one, two)
    running.once()
    assert [(line["answer"], line["status"]) for line in running.answers()] == [
        ("q(a, 1)", "confirmed")
    ]
    assert [(line["source"], line["place"]) for line in running.rejected()] == [(str(one), "2")]


def test_a_second_start_goes_on(monitor: Make, tmp_path: Path) -> None:
    folder = tmp_path / "log"
    folder.mkdir()
    write(folder / "1.jsonl", fact("r", "a", 5))
    running = monitor(PAIRS, folder)
    first = running.once()
    assert [(a["answer"], a["status"]) for a in running.answers()] == [("q(a, 5)", "pending")]
    write(folder / "2.jsonl", fact("p", "a", 5, 6), fact("r", "b", 5), fact("r", "c", 6))
    second = running.once()
    assert second.number == first.number
    assert [(a["answer"], a["status"], a["decided_at"]) for a in running.answers()] == [
        ("q(a, 5)", "confirmed", 6),
        ("q(c, 6)", "pending", None),
    ]
    # 5 was complete when the first run ended.
    [late_comer] = running.rejected()
    assert late_comer["place"] == "2"
    assert late_comer["reason"].startswith("it claims to have arrived at 5")


def test_a_changed_program_is_noticed(monitor: Make, tmp_path: Path) -> None:
    log = write(tmp_path / "log.jsonl", fact("r", "a", 5))
    running = monitor(PAIRS, log)
    first = running.once()
    name = running.loaded.name
    changed = monitor(load(PAIRS.replace("stream p(x) delay 2", "stream p(x) delay 3")), log)
    changed.loaded = type(changed.loaded)(name, *_rest(changed))
    with pytest.raises(ProgramChanged, match="--fresh"):
        changed.once()
    again = changed.once(fresh=True)
    assert again.number != first.number
    assert [(a["answer"], a["deadline"]) for a in changed.answers()] == [("q(a, 5)", 8)]
    renamed = monitor(load(f"% the same, with a comment\n{PAIRS}".replace("2.", "3.", 1)), log)
    renamed.loaded = type(renamed.loaded)(name, *_rest(renamed))
    assert renamed.once().number == again.number


def _rest(monitor: Monitor) -> tuple[Any, ...]:
    return monitor.loaded.program, monitor.loaded.sets, monitor.loaded.routing


def test_until_leaves_out_what_arrived_later(monitor: Make, tmp_path: Path) -> None:
    log = write(
        tmp_path / "log.jsonl", fact("r", "a", 5), fact("p", "a", 5, 7), fact("p", "b", 2, 9)
    )
    running = monitor(PAIRS, log)
    running.once(Options(once=True, until=6))
    assert [(a["answer"], a["status"]) for a in running.answers()] == [("q(a, 5)", "pending")]
    assert running.late() == []
    running.once(Options(once=True, until=7))
    assert [(a["answer"], a["status"]) for a in running.answers()] == [("q(a, 5)", "confirmed")]


def test_an_empty_log(monitor: Make, tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    running = monitor(PAIRS, tmp_path / "log")
    running.once()
    assert running.answers() == []


def test_a_predicate_without_fields_and_values_of_every_kind(monitor: Make, tmp_path: Path) -> None:
    program = """
        stream Alarm() delay 1.
        stream V(name, value) delay 1.
        q(X, V, T) <- V(X, V, T), Alarm(T), V > 80.
        query q(X, V, T).
    """
    log = write(
        tmp_path / "log.jsonl",
        {"fact": "Alarm", "args": [], "time": 1},
        *({"fact": "V", "args": [f"Name {n}", v], "time": 1}
          for n, v in enumerate([81, 80.5, 80, 1e22, 9007199254740993, True, "x", 0.1 + 80, -3])),
    )  # fmt: skip
    running = monitor(program, log)
    running.once()
    assert [a["answer"] for a in running.answers() if a["status"] == "confirmed"] == sorted(
        [
            'q("Name 0", 81, 1)',
            'q("Name 1", 80.5, 1)',
            'q("Name 3", 10000000000000000000000, 1)',
            'q("Name 4", 9007199254740993, 1)',
            'q("Name 7", 80.1, 1)',
        ]
    )


def test_csv_with_a_header(monitor: Make, tmp_path: Path) -> None:
    lines = [
        "time,fact,x,arrival,comment",
        "1,p,a,1,",
        '1,p,"a, quoted",1,"with ""quotes"""',
        "1,r,a,,plain",
        "time,fact,x,arrival,comment",
        "1,p,5 ,1,",
        "1,p,0012,1,",
        "1,p,3.50,1,",
        "1,p,late,9,",
        "1,p,,1,",
        "1,p",
        "2026-01-01T00:00:00Z,p,b,2026-01-01T00:00:01Z,\r",
    ]
    folder = tmp_path / "in a folder"
    folder.mkdir()
    for log in (tmp_path / "log.csv", folder / "log.csv"):
        log.write_text("\n".join(lines) + "\n")
    alone = monitor(PAIRS, tmp_path / "log.csv")
    alone.once()
    in_folder = monitor(PAIRS, folder)
    in_folder.once()
    confirmed = [a["answer"] for a in alone.answers() if a["status"] == "confirmed"]
    assert confirmed == ["q(a, 1)"]
    assert [line["place"] for line in alone.rejected()] == ["5", "10", "11"]
    assert [line["place"] for line in alone.late()] == ["9"]
    [done] = [b for b in alone.happened if isinstance(b, BatchDone)]
    assert (done.figures.facts, done.figures.matched) == (7, 7)
    assert comparable(in_folder.answers()) == comparable(alone.answers())
    assert [r["place"] for r in in_folder.rejected()] == ["5", "10", "11"]
    assert [r["reason"] for r in in_folder.rejected()] == [r["reason"] for r in alone.rejected()]


def test_a_csv_file_without_its_header_is_refused(monitor: Make, tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("1,p,a\n")
    with pytest.raises(SourceError, match="a CSV file has a header with `fact`"):
        monitor(PAIRS, log).once()


def test_later_batches_need_no_code_of_their_own(monitor: Make, tmp_path: Path) -> None:
    """What Spark generates for a batch it has from the one before: nothing in it is the batch's."""
    for number in range(5):
        write(tmp_path / f"{number}.jsonl", *(fact("p", f"x{n}", number) for n in range(20)))
    running = monitor(PAIRS, tmp_path)
    jvm = running.spark.sparkContext._jvm
    compiled = jvm.org.apache.spark.metrics.source.CodegenMetrics.METRIC_COMPILATION_TIME()
    counts: list[int] = []
    run = running.run(Options(once=True, most_files=1))
    run.watch = lambda what: counts.append(compiled.getCount())
    run.start().awaitTermination()
    run.close()
    assert len(counts) >= 5
    assert len(set(counts[-3:])) == 1, counts
