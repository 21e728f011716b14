"""A run that died with a batch planned: the batch is read again, and what came since is not old."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from monitor.run import Options
from tests.monitor.conftest import Monitor
from tests.monitor.test_live import PAIRS, PATIENCE, fact, now, running, send, statuses, until
from tests.services.kafka import Broker

Make = Callable[..., Monitor]


def test_what_was_logged_while_it_was_down_is_read_in_time(
    monitor: Make, kafka: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = kafka.fresh_topic(1)
    own = monitor(PAIRS.replace("delay 3s", "delay 1h"), f"kafka://{kafka.bootstrap}/{topic}")
    options = Options(trigger="100 milliseconds", grace=0)
    producer = kafka.producer()
    t = now()
    send(producer, topic, 0, fact("p", "a", t))
    dying = own.run(options)

    def die(*_: Any) -> None:
        raise SystemError("killed before the commit")

    monkeypatch.setattr(dying._writer, "commit_batch", die)
    query = dying.start()
    until(lambda: not query.isActive, "the run dies")
    dying.close()
    [arrival] = send(producer, topic, 0, fact("r", "a", t))
    until(lambda: now() > arrival + 10, "time goes on")
    with running(own, options):
        until(lambda: statuses(own) or own.rejected(), "the batch is read again")
        until(
            lambda: statuses(own).get(f"q(a, {t})") == "confirmed" or own.rejected(),
            "both are read",
        )
    assert own.rejected() == []
    assert statuses(own) == {f"q(a, {t})": "confirmed"}
    producer.close()


def test_nobody_waits_for_a_batch_that_failed(
    monitor: Make, kafka: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = kafka.fresh_topic(1)
    own = monitor(PAIRS, f"kafka://{kafka.bootstrap}/{topic}")
    run = own.run(Options(trigger="100 milliseconds"))
    at_work, told = threading.Event(), threading.Event()

    def fail(*_: Any) -> None:
        at_work.set()
        assert told.wait(PATIENCE)
        raise SystemError("no room")

    monkeypatch.setattr(run._writer, "commit_batch", fail)
    monkeypatch.setattr("monitor.run._PATIENCE", 100 * PATIENCE)
    producer = kafka.producer()
    send(producer, topic, 0, fact("p", "a", now()))
    producer.close()
    query = run.start()
    assert at_work.wait(PATIENCE)
    waiting = threading.Thread(target=run.let_batch_end, args=(query,), daemon=True)
    waiting.start()
    told.set()
    waiting.join(PATIENCE)
    assert not waiting.is_alive()
    run.close()
