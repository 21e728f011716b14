"""Random programs by groups, cut at random: kernel, packing and writer against the lives alone."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from monitor.store_info import program_info
from resolution.kernel import FACTS, Kernel
from resolution.terms import Atom
from storage.packing import packed
from storage.staging import stage_changes
from storage.store import Store
from tests.random_programs import Case, cases
from tests.resolution.groups import grouped, routing_of
from tests.storage.changes import Running
from tests.storage.model import said, stored

PARTS = 2


class Reading:
    """A run of a case: reads facts batch by batch, each into the groups that it changes."""

    def __init__(self, store: Store, case: Case) -> None:
        program = case.program
        info = program_info("random", case.text, program, list(case.premise_sets))
        self._running = Running(store, info)
        self._routing, self._kernel = routing_of(program), Kernel(program)
        self._arrived: dict[Atom, int] = {}
        self._batch = 0

    def read(self, facts: dict[Atom, int], tau: int | None) -> None:
        """A batch in parts, as tasks stage it. Without τ the log has an end: what is over goes by
        the latest arrival, in each part by its own."""
        self._arrived |= facts
        run, url = self._running.run, self._running.store.url("writer")
        tables: list[list[pa.Table]] = [[] for _ in range(PARTS)]
        for number in range(len(self._routing.queries)):
            rows = grouped(self._routing, number, self._arrived, facts)
            for part, kept in enumerate(tables):
                mine = [row for row in rows if row["group"] % PARTS == part]  # type: ignore[operator]
                over = max((row["arrival"] for row in mine), default=-1) if tau is None else tau
                table = pa.Table.from_pylist(mine, schema=FACTS)
                kept.append(packed(self._kernel.changes(number, table), over))  # type: ignore[arg-type]
        for part, kept in enumerate(tables):
            stage_changes(url, run, self._batch, part, kept)
        over = max(self._arrived.values()) if tau is None else tau
        self._running.writer.commit_batch(run, self._batch, tau, over=over)
        self._batch += 1

    def complete(self, tau: int) -> None:
        self._running.complete(tau)

    def expected(self, tau: int) -> Any:
        rows: list[dict[str, Any]] = []
        for number in range(len(self._routing.queries)):
            whole = grouped(self._routing, number, self._arrived)
            rows += self._kernel.triples(
                number, pa.Table.from_pylist(whole, schema=FACTS)
            ).to_pylist()
        return said(rows, tau), sorted(
            ((r["answer"], r["start"], r["end"]) for r in rows), key=repr
        )

    def stored(self) -> Any:
        lives = self._running.read(
            "select t.answer, l.start_tau, l.end_tau from lives l join triples t "
            "on t.run = l.run and t.answer_id = l.answer_id and t.shown where l.run = :run"
        )
        return stored(self._running), sorted(lives, key=repr)

    def history(self) -> list[Any]:
        return self._running.read(
            "select answer_id, event, tau, triple from history where run = :run order by 1, 2, 3, 4"
        )

    def close(self) -> None:
        self._running.close()


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(case=cases(facts=12), chance=st.randoms(use_true_random=False))
def test_any_reading_of_a_log_says_what_its_lives_say(
    embedded_store: Store, case: Case, chance: random.Random
) -> None:
    facts = list(case.arrivals.first.items())
    if not facts:
        return
    last = max(arrival for _, arrival in facts)

    live = Reading(embedded_store, case)
    rest = sorted(facts, key=lambda fact: fact[1])
    tau = -1
    while rest:
        size = chance.randint(1, len(rest))
        batch, rest = dict(rest[:size]), rest[size:]
        # What is complete has been read: nothing that arrived by then comes later.
        tau = chance.randint(tau, rest[0][1] - 1) if rest and rest[0][1] > tau + 1 else tau
        live.read(batch, tau)
        assert live.stored() == live.expected(tau)
        if chance.random() < 0.3 and rest and rest[0][1] > tau + 1:
            tau = chance.randint(tau, rest[0][1] - 1)
            live.complete(tau)
            assert live.stored() == live.expected(tau)
    live.complete(last)

    replay = Reading(embedded_store, case)
    rest = list(facts)
    chance.shuffle(rest)
    while rest:
        size = chance.randint(1, len(rest))
        replay.read(dict(rest[:size]), None)
        rest = rest[size:]
        assert replay.stored()[0][2] == []  # nothing is refuted before it is complete
    replay.complete(last)

    assert live.stored() == replay.stored() == live.expected(last)
    assert live.history() == replay.history()
    live.close()
    replay.close()
