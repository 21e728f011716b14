"""kill -9 of a deliverer between sending and writing down: all arrive, none under a second id."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections import Counter, defaultdict
from functools import partial

from storage.store import Store
from tests.alerts.conftest import SECRET, alert
from tests.alerts.test_delivery import confirmed, register, rows, statuses, until
from tests.services.receiver import Receiver, Reply, Request, fine
from tests.storage.changes import Running

COUNT = 200


def deliverer(store: Store, *arguments: str) -> subprocess.Popen[str]:
    """`whilst deliver` as a person starts it."""
    main = "from monitor.cli import main; main()"
    command = [sys.executable, "-c", main, "deliver", "--store", store.url("writer"), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_killed_between_sending_and_writing_down(
    store: Store, running: Running, receiver: Receiver
) -> None:
    register(store, alert(receiver.url, concurrency=4))
    running.apply(*(confirmed(f"a{n}") for n in range(COUNT)), tau=2)
    processes: list[subprocess.Popen[str]] = []
    frozen: list[str] = []

    def behave(request: Request) -> Reply:
        if request.number in (30, 90):
            # Frozen first: the reply reaches it, and it has no chance to write that down.
            os.kill(processes[-1].pid, signal.SIGSTOP)
            frozen.append(request.id)
        return Reply()

    receiver.behaviour = behave
    for kills in (1, 2):
        processes.append(deliverer(store))
        until(partial(frozen.__getitem__, slice(kills - 1, kills)))
        os.kill(processes[-1].pid, signal.SIGKILL)
        processes[-1].communicate()
        assert rows(store, "select status from outbox where webhook_id = %s", frozen[-1]) == [
            ("waiting",)
        ]

    last = deliverer(store, "--once")
    said, errors = last.communicate(timeout=120)
    assert last.returncode == 0, errors
    assert statuses(store) == {"delivered": COUNT}
    assert said.startswith("delivered")

    expected = {i for (i,) in rows(store, "select webhook_id from outbox")}
    assert set(receiver.ids()) == expected  # every one, and none under a second id
    repeated = [i for i, times in Counter(receiver.ids()).items() if times > 1]
    assert repeated  # what was on its way came again
    bodies = defaultdict(set)
    for request in receiver.requests:
        bodies[request.id].add(request.body)
        assert request.verified(SECRET)
    assert all(len(each) == 1 for each in bodies.values())


def test_claims_of_a_killed_deliverer_are_taken_over_at_once(
    store: Store, running: Running, receiver: Receiver
) -> None:
    """While it lives, and even stands still, nobody else sends what it has in hand."""
    register(store, alert(receiver.url, concurrency=1, timeout=60.0))
    running.apply(confirmed("a"), tau=2)
    started = threading.Event()

    def freeze(_: Request) -> Reply:
        started.wait()
        os.kill(frozen.pid, signal.SIGSTOP)
        return Reply()

    receiver.behaviour = freeze
    frozen = deliverer(store)
    started.set()
    receiver.wait_for(1)
    receiver.behaviour = fine
    idle = deliverer(store, "--once")
    said, _ = idle.communicate(timeout=60)
    assert said == "delivered 0, failed attempts 0\n"
    assert len(receiver.requests) == 1
    os.kill(frozen.pid, signal.SIGKILL)
    frozen.communicate()
    second = deliverer(store)
    first, again = receiver.wait_for(2)
    assert first.id == again.id
    until(lambda: statuses(store) == {"delivered": 1})
    second.terminate()
    said, _ = second.communicate(timeout=60)
    assert (second.returncode, said) == (0, "delivered 1, failed attempts 0\n")
