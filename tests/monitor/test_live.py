"""The monitor live: confirmed as soon as it is read, closed on time though nothing arrives."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaProducer

from monitor import eviction
from monitor.run import BatchDone, Clocked, Options, Progress, Run
from monitor.sources import SourceError, Topic
from monitor.topics import require_log_append_time
from tests.monitor.conftest import Monitor, comparable, expected
from tests.services.kafka import Broker

Make = Callable[..., Monitor]
PATIENCE = 90  # seconds, for a machine under load

PAIRS = """
    unit 100ms.
    stream p(x) delay 3s.
    stream r(x) delay 3s.
    q(X, T) <- p(X, T), r(X, T).
    query q(X, T).
"""


@contextmanager
def running(monitor: Monitor, options: Options | None = None) -> Iterator[Run]:
    run = monitor.run(options or Options(trigger="100 milliseconds"))
    query = run.start()
    try:
        yield run
        assert query.isActive, query.exception()
        assert run.failure is None
    finally:
        query.stop()
        run.close()


def until(condition: Callable[[], Any], what: str) -> Any:
    ends = time.monotonic() + PATIENCE
    while time.monotonic() < ends:
        if found := condition():
            return found
        time.sleep(0.05)
    raise AssertionError(f"not in {PATIENCE} s: {what}")


def send(producer: KafkaProducer, topic: str, partition: int, *facts: dict[str, Any]) -> list[int]:
    """The time points at which the log took them."""
    sent = [producer.send(topic, json.dumps(f).encode(), partition=partition) for f in facts]
    return [future.get(30).timestamp // 100 for future in sent]


def now() -> int:
    return int(time.time() * 10)


def fact(name: str, value: Any, at: int, **more: Any) -> dict[str, Any]:
    return {"fact": name, "args": [value], "time": at, **more}


def statuses(monitor: Monitor) -> dict[str, str]:
    return {line["answer"]: line["status"] for line in monitor.answers()}


def test_kafka_confirms_at_once_and_closes_while_idle(monitor: Make, kafka: Broker) -> None:
    topic = kafka.fresh_topic(3)  # two of its partitions stay empty
    own = monitor(PAIRS, f"kafka://{kafka.bootstrap}/{topic}")
    producer = kafka.producer()
    with running(own):
        t = now()
        arrivals = send(producer, topic, 0, fact("p", "a", t), fact("p", "b", t), fact("r", "a", t))
        until(lambda: statuses(own).get(f"q(a, {t})") == "confirmed", "q(a) confirmed")
        until(lambda: statuses(own).get(f"q(b, {t})") == "refuted", "q(b) refuted")
        # However long a batch took, the clock goes on when nothing comes.
        until(lambda: any(isinstance(h, Clocked) for h in own.happened), "a tick while idle")
    said = {line["answer"]: line for line in own.answers()}
    assert said[f"q(a, {t})"]["decided_at"] == arrivals[2]
    assert said[f"q(b, {t})"]["decided_at"] == t + 30
    assert said[f"q(b, {t})"]["reason"] == f"r(b, {t})"
    producer.close()


def test_state_goes_with_its_block_and_no_row_is_dropped(monitor: Make, kafka: Broker) -> None:
    kept = _kept(monitor, kafka, lambda kept: any(held < read for held, read in kept))
    assert any(held < read for held, read in kept)


def test_state_stays_until_batches_have_saved_up_for_a_look(
    monitor: Make, kafka: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(eviction, "A_BATCH", 0)
    monkeypatch.setattr(eviction, "A_FACT", 0)
    kept = _kept(monitor, kafka, lambda kept: False)
    assert all(held >= read for held, read in kept)


def _kept(
    monitor: Make, kafka: Broker, enough: Callable[[list[tuple[int, int]]], bool]
) -> list[tuple[int, int]]:
    """After each batch, the groups in Spark's state, and the facts in time so far, each in a group
    of its own; until enough, or until the first block could have gone a few batches ago."""
    topic = kafka.fresh_topic(2)
    own = monitor(PAIRS.replace("delay 3s", "delay 100ms"), f"kafka://{kafka.bootstrap}/{topic}")
    blocks = own.loaded.routing.queries[0].blocks
    assert blocks is not None
    producer = kafka.producer()
    kept: list[tuple[int, int]] = []
    begun, sent, since = now(), 0, None
    with running(own, Options(trigger="100 milliseconds", grace=200)) as run:
        ends = time.monotonic() + PATIENCE
        while not enough(kept) and not (since and len(kept) > since + 3):
            assert time.monotonic() < ends, kept
            at = now()
            for partition, name in enumerate("pr"):
                send(producer, topic, partition, fact(name, f"k{sent}", at))
                sent += 1
            done = [h for h in own.happened if isinstance(h, BatchDone)]
            facts = itertools.accumulate(h.figures.matched for h in done)
            read = {h.batch: so_far for h, so_far in zip(done, facts, strict=True)}
            kept = [
                (h.state_rows, read[h.batch])
                for h in own.happened
                if isinstance(h, Progress) and h.batch in read
            ]
            told = max((int(p.name) for p in run.checkpoint.clock.glob("[0-9]*")), default=0)
            if told > begun + blocks.length + blocks.reach:
                since = since or len(kept)
    done = [h for h in own.happened if isinstance(h, BatchDone)]
    assert sum(h.events for h in done) <= sent
    producer.close()
    return kept


def test_a_reader_behind_and_restarted_says_what_the_log_says(monitor: Make, kafka: Broker) -> None:
    topic = kafka.fresh_topic(2)
    own = monitor(PAIRS, f"kafka://{kafka.bootstrap}/{topic}")
    producer = kafka.producer()
    facts: list[tuple[dict[str, Any], int]] = []

    def write(count: int) -> None:
        for number in range(count):
            t = now()
            event = fact("pr"[number % 2], f"k{number // 4}", t - number % 3)
            [arrival] = send(producer, topic, number % 2, event)
            facts.append((event, arrival))

    write(30)
    for _ in range(3):
        with running(own):
            count = len(facts)
            until(lambda c=count: _read(own) >= c, "all read")  # type: ignore[misc]
            write(20)
    own.once()  # what was written after the last look
    tau = max(arrival for _, arrival in facts)
    program = own.loaded.program
    from resolution.facts import Arrivals, fact_of

    log = Arrivals.of(
        (fact_of({**event, "arrival": arrival}, program) for event, arrival in facts),
        program.delays,
    )
    assert own.rejected() == []
    assert _read(own) == len(facts)
    complete = own.read("select complete_tau from runs where name = :name")[0]["complete_tau"]
    assert complete >= tau
    assert comparable(own.answers()) == expected(program, log.first, complete)
    producer.close()


def _read(monitor: Monitor) -> int:
    rows = monitor.read(
        "select coalesce(sum(b.facts + b.late + b.rejected), 0) as n "
        "from batches b join runs r on r.id = b.run where r.name = :name"
    )
    return int(rows[0]["n"])


def test_a_folder_is_watched(monitor: Make, tmp_path: Path) -> None:
    folder = tmp_path / "log"
    folder.mkdir()
    own = monitor(PAIRS.replace("delay 3s", "delay 10m"), folder)  # however slow the machine

    def put(name: str, *facts: dict[str, Any]) -> None:
        (folder / f".{name}").write_text("".join(json.dumps(f) + "\n" for f in facts))
        (folder / f".{name}").rename(folder / name)

    with running(own, Options(trigger="100 milliseconds", skew=60_000)):
        t = now()
        put("1.jsonl", fact("p", "a", t, arrival=t), fact("p", "f", t, arrival=t + 100_000))
        until(lambda: statuses(own).get(f"q(a, {t})") == "pending", "q(a) pending")
        put("2.jsonl", fact("r", "a", t, arrival=now()))
        until(lambda: statuses(own).get(f"q(a, {t})") == "confirmed", "q(a) confirmed")
        until(lambda: own.read("select complete_tau from runs where name = :name "
                               f"and complete_tau > {t + 1}"), "t complete")  # fmt: skip
        put("3.jsonl", fact("p", "b", t, arrival=t + 1))
        until(lambda: len(own.rejected()) == 2, "a contradiction rejected")
    reasons = [line["reason"] for line in own.rejected()]
    assert "which is in the future" in reasons[0]
    assert "had been read before" in reasons[1]


def test_a_topic_without_the_logs_clock_is_refused(monitor: Make, kafka: Broker) -> None:
    topic = Topic(kafka.bootstrap, kafka.fresh_topic(log_append_time=False))
    with pytest.raises(SourceError, match=r"--add-config message.timestamp.type=LogAppendTime"):
        require_log_append_time(topic)
    with pytest.raises(SourceError, match="no such topic"):
        require_log_append_time(Topic(kafka.bootstrap, "nowhere"))
    with pytest.raises(SourceError, match="no broker answers"):
        require_log_append_time(Topic("127.0.0.1:1", "nowhere"))
    require_log_append_time(Topic(kafka.bootstrap, kafka.fresh_topic()))
    producer = kafka.producer()
    send(producer, topic.name, 0, fact("p", "a", 5, seen=6), fact("r", "a", 5, seen=7))
    own = monitor(PAIRS, str(topic))
    own.once(Options(once=True, arrival_field="seen"))
    assert [(a["status"], a["decided_at"]) for a in own.answers()] == [("confirmed", 7)]
    stamped = monitor(PAIRS, str(topic))
    stamped.once()
    assert [line["place"] for line in stamped.rejected()] == ["0/0", "0/1"]
    producer.close()
