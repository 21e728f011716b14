"""What the store says after puts, drops and complete time points."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from storage.errors import StoreDown, StoreError, StoreFull, StoreReadOnly
from storage.staging import stage_changes
from storage.store import Store
from storage.writer import BatchFigures, Writer
from tests.storage.changes import Running, a_program, dropped, table, triple

PENDING = "select answer, hypotheses, deadline, since from all_pending_answers where run = :run"
CONFIRMED = "select answer, evidence, since, decided_at from all_confirmed_answers where run = :run"
REFUTED = "select answer, since, decided_at, reason from all_refuted_answers where run = :run"
COUNTS = "select pending, confirmed, refuted from counts where run = :run"


def worked(running: Running) -> None:
    """The worked example of SEMANTICS, cut where the arrivals are."""
    high = "Temp(wt2, high, {})".format
    first = triple("Malf(wt2, 0)", [high(0)], [high(1), high(2)], start=0, deadline=2)
    running.apply(first, tau=0)
    assert running.read(PENDING) == [("Malf(wt2, 0)", [high(1), high(2)], 2, 0)]
    running.apply(
        {**first, "end": 2},
        triple("Malf(wt2, 0)", [high(0), high(1), high(2)], start=2),
        triple("Malf(wt2, 1)", [high(1), high(2)], [high(3)], start=2, deadline=4),
        triple("Malf(wt2, 2)", [high(2)], [high(3), high(4)], start=2, deadline=4),
        tau=2,
    )


def test_the_worked_example(running: Running) -> None:
    high = "Temp(wt2, high, {})".format
    worked(running)
    assert running.read(CONFIRMED) == [("Malf(wt2, 0)", [high(0), high(1), high(2)], 0, 2)]
    assert sorted(running.read(PENDING)) == [
        ("Malf(wt2, 1)", [high(3)], 4, 2),
        ("Malf(wt2, 2)", [high(3), high(4)], 4, 2),
    ]
    assert running.read(COUNTS) == [(2, 1, 0)]
    running.complete(3)
    assert len(running.read(PENDING)) == 2
    done = running.complete(4)
    assert (done.pending, done.confirmed, done.refuted) == (0, 0, 2)
    assert running.read(PENDING) == []
    assert sorted(running.read(REFUTED)) == [
        ("Malf(wt2, 1)", 2, 4, high(3)),
        ("Malf(wt2, 2)", 2, 4, high(3)),
    ]
    assert running.read(COUNTS) == [(0, 1, 2)]


def test_views_have_the_columns_of_semantics_first(running: Running) -> None:
    names = "query answer bindings evidence hypotheses conditions deadline since decided_at reason"
    for status in ("pending", "confirmed", "refuted"):
        columns = running.read(
            "select column_name from information_schema.columns where table_name = %s "
            "order by ordinal_position",
            f"{status}_answers",
        )
        assert [name for (name,) in columns][:10] == names.split()
    for view in ("late_facts", "rejected_events"):
        columns = running.read(
            "select column_name from information_schema.columns where table_name = %s "
            "order by ordinal_position",
            view,
        )
        first = ["event", "source", "place", "arrival", "reason"]
        assert [name for (name,) in columns][:5] == first


def test_a_batch_replayed_changes_nothing(running: Running) -> None:
    row = triple("a", [], ["h"], start=0, deadline=9)
    running.apply(row, tau=0)
    before = running.read("select * from triples where run = :run")
    again = running.apply({**row, "end": 1}, tau=5, batch=0)
    assert again.replayed
    assert running.read("select * from triples where run = :run") == before
    assert running.read("select complete_tau, last_batch from runs where id = :run") == [(0, 0)]
    assert running.read("select count(*) from staged_changes where run = :run") == [(0,)]


def test_a_task_tried_again_replaces_what_it_staged(running: Running) -> None:
    url, run = running.store.url("writer"), running.run
    rows = [triple(f"a{n}", [], ["h"], start=0) for n in range(10)]
    stage_changes(url, run, 0, 0, [table(rows)])
    with ThreadPoolExecutor(4) as pool:  # speculative copies of one task, at once
        for _ in pool.map(lambda _: stage_changes(url, run, 0, 0, [table(rows[:4])]), range(4)):
            pass
    stage_changes(url, run, 0, 1, [table(rows[4:6]), table([])])
    running.writer.commit_batch(run, 0, 0)
    assert running.read("select count(*) from all_pending_answers where run = :run") == [(6,)]


def test_a_large_batch_leaves_what_others_staged(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Staging is emptied at once where nobody else uses it, and only there."""
    monkeypatch.setattr("storage.writer._WORTH_EMPTYING", 1)
    other = Running(running.store, a_program())
    url = running.store.url("writer")
    rows = [triple(f"a{n}", start=0) for n in range(5)]
    stage_changes(url, other.run, 0, 0, [table(rows)])
    running.apply(*rows, tau=0)
    other.writer.commit_batch(other.run, 0, 0)
    assert other.read(COUNTS) == [(0, 5, 0)]
    running.apply(*(triple(f"b{n}", start=0) for n in range(5)), tau=0)
    with psycopg.connect(url) as db:  # somebody is staging: its lock is respected
        db.execute("lock table staged_changes in row exclusive mode")
        running.apply(*(triple(f"c{n}", start=0) for n in range(5)), tau=0)
    assert running.read(COUNTS) == [(0, 15, 0)]
    assert running.read("select count(*) from staged_changes where run = :run") == [(0,)]
    other.close()


def test_an_answer_may_come_back_and_its_since_be_corrected(running: Running) -> None:
    gone = triple("a", ["e"], ["h"], start=2, deadline=4)
    running.apply(gone, tau=5)
    assert running.read(REFUTED) == [("a", 2, 4, "h")]
    later = triple("a", ["f"], ["h", "g"], start=6, deadline=9)
    running.apply(later, tau=6)
    assert running.read(REFUTED) == []
    assert running.read(PENDING) == [("a", ["h", "g"], 9, 2)]
    running.apply(triple("a", ["e0"], ["k"], start=1, end=2), tau=6)
    assert running.read(PENDING) == [("a", ["h", "g"], 9, 1)]
    running.apply(dropped(triple("a", ["e0"], ["k"], start=1, end=2)), tau=6)
    assert running.read(PENDING) == [("a", ["h", "g"], 9, 2)]
    running.apply({**later, "end": 7}, triple("a", ["f", "h"], start=7), tau=7)
    assert running.read(CONFIRMED) == [("a", ["f", "h"], 2, 7)]
    assert running.read(COUNTS) == [(0, 1, 0)]


def test_an_answer_whose_triples_are_all_dropped_never_was(running: Running) -> None:
    row = triple("a", ["e"], ["h"], start=2, deadline=4)
    running.apply(row, triple("b", start=2), tau=2)
    running.apply(dropped(row), tau=2)
    assert running.read(PENDING) == []
    assert running.read(COUNTS) == [(0, 1, 0)]


def test_who_came_and_went_within_one_batch_is_refuted(running: Running) -> None:
    running.apply(triple("a", ["e"], ["h"], start=2, deadline=4), tau=10)
    assert running.read(REFUTED) == [("a", 2, 4, "h")]


def test_a_triple_that_leaves_after_the_last_live_one_closes_keeps_its_row(
    running: Running,
) -> None:
    """An arrival at 9 is known already, at 5 nothing is left to wait for; so it is over at 9."""
    running.apply(
        triple("a", ["e"], ["h"], start=0, deadline=5, op="first"),
        triple("a", ["e"], ["g", "k"], start=0, end=9, deadline=12, op="first"),
        tau=1,
        over=1,
    )
    running.complete(8)
    assert running.read(REFUTED) == []
    running.complete(9)
    assert running.read(REFUTED) == [("a", 0, 9, None)]


def test_what_one_group_tells_anew_counts_for_the_whole_answer(running: Running) -> None:
    waiting = [triple("a", ["e"], [name], start=3, op="first") for name in "gh"]
    running.apply(*waiting, tau=3, over=3)
    running.apply(triple("a", ["f"], ["k"], start=1, op="new"), tau=3, over=3)
    assert sorted(running.read(PENDING)) == [("a", [name], None, 1) for name in "ghk"]
    running.apply(triple("a", ["d"], start=4, op="new"), tau=4, over=4)
    assert running.read(PENDING) == []
    assert running.read(CONFIRMED) == [("a", ["d"], 1, 4)]


def test_the_reason_is_of_the_triple_that_closed_last(running: Running) -> None:
    running.apply(
        triple("a", ["e"], ["z"], start=0, deadline=4),
        triple("a", ["e"], ["b"], start=0, deadline=6),
        triple("a", ["e"], ["a2"], start=0, deadline=6),
        triple("b", ["e"], ["z"], start=0, deadline=4),
        triple("b", ["e"], ["y"], start=0, deadline=9, end=5),
        tau=20,
    )
    assert sorted(running.read(REFUTED)) == [("a", 0, 6, "a2"), ("b", 0, 5, None)]


def test_arrivals_count_before_their_time_point_is_complete(running: Running) -> None:
    running.apply(triple("a", start=7), triple("b", ["e"], ["h"], start=7, deadline=9), tau=5)
    assert running.read(CONFIRMED) == [("a", ["e"], 7, 7)]
    assert running.read(PENDING) == [("b", ["h"], 9, 7)]


def test_complete_tau_only_grows(running: Running) -> None:
    running.complete(7)
    running.complete(3)
    running.apply(tau=5)
    assert running.read("select complete_tau from runs where id = :run") == [(7,)]


def test_no_triple_waits_for_what_is_confirmed(running: Running) -> None:
    running.apply(triple("a", ["e"], ["h"], start=0), triple("a", ["f"], start=1), tau=1)
    assert running.read(PENDING) == []
    assert running.read(CONFIRMED) == [("a", ["f"], 0, 1)]


def test_history_tells_the_life_of_an_answer(running: Running) -> None:
    first = triple("a", ["e"], ["h", "g"], start=1, deadline=5)
    running.apply(first, tau=1)
    running.apply({**first, "end": 3}, triple("a", ["e", "h"], ["g"], start=3, deadline=5), tau=3)
    running.complete(6)
    running.apply(triple("a", ["k"], ["l"], start=8), tau=8)
    running.apply(triple("a", ["k", "l"], start=9), tau=9)
    told = running.read(
        "select event, tau, waits_for, recorded_at is not null from answer_history "
        "where run = :run order by tau, recorded_at nulls first"
    )
    assert told == [
        ("pending", 1, 2, True),
        ("progressed", 3, 1, True),
        ("refuted", 5, None, False),
        ("progressed", 8, 1, True),
        ("confirmed", 9, 0, True),
    ]


def test_figures_and_delays_add_up(running: Running) -> None:
    figures = BatchFigures(
        facts=10, matched=3, changes=1, latest_arrival=4, delays={("Temp", 0): 2}
    )
    running.apply(triple("a", start=0), tau=0, figures=figures)
    more = BatchFigures(facts=5, delays={("Temp", 0): 1, ("Temp", 3): 1})
    running.apply(tau=4, figures=more)
    select = (
        "select batch, tau, facts, matched, changes from batches where run = :run order by batch"
    )
    assert running.read(select) == [(0, 0, 10, 3, 1), (1, 4, 5, 0, 0)]
    delays = running.read("select stream, delay, facts from delays where run = :run order by 2")
    assert delays == [("Temp", 0, 3), ("Temp", 3, 1)]
    tallies = running.read(
        "select query, pending, confirmed, refuted from tallies where run = :run"
    )
    assert tallies == [("Malf", 0, 1, 0)]


def test_changes_are_notified(running: Running) -> None:
    with psycopg.connect(running.store.url("reader"), autocommit=True) as db:
        db.execute("listen whilst")
        running.apply(triple("a", start=0), tau=0)
        told = next(db.notifies(timeout=30, stop_after=1))
    assert f'"run": {running.run}' in told.payload


def test_a_writer_goes_on_after_its_connection_was_lost(running: Running) -> None:
    running.apply(tau=0)
    with psycopg.connect(running.store.url("writer"), autocommit=True) as db:
        db.execute(
            "select pg_terminate_backend(pid, 10000) from pg_stat_activity "
            "where application_name = 'whilst writer' and datname = current_database()"
        )
    with pytest.raises(StoreDown) as lost:
        running.apply(triple("a", start=1), tau=1)
    assert lost.value.retry
    running.apply(triple("a", start=1), tau=1, batch=running.batch)
    assert running.read(CONFIRMED) == [("a", ["e"], 1, 1)]


@pytest.mark.parametrize(("code", "kind"), [("53100", StoreFull), ("25006", StoreReadOnly)])
def test_a_store_that_takes_nothing_loses_nothing(
    running: Running, code: str, kind: type[StoreError]
) -> None:
    """A server that says, late in the transaction, that its disk is full or it is a standby."""
    with psycopg.connect(running.store.url("owner"), autocommit=True) as db:
        db.execute(
            "create function refuse() returns trigger language plpgsql as "
            f"$$ begin raise exception 'refused' using errcode = '{code}'; end $$"
        )
        db.execute("create trigger refusing before insert on delays execute function refuse()")
        figures = BatchFigures(delays={("Temp", 0): 1})
        row = triple("a", start=1)
        try:
            with pytest.raises(kind) as refused:
                running.apply(row, tau=1, figures=figures)
        finally:
            db.execute("drop function refuse() cascade")
    assert refused.value.retry
    assert running.read(CONFIRMED) == []
    running.writer.commit_batch(running.run, running.batch, 1, figures)
    assert running.read(CONFIRMED) == [("a", ["e"], 1, 1)]


def test_a_run_that_was_pruned_says_so(store: Store) -> None:
    with Writer(store.url("writer")) as writer, pytest.raises(StoreError, match="no run 999999"):
        writer.commit_batch(999_999, 0, 0)


def test_runs_of_a_store_do_not_mix(store: Store) -> None:
    one, two = Running(store, a_program()), Running(store, a_program())
    row = triple("a", ["e"], ["h"], start=0, deadline=3)
    one.apply(row, tau=0)
    two.apply(row, tau=9)
    assert one.read(PENDING) != []
    assert two.read(REFUTED) == [("a", 0, 3, "h")]
    one.close()
    two.close()


def test_plain_views_show_the_current_run(store: Store) -> None:
    program = a_program()
    one = Running(store, program)
    one.apply(triple("old", start=0), tau=0)
    two = Running(store, program)
    two.apply(triple("new", start=0), tau=0)
    select = "select answer from confirmed_answers where program = %s"
    assert two.read(select, program.name) == [("new",)]
    back = Running(store, program, one.checkpoint)
    assert back.run == one.run
    assert two.read(select, program.name) == [("old",)]
    for run in (one, two, back):
        run.close()
