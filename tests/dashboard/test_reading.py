"""The way to the store: shared, sparing, and there again after the store was down."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from dashboard import queries
from dashboard.queries import Filter, Place
from dashboard.reading import Source, TooSlow
from storage import embedded
from storage.errors import StoreDown, StoreReadOnly
from storage.store import Store, open_store
from tests.dashboard import demo
from tests.dashboard.loader import Loader


@pytest.fixture
def source(postgres: Store) -> Any:
    one = Source(postgres.url("reader"))
    yield one
    one.close()


def test_what_was_read_a_moment_ago_is_not_read_again(source: Source) -> None:
    asked = []

    def question(db: Any, number: int) -> int:
        asked.append(number)
        return number + 1

    assert [source.ask(question, 1), source.ask(question, 1), source.ask(question, 2)] == [2, 2, 3]
    assert asked == [1, 2]


def test_a_slow_question_is_asked_the_less_often(source: Source) -> None:
    asked = []

    def question(db: Any) -> None:
        asked.append(db.execute("select count(*) from generate_series(1, 2000000)").fetchone())

    source.ask(question)
    began = time.monotonic()
    # It took some tens of milliseconds at least: ten times that is longer than the usual rest.
    source._kept[(question,)].until = began
    source.ask(question)
    kept = source._kept[(question,)].until - time.monotonic()
    assert kept > 0.3
    assert len(asked) == 2


def test_nothing_can_be_written(source: Source) -> None:
    with pytest.raises(StoreReadOnly):
        source.read(lambda db: db.execute("create temporary table x (y int)"))


def test_a_question_that_takes_too_long_says_to_ask_for_less(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dashboard.reading._LIMIT_MS", 50)
    asked = []

    def question(db: Any) -> None:
        asked.append(1)
        db.execute("select count(*) from generate_series(1, 100000000)")

    for _ in range(3):
        with pytest.raises(TooSlow, match="narrow the filters"):
            source.ask(question)
    assert len(asked) == 1, "what takes too long is not tried again at once"
    assert source.trouble is None


def test_what_was_known_is_kept_while_the_store_is_down(new_home: Path) -> None:
    with open_store(home=new_home) as store:
        source = Source(store.url("reader"))
        Loader(store, "turbines", demo.TURBINES)
        (run,) = source.ask(queries.current_runs)
        embedded.stop(new_home)
        source._kept[(queries.current_runs,)].until = 0
        assert source.ask(queries.current_runs) == [run]
        assert source.trouble is not None
        with pytest.raises(StoreDown):
            source.ask(queries.run, run.id)
        with open_store(home=new_home):
            source._again = 0
            source._kept[(queries.current_runs,)].until = 0
            assert [one.id for one in source.ask(queries.current_runs)] == [run.id]
            assert source.trouble is None
        source.close()


def test_pages_of_pending_answers_miss_none_and_repeat_none(
    source: Source, run: Loader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forwards and backwards, with and without deadlines, whatever the size of a page."""
    whole = source.read(queries.pending, run.run, Filter())
    for size in (1, 3, 7):
        monkeypatch.setattr(queries, "PAGE", size)
        for back in (False, True):
            seen: list[Any] = []
            place = None
            if back:
                last = whole[-1]
                place = Place(last.deadline, last.answer_id, last.triple)
                seen.append(last.triple)
            while True:
                found = source.read(queries.pending, run.run, Filter(), place, back)
                rows = found[-size:] if back else found[:size]
                keys = [one.triple for one in rows]
                seen = keys + seen if back else seen + keys
                if len(found) <= size:
                    break
                edge = rows[0] if back else rows[-1]
                place = Place(edge.deadline, edge.answer_id, edge.triple)
            assert seen == [one.triple for one in whole]
