"""From answers in the store to receivers: what arrives, in which order, after which failures."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from monitor.alerts import outbox
from monitor.alerts.background import Background
from monitor.alerts.backoff import Backoff
from monitor.alerts.declarations import Alert
from storage.store import Store
from tests.alerts.conftest import OLD_SECRET, SECRET, alert
from tests.services import ports
from tests.services.receiver import Receiver, Reply, Request
from tests.storage.changes import Running, triple

QUICK = Backoff(first=0.02, factor=1.5, longest=0.2, attempts=16)


@contextmanager
def delivering(store: Store, backoff: Backoff = QUICK) -> Iterator[Background]:
    with Background(store.url("writer"), backoff) as handle:
        yield handle


def register(store: Store, *alerts: Alert, origin: str = "tests") -> None:
    outbox.register(store.url("writer"), alerts, origin)


def rows(store: Store, select: str, *values: object) -> list[tuple[Any, ...]]:
    with psycopg.connect(store.url("reader")) as db:
        return db.execute(select, values).fetchall()


def until(what: Callable[[], object], seconds: float = 60) -> Any:
    """The first true value; the store has no condition to wait on."""
    end = time.monotonic() + seconds
    while not (value := what()):
        assert time.monotonic() < end, f"not so within {seconds} s"
        time.sleep(0.02)
    return value


def statuses(store: Store) -> Counter[str]:
    return Counter(status for (status,) in rows(store, "select status from outbox"))


def confirmed(answer: str, start: int = 2, **more: Any) -> dict[str, Any]:
    return triple(answer, (f"Temp({answer}, high, 1)",), start=start, **more)


def pending(answer: str, start: int, deadline: int, **more: Any) -> dict[str, Any]:
    return triple(answer, (f"T({start})",), ("T(9)",), start=start, deadline=deadline, **more)


# --- what is told ------------------------------------------------------------------------------


def test_a_confirmed_answer_arrives_signed(
    store: Store, running: Running, receiver: Receiver
) -> None:
    register(store, alert(receiver.url))
    with delivering(store):
        running.apply(confirmed("wt2"), pending("wt3", 1, 9), tau=2)
        (request,) = receiver.wait_for(1)
        until(lambda: statuses(store)["delivered"] == 1)
    told = request.verified(SECRET)
    assert isinstance(told, dict)
    assert (told["type"], told["answer"], told["tau"]) == ("answer.confirmed", "wt2", 2)
    assert told["evidence"] == [{"fact": "Temp(wt2, high, 1)", "time": 1, "arrival": 2}]
    assert told["bindings"] == {"X": "wt2", "T": 2}
    assert (told["program"], told["unit_ms"]) == (running.program.name, 1000)
    ((code, latency, error, attempt),) = rows(
        store, "select status_code, latency_ms, error, attempt from delivery_attempts"
    )
    assert (code, error, attempt) == (204, None, 1)
    assert latency > 0


def test_events_queries_and_bindings_choose(
    store: Store, running: Running, receiver: Receiver
) -> None:
    register(
        store,
        alert(receiver.url + "/all", "all", events=("confirmed", "pending", "refuted")),
        alert(receiver.url + "/wt2", "wt2", filter={"X": "wt2"}),
        alert(receiver.url + "/other", "other", queries=("Other",)),
        alert(receiver.url + "/here", "here", program=running.program.name, queries=("Malf",)),
        alert(receiver.url + "/there", "there", program="another"),
    )
    with delivering(store):
        running.apply(confirmed("wt2"), confirmed("wt3"), pending("wt4", 1, 5), tau=2)
        running.complete(7)
        receiver.wait_for(7)
        until(lambda: statuses(store) == {"delivered": 7})
    told = defaultdict(set)
    for request in receiver.requests:
        said = json.loads(request.body)
        told[request.path].add((said["type"].partition(".")[2], said["answer"]))
    both = {("confirmed", "wt2"), ("confirmed", "wt3")}
    assert told == {
        "/hook/all": both | {("pending", "wt4"), ("refuted", "wt4")},
        "/hook/wt2": {("confirmed", "wt2")},
        "/hook/here": both,
    }


def test_a_deadline_is_told_once_before_it_comes(
    store: Store, running: Running, receiver: Receiver
) -> None:
    register(
        store,
        alert(receiver.url + "/points", "points", events=("deadline",), within=3),
        alert(receiver.url + "/time", "time", events=("deadline",), within_ms=5_000),
    )
    with delivering(store):
        running.apply(pending("a", 1, 10), pending("b", 1, 100), tau=1)
        for tau in (4, 5, 6, 7, 8, 9, 10, 11):
            running.complete(tau)
        running.apply(pending("c", 11, 13), tau=11)  # near from the start
        receiver.wait_for(4)
        until(lambda: statuses(store) == {"delivered": 4})
    told = {(r.path, s["answer"]): s for r in receiver.requests if (s := json.loads(r.body))}
    assert {key: said["tau"] for key, said in told.items()} == {
        ("/hook/points", "a"): 8,  # 10 - 8 < 3
        ("/hook/time", "a"): 6,  # 10 - 6 < 5
        ("/hook/points", "c"): 11,
        ("/hook/time", "c"): 11,
    }
    assert told["/hook/points", "a"]["type"] == "answer.deadline"
    assert told["/hook/points", "a"]["status"] == "pending"
    assert told["/hook/points", "a"]["hypotheses"] == [{"atom": "T(9)", "closes": 10}]


def test_text_for_chat_tools(store: Store, running: Running, receiver: Receiver) -> None:
    template = "{answer} & {bindings.X} is {event} at {tau}: {evidence}"
    register(
        store,
        alert(receiver.url, "a", format="slack", secret=None, template=template),
        alert(receiver.url, "b", format="slack", secret=None),
    )
    with delivering(store):
        running.apply(confirmed("<wt2>"), tau=2)
        receiver.wait_for(2)
    texts = {json.loads(request.body)["text"] for request in receiver.requests}
    name = running.program.name
    assert texts == {
        "&lt;wt2&gt; & &lt;wt2&gt; is confirmed at 2: Temp(&lt;wt2&gt;, high, 1)",
        f"*&lt;wt2&gt;* confirmed at 2 ({name})\nevidence: Temp(&lt;wt2&gt;, high, 1)",
    }


# --- once, in order, whatever happens ----------------------------------------------------------


def test_the_id_is_that_of_the_answer_and_event(
    store: Store, running: Running, receiver: Receiver
) -> None:
    """Retries, replays of a batch and another run of the program tell nothing under a second id."""
    register(store, alert(receiver.url, events=("pending", "confirmed")))
    receiver.behaviour = lambda request: Reply(500 if request.number < 3 else 204)
    with delivering(store):
        running.apply(pending("a", 1, 9), tau=1)
        running.apply(confirmed("a", 2), tau=2)
        running.apply(confirmed("a", 2), tau=2, batch=1)
        until(lambda: statuses(store) == {"delivered": 2})
        again = Running(store, running.program)
        again.apply(pending("a", 1, 9), tau=1)
        again.apply(confirmed("a", 2), tau=2)
        again.apply(confirmed("b", 3), tau=3)
        again.close()
        until(lambda: statuses(store) == {"delivered": 3})
    by_id = defaultdict(set)
    for request in receiver.requests:
        by_id[request.id].add(request.body)
    assert len(by_id) == 3
    assert all(len(bodies) == 1 for bodies in by_id.values())  # and the same body each time
    assert len(receiver.requests) == 3 + 3


def test_what_befell_an_answer_is_told_in_order(
    store: Store, running: Running, receiver: Receiver
) -> None:
    """The first of an answer fails for a while; the second does not overtake it."""
    register(store, alert(receiver.url, events=("pending", "confirmed")))
    failing = {"a"}

    def behave(request: Request) -> Reply:
        said = json.loads(request.body)
        fails = said["answer"] in failing and said["type"] == "answer.pending"
        return Reply(400 if fails else 204)

    receiver.behaviour = behave
    with delivering(store):
        running.apply(pending("a", 1, 9), pending("b", 1, 9), tau=1)
        running.apply(confirmed("a", 2), confirmed("b", 2), tau=2)

        def told(requests: list[Request], answer: str, event: str) -> bool:
            said = [json.loads(r.body) for r in requests]
            return any((s["answer"], s["type"]) == (answer, f"answer.{event}") for s in said)

        receiver.wait(lambda requests: told(requests, "b", "confirmed"))
        receiver.wait(lambda requests: len(requests) >= 6)
        assert not told(receiver.requests, "a", "confirmed")
        failing.clear()
        receiver.wait(lambda requests: told(requests, "a", "confirmed"))
        until(lambda: statuses(store) == {"delivered": 4})


def test_retry_after_is_honoured(store: Store, running: Running, receiver: Receiver) -> None:
    register(store, alert(receiver.url))
    busy = Reply(429, {"retry-after": "1"})
    receiver.behaviour = lambda request: busy if request.number == 0 else Reply()
    with delivering(store):
        running.apply(confirmed("a"), tau=2)
        first, second = receiver.wait_for(2)
    assert first.id == second.id
    assert second.at - first.at >= 1.0


def test_a_retry_ends_the_rest_that_a_receiver_asked_for(
    store: Store, running: Running, receiver: Receiver
) -> None:
    register(store, alert(receiver.url))
    receiver.behaviour = lambda _: Reply(429, {"retry-after": "3600"})
    with delivering(store):
        running.apply(confirmed("a"), tau=2)
        until(lambda: rows(store, "select 1 from delivery_attempts"))
        receiver.behaviour = lambda _: Reply()
        assert outbox.retry(store.url("writer"), "hook", []) == (1, [])
        until(lambda: statuses(store) == {"delivered": 1}, seconds=20)


def test_410_is_logged_once(
    store: Store, running: Running, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    register(store, alert(receiver.url))
    receiver.behaviour = lambda _: Reply(410)
    running.apply(*(confirmed(f"a{n}") for n in range(8)), tau=2)
    Background(store.url("writer")).stop(drain=60)
    assert len([said for said in caplog.messages if "replied 410" in said]) == 1


def test_why_nothing_can_be_sent_is_noted_until_it_can(
    store: Store, running: Running, receiver: Receiver, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    register(store, alert(receiver.url, secret=f"file:{secret}"))

    def reason() -> object:
        ((said,),) = rows(store, "select status_reason from endpoints where status = 'enabled'")
        return said

    with delivering(store):
        running.apply(confirmed("a"), tau=2)
        until(lambda: reason() is not None)
        assert reason() == f"cannot read the secret in {secret}: No such file or directory"
        (shown,) = outbox.in_short(outbox.summary(store.url("writer")))
        assert shown[-1] == reason()
        secret.write_text(SECRET)
        until(lambda: statuses(store) == {"delivered": 1})
        assert reason() is None


def test_410_disables_the_endpoint(store: Store, running: Running, receiver: Receiver) -> None:
    register(store, alert(receiver.url, concurrency=1))
    receiver.behaviour = lambda _: Reply(410)
    with delivering(store):
        running.apply(confirmed("a"), confirmed("b"), tau=2)
        until(lambda: rows(store, "select 1 from endpoints where status = 'disabled'"))
        ((reason,),) = rows(store, "select status_reason from endpoints")
        assert "410" in reason
        running.apply(confirmed("c"), tau=3)  # none is written for it any more
        register(store, alert(receiver.url, concurrency=1))  # and a restart changes nothing
        assert rows(store, "select status from endpoints") == [("disabled",)]
        assert len(receiver.requests) == 1
        assert statuses(store) == {"waiting": 2}
        receiver.behaviour = lambda _: Reply()
        outbox.switch(store.url("writer"), "hook", "enabled", None)
        until(lambda: statuses(store) == {"delivered": 2})


def test_given_up_is_kept_and_can_be_tried_again(
    store: Store, running: Running, receiver: Receiver
) -> None:
    register(store, alert(receiver.url))
    receiver.behaviour = lambda _: Reply(400)
    with delivering(store, Backoff(first=0.01, factor=1, attempts=3)):
        running.apply(confirmed("a"), tau=2)
        until(lambda: statuses(store) == {"dead": 1})
        assert len(receiver.requests) == 3
        attempts = rows(store, "select attempt, status_code from delivery_attempts order by 1")
        assert attempts == [(1, 400), (2, 400), (3, 400)]
        receiver.behaviour = lambda _: Reply()
        assert outbox.retry(store.url("writer"), "hook", []) == (1, [])
        until(lambda: statuses(store) == {"delivered": 1})
    assert len(set(receiver.ids())) == 1


# --- endpoints do not disturb each other -------------------------------------------------------


def test_slow_and_dead_endpoints_delay_no_other(
    store: Store, running: Running, receiver: Receiver, other_receiver: Receiver
) -> None:
    (nobody,) = ports.free(1)
    register(
        store,
        alert(receiver.url, "hangs", timeout=60.0, concurrency=2),
        alert(f"http://127.0.0.1:{nobody}/", "dead"),
        alert("http://nowhere.invalid/", "nameless"),
        alert(other_receiver.url, "well"),
        alert(other_receiver.url, "secretless", secret="env:NOT_SET_AT_ALL"),
    )
    receiver.behaviour = lambda _: Reply(how="hang")
    with delivering(store):
        running.apply(*(confirmed(f"a{n}") for n in range(300)), tau=2)
        other_receiver.wait_for(300)
        until(lambda: statuses(store)["delivered"] == 300)
        assert receiver.most_at_once == 2
        receiver.stop()  # it would hang for longer otherwise


@pytest.mark.parametrize("status", [503, 404])
def test_a_dead_endpoint_rests_and_is_taken_up_again(
    store: Store, running: Running, receiver: Receiver, status: int
) -> None:
    """Down it is tried with single alerts now and then, not with all that wait for it."""
    register(store, alert(receiver.url))
    up = threading.Event()
    receiver.behaviour = lambda _: Reply(204 if up.is_set() else status)
    with delivering(store):
        running.apply(*(confirmed(f"a{n}") for n in range(500)), tau=2)
        receiver.wait_for(8)
        until(lambda: rows(store, "select 1 from outbox where claimed_by is null limit 1"))
        tried = len(receiver.requests)
        assert tried < 100
        up.set()
        until(lambda: statuses(store) == {"delivered": 500})
    assert len(set(receiver.ids())) == 500


def test_two_deliverers_do_not_send_twice(
    store: Store, running: Running, receiver: Receiver
) -> None:
    register(store, alert(receiver.url))
    with delivering(store), delivering(store):
        for batch in range(4):
            running.apply(*(confirmed(f"a{batch}-{n}") for n in range(250)), tau=2)
        until(lambda: statuses(store) == {"delivered": 1000})
    assert Counter(receiver.ids()) == dict.fromkeys(receiver.ids(), 1)
    assert len(receiver.requests) == 1000


# --- changes while it runs ---------------------------------------------------------------------


def test_secrets_are_rotated_without_a_restart(
    store: Store, running: Running, receiver: Receiver, tmp_path
) -> None:
    file = tmp_path / "secret"
    file.write_text(OLD_SECRET)
    register(store, alert(receiver.url, secret=f"file:{file}"))
    with delivering(store):
        running.apply(confirmed("a"), tau=2)
        receiver.wait_for(1)[0].verified(OLD_SECRET)
        file.write_text(SECRET)
        sent = 1

        def signed_anew() -> bool:
            nonlocal sent
            running.apply(confirmed(f"b{sent}"), tau=2)
            sent += 1
            signature = receiver.wait_for(sent)[-1].headers["webhook-signature"]
            request = receiver.requests[-1]
            try:
                request.verified(SECRET)
            except Exception:
                return False
            return bool(signature)

        until(signed_anew)


def test_what_is_no_longer_declared_is_told_nothing(
    store: Store, running: Running, receiver: Receiver, other_receiver: Receiver
) -> None:
    one, two = alert(receiver.url, "one"), alert(other_receiver.url, "two")
    register(store, one, two)
    register(store, alert(other_receiver.url + "/x", "elsewhere"), origin="another file")
    register(store, one)
    assert dict(rows(store, "select name, status from endpoints")) == {
        "one": "enabled",
        "two": "disabled",
        "elsewhere": "enabled",
    }
    with delivering(store):
        running.apply(confirmed("a"), tau=2)
        until(lambda: statuses(store) == {"delivered": 2})
    assert [request.path for request in other_receiver.requests] == ["/hook/x"]
    register(store, one, two)
    assert set(rows(store, "select status from endpoints")) == {("enabled",)}


def test_a_lost_session_is_taken_up_again(
    store: Store, running: Running, receiver: Receiver
) -> None:
    register(store, alert(receiver.url))
    with delivering(store):
        running.apply(confirmed("a"), tau=2)
        until(lambda: statuses(store) == {"delivered": 1})
        with psycopg.connect(store.url("writer")) as db:
            ended = db.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity "
                "where application_name = 'whilst deliver'"
            ).fetchall()
        assert len(ended) == 2
        running.apply(confirmed("b"), tau=2)
        until(lambda: statuses(store) == {"delivered": 2})


def test_stopping_drains_what_is_due(store: Store, running: Running, receiver: Receiver) -> None:
    register(store, alert(receiver.url))
    running.apply(*(confirmed(f"a{n}") for n in range(700)), tau=2)
    Background(store.url("writer"), QUICK).stop(drain=60)
    assert statuses(store) == {"delivered": 700}
    assert len(receiver.requests) == 700


def test_what_is_left_is_said_at_the_end(
    store: Store, running: Running, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    register(store, alert(receiver.url))
    receiver.behaviour = lambda _: Reply(500)
    running.apply(confirmed("a"), tau=2)
    Background(store.url("writer")).stop(drain=60)
    assert "alerts that wait in the store: 1; `whilst deliver` sends them" in caplog.text
    receiver.behaviour = lambda _: Reply()
    outbox.retry(store.url("writer"), "hook", [])
    caplog.clear()
    Background(store.url("writer")).stop(drain=60)
    assert not [said for said in caplog.messages if "wait in the store" in said]


def test_no_secret_is_in_the_store(store: Store, receiver: Receiver) -> None:
    register(store, alert(receiver.url, headers={"Authorization": "env:TOKEN"}))
    (row,) = rows(store, "select e::text from endpoints e")
    assert "HOOK_SECRET" in row[0]
    assert SECRET.removeprefix("whsec_") not in row[0]


@pytest.mark.parametrize("how", ["hang", "reset", "garbage", "drip"])
def test_after_any_failure_it_arrives(
    store: Store, running: Running, receiver: Receiver, how: Any
) -> None:
    register(store, alert(receiver.url, timeout=0.5))
    receiver.behaviour = lambda request: Reply(how=how) if request.number < 2 else Reply()
    with delivering(store):
        running.apply(confirmed("a"), tau=2)
        until(lambda: statuses(store) == {"delivered": 1})
    assert len(receiver.requests) == 3
    assert len(set(receiver.ids())) == 1
