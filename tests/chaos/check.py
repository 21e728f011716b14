"""What must be so after a round: the store says what the log says, and told it, each thing once."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import psycopg
from kafka import TopicPartition
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from monitor.doubt import fact_with_arrival
from resolution.facts import Arrivals, Fact, RejectedEvent
from tests.chaos.plan import PARTITIONS, UNIT
from tests.chaos.processes import command_line, family
from tests.chaos.world import World
from tests.monitor.conftest import COLUMNS, comparable, expected, ordered

Place = tuple[str, str]
"""Topic; partition/offset."""


@dataclass(frozen=True, slots=True)
class Record:
    place: Place
    arrival: int
    value: bytes


@dataclass
class Found:
    """What a round came to; `wrong` says what must not be."""

    records: int = 0
    facts: int = 0
    late: int = 0
    rejected: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    alerts: int = 0
    repeats: int = 0
    wrong: list[str] = field(default_factory=list)


def log_of(world: World) -> list[Record]:
    """Everything in the topics, as the log has it."""
    from kafka import KafkaConsumer

    consumer = KafkaConsumer(
        bootstrap_servers=world.broker.bootstrap, auto_offset_reset="earliest", group_id=None
    )
    parts = [TopicPartition(t, n) for t in world.topics for n in range(PARTITIONS)]
    ends = consumer.end_offsets(parts)
    consumer.assign(parts)
    consumer.seek_to_beginning()
    found: list[Record] = []
    while any(consumer.position(part) < ends[part] for part in parts):
        for records in consumer.poll(1000).values():
            for r in records:
                place = r.topic, f"{r.partition}/{r.offset}"
                found.append(Record(place, r.timestamp // UNIT, r.value or b""))
    consumer.close()
    return found


def rows(url: str, select: str, *values: object) -> list[dict[str, Any]]:
    with psycopg.connect(url) as db:
        cursor = db.execute(select, values)
        assert cursor.description
        names = [column.name for column in cursor.description]
        return [dict(zip(names, line, strict=True)) for line in cursor]


def checked(world: World, log: list[Record], found: Found) -> Found:
    url = world.postgres.url()
    facts, rejected = _read(world, log)
    arrivals = Arrivals.of(facts.values(), world.plan.program.delays)
    found.records = len(log)
    _check_events(url, facts, rejected, arrivals, found)
    _check_answers(world, arrivals, found)
    _check_alerts(world, found)
    _check_secrets(world, found)
    return found


def _read(world: World, log: Iterable[Record]) -> tuple[dict[Place, Fact], set[Place]]:
    program = world.plan.program
    facts: dict[Place, Fact] = {}
    rejected: set[Place] = set()
    for record in log:
        try:
            line = record.value.decode("utf-8-sig").rstrip("\r\n")
            facts[record.place] = fact_with_arrival(line, program, "arrival", record.arrival)
        except (RejectedEvent, UnicodeDecodeError):
            rejected.add(record.place)
    return facts, rejected


def _check_events(
    url: str, facts: dict[Place, Fact], rejected: set[Place], arrivals: Arrivals, found: Found
) -> None:
    """Each event once: read, late or rejected, and those that are kept at their places."""
    kept: dict[str, Counter[Place]] = {}
    for view in ("late_facts", "rejected_events"):
        lines = rows(url, f"select source, place from {view}")
        kept[view] = Counter((line["source"].rpartition("/")[2], line["place"]) for line in lines)
        if twice := [place for place, times in kept[view].items() if times > 1]:
            found.wrong.append(f"{view}: {len(twice)} stored twice, such as {twice[0]}")
    refused = set(kept["rejected_events"])
    if refused != rejected:
        odd = sorted(refused ^ rejected)
        which = "rejected, and should not be" if odd[0] in refused else "not rejected"
        reasons = rows(
            url, "select reason from rejected_events where place = %s limit 1", odd[0][1]
        )
        found.wrong.append(f"{len(odd)} events such as {odd[0]} are {which} {reasons}")
    late = {place for place, fact in facts.items() if fact.atom not in arrivals.first}
    # A copy that comes after the bound of a fact in time is the same fact. Where its group is gone
    # nobody can know that any more, and it is shown as late.
    bounds = {place: fact.arrival > arrivals.first.get(fact.atom, fact.arrival)
              for place, fact in facts.items()}  # fmt: skip
    copies = {place for place, after in bounds.items() if after}
    if missing := late - set(kept["late_facts"]):
        found.wrong.append(f"{len(missing)} late facts are not shown, such as {min(missing)}")
    if more := set(kept["late_facts"]) - late - copies:
        found.wrong.append(f"{len(more)} facts are late, and should not be, such as {min(more)}")
    [read] = rows(
        url,
        "select coalesce(sum(facts), 0)::int as facts, coalesce(sum(late), 0)::int as late, "
        "coalesce(sum(rejected), 0)::int as rejected from batches",
    )
    found.facts, found.late, found.rejected = read["facts"], read["late"], read["rejected"]
    if sum(read.values()) != found.records:
        by_log = {"in time": sum(f.atom in arrivals.first for f in facts.values()),
                  "copies": len(copies), "late": len(late), "rejected": len(rejected)}  # fmt: skip
        found.wrong.append(f"{read} do not add up to {found.records}, in the log {by_log}")


def _check_answers(world: World, arrivals: Arrivals, found: Found) -> None:
    url = world.postgres.url()
    [run] = rows(url, "select id, complete_tau from runs")
    said = ordered(
        [
            {"status": status, **line}
            for status in ("pending", "confirmed", "refuted")
            for line in rows(url, f"select {COLUMNS} from {status}_answers")
        ]
    )
    found.answers = Counter(line["status"] for line in said)
    said = comparable(said)
    wanted = expected(world.plan.program, arrivals.first, run["complete_tau"])
    # Two queries of one name give the same answer twice, and so must the store.
    there, right = (Counter(json.dumps(line, sort_keys=True) for line in lines)
                    for lines in (said, wanted))  # fmt: skip
    for odd, what in ((there - right, "invented"), (right - there, "missing")):
        if odd:
            found.wrong.append(f"{odd.total()} answers {what}, such as {min(odd)}")


def _check_alerts(world: World, found: Found) -> None:
    url = world.postgres.url()
    sent = [json.loads(line) for line in world.hooks.read_text().splitlines()]
    found.alerts = len({one["headers"]["webhook-id"] for one in sent})
    found.repeats = len(sent) - found.alerts
    waiting = rows(url, "select status, count(*) from outbox group by 1")
    if any(line["status"] != "delivered" for line in waiting):
        found.wrong.append(f"alerts not delivered: {waiting}")
    known = {line["webhook_id"] for line in rows(url, "select webhook_id from outbox")}
    ids: dict[tuple[str, ...], set[str]] = defaultdict(set)
    bodies: dict[str, set[str]] = defaultdict(set)
    for one in sent:
        try:
            said: Any = Webhook(world.secret).verify(one["body"], one["headers"])
        except WebhookVerificationError as error:
            found.wrong.append(f"an alert is not signed: {error}")
            continue
        ids[said["type"], said["query"], said["answer"]].add(one["headers"]["webhook-id"])
        bodies[one["headers"]["webhook-id"]].add(one["body"])
    if known != set(bodies):
        found.wrong.append(f"{len(known ^ set(bodies))} alerts lost, or sent and not known")
    if several := [what for what, under in ids.items() if len(under) > 1]:
        found.wrong.append(f"under several ids: {several[:3]}")
    if several := [i for i, said in bodies.items() if len(said) > 1]:
        found.wrong.append(f"with several bodies: {several[:3]}")
    for status in ("confirmed", "refuted"):
        told = {what[1:] for what in ids if what[0] == f"answer.{status}"}
        there = {(line["query"], line["answer"])
                 for line in rows(url, f"select query, answer from {status}_answers")}  # fmt: skip
        # A refuted answer may become pending again by other evidence.
        if there - told or (status == "confirmed" and told - there):
            found.wrong.append(
                f"{status}: {len(there - told)} were not told, {len(told - there)} are not so"
            )


def _check_secrets(world: World, found: Found) -> None:
    """No log of the round holds a secret; process lists were looked at while it went on."""
    words = secrets_of(world)
    logs = [*world.folder.rglob("*.log"), *world.disk.folder.rglob("*.log")]
    logs += [p for p in world.folder.rglob("std*") if p.is_file()]
    for log in logs:
        text = log.read_text(errors="replace")
        if any(word in text for word in words):
            found.wrong.append(f"a secret stands in {log.name}")


def secrets_of(world: World) -> tuple[str, ...]:
    return world.secret.removeprefix("whsec_"), world.postgres.password


def look_at_processes(world: World, found: Found) -> None:
    cluster = world.cluster.processes if world.cluster else []
    parents = [child.pid for child in world.children] + [p.pid for p in cluster]
    words = secrets_of(world)
    for parent in parents:
        for pid in (parent, *family(parent)) if parent is not None else ():
            if any(word in command_line(pid) for word in words):
                found.wrong.append(f"a secret stands in the process list: {pid}")
