"""A store that dies under a run: the run waits for it, and says the same as without the fault."""

from __future__ import annotations

import json
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from monitor.display import Totals
from monitor.metrics import Metrics
from monitor.patience import ExecutorLost, Patience, passes
from monitor.run import Happening, Options
from monitor.sources import parse_source
from monitor.start import Counts, Loaded, Settings, _in_a_line, _watched, make_run
from resolution.facts import Arrivals, fact_of
from resolution.program import load
from storage import embedded
from storage.errors import StagingLost, StoreDown, StoreRefused
from storage.store import open_store
from storage.writer import Writer
from tests.monitor.conftest import Monitor, comparable, expected

PAIRS = """
    stream p(x) delay 4.
    stream r(x) delay 4.
    q(X, T) <- p(X, T), r(X, T).
    query q(X, T).
"""


def kill(home: Path) -> None:
    pid = embedded.pid(home)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("moment", ["before a batch", "between staging and commit"])
def test_a_killed_store_costs_time_only(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    program = load(PAIRS)
    events = [
        {"fact": "pr"[n // 5 % 2], "args": [f"k{n % 5}"], "time": at, "arrival": at + n % 6}
        for n, at in ((n, n // 10) for n in range(60))
    ]
    (folder := tmp_path / "facts").mkdir()
    for number in range(4):
        lines = [json.dumps(event) for event in events[number::4]]
        (folder / f"{number}.jsonl").write_text("\n".join(lines))
    home = tmp_path / "home"
    home.mkdir()
    killed = threading.Event()
    totals = Totals()

    def happened(what: Happening) -> None:
        totals.add(what)
        if moment == "before a batch" and totals.batches == 2 and not killed.is_set():
            killed.set()
            kill(home)

    commit = Writer.commit_batch

    def killing(writer: Writer, run: int, batch: int, *more: Any) -> Any:
        if moment != "before a batch" and batch == 1 and not killed.is_set():
            killed.set()
            kill(home)
        return commit(writer, run, batch, *more)

    monkeypatch.setattr(Writer, "commit_batch", killing)
    options = Options(once=True, most_files=1)
    loaded, sources = Loaded.of("killed", program), [parse_source(str(folder))]
    with open_store(home=home) as store:
        run = make_run(spark, store, home, loaded, sources, options, watch=happened)
        counts = Counts(store.url("reader"), run.number)
        settings = Settings(sources, options)
        try:
            _watched(run, threading.Event(), totals, counts, Metrics(run.clock), settings)
        finally:
            run.close()
        said = Monitor(spark, store, home, loaded, sources)
        facts = [fact_of(event, program) for event in events]
        log = Arrivals.of(facts, program.delays)
        assert killed.is_set()
        assert comparable(said.answers()) == expected(
            program, log.first, max(fact.arrival for fact in facts)
        )
        assert totals.facts + totals.late == len(events)
        assert len(said.late()) == totals.late > 0
        seen = said.read("select sum(facts) as n from delays")
        assert seen == [{"n": len(events)}]


def test_a_batch_whose_executor_was_lost_is_computed_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = tmp_path / "facts.jsonl"
    facts.write_text(
        '{"fact": "p", "args": ["a"], "time": 0}\n{"fact": "r", "args": ["a"], "time": 0}'
    )
    seen = iter([{"a", "b"}, {"a", "c"}])
    monkeypatch.setattr("monitor.run._executors", lambda _: next(seen, {"a", "c"}))
    totals = Totals()
    options = Options(once=True)
    loaded, sources = Loaded.of("lost", load(PAIRS)), [parse_source(str(facts))]
    with open_store(home=tmp_path) as store:
        run = make_run(spark, store, tmp_path, loaded, sources, options, watch=totals.add)
        counts = Counts(store.url("reader"), run.number)
        try:
            _watched(
                run,
                threading.Event(),
                totals,
                counts,
                Metrics(run.clock),
                Settings(sources, options),
            )
        finally:
            run.close()
        assert next(seen, None) is None
        assert (totals.batches, totals.facts) == (1, 2)
        said = Monitor(spark, store, tmp_path, loaded, sources).answers()
        assert [line["answer"] for line in said] == ["q(a, 0)"]


def streaming(text: str) -> StreamingQueryException:
    return StreamingQueryException(text)


@pytest.mark.parametrize(
    ("failed", "again"),
    [
        (StoreDown("the store does not answer"), True),
        (StagingLost("compute it again"), True),
        (ExecutorLost("one of two"), True),
        (streaming("…\nmonitor.patience.ExecutorLost: one of two"), True),
        (streaming("aborted\norg.apache.spark.shuffle.FetchFailedException: gone"), True),
        (StoreRefused("wrong password"), False),
        (streaming("…\nstorage.errors.StoreDown: the store does not answer"), True),
        (streaming("…\norg.apache.kafka.common.errors.TimeoutException: no node"), True),
        (streaming("…\nstorage.errors.StoreRefused: wrong password"), False),
        (streaming("…\norg.apache.kafka.common.errors.SaslAuthenticationException: no"), False),
        (ValueError("ours"), False),
    ],
)
def test_what_passes(failed: Exception, again: bool) -> None:
    assert passes(failed) is again
    assert Patience(live=True).has(failed) is again


def test_a_replay_gives_up_and_a_live_run_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr("monitor.patience.time.monotonic", lambda: now[0])
    replay, live = Patience(live=False), Patience(live=True)
    down = StoreDown("away")
    assert replay.has(down)
    assert live.has(down)
    now[0] += 1000
    assert not replay.has(down)
    assert live.has(down)
    replay.worked()
    assert replay.has(down)


def test_the_pauses_grow_to_an_end() -> None:
    patience = Patience(live=True)
    assert [patience.pause() for _ in range(7)] == [1, 2, 4, 8, 16, 30, 30]
    patience.worked()
    assert patience.pause() == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("…\nstorage.errors.StoreDown: the store does not answer", "the store does not answer"),
        (
            '[STREAM_FAILED] Query terminated\n  File "run.py", line 1\n'
            'psycopg.errors.UndefinedColumn: column "matched" does not exist\n'
            "py4j.Py4JException: An exception was raised by the Python Proxy",
            'UndefinedColumn: column "matched" does not exist',
        ),
        (
            "org.apache.spark.SparkException: Job aborted\n"
            "Caused by: java.io.FileNotFoundException: facts.jsonl",
            "FileNotFoundException: facts.jsonl",
        ),
        (
            "org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while "
            "reading file file:///logs/a%20b.jsonl.gz.  SQLSTATE: KD001\n"
            "Caused by: java.io.EOFException: Unexpected end of input stream",
            "/logs/a b.jsonl.gz cannot be read (EOFException: Unexpected end of input stream): "
            "put a whole one in its place, and start the run again",
        ),
        ("ValueError: ours\norg.apache.spark.SparkException: Job aborted", "ValueError: ours"),
        ("nothing that we know", "nothing that we know"),
    ],
)
def test_a_failure_is_told_by_its_cause(text: str, said: str) -> None:
    assert _in_a_line(streaming(text)) == said
