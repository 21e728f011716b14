"""Putting a run together: program, checkpoint, store and Spark; and seeing it to its end."""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any
from urllib.parse import unquote

import psycopg
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from sqlalchemy.exc import SQLAlchemyError

from monitor import alerts
from monitor.alerts import Alert
from monitor.checkpoint import open_checkpoint
from monitor.clock import Clock
from monitor.display import Totals, display, log, log_to_stderr
from monitor.metrics import Metrics
from monitor.patience import Patience
from monitor.run import Happening, Options, Run
from monitor.sources import Files, Topic
from monitor.spark_session import session
from monitor.store_info import known_to_store, program_info
from monitor.topics import require_log_append_time
from resolution.errors import WhilstError
from resolution.premises import PremiseSet, premise_sets
from resolution.program import Program
from resolution.routing import Routing
from storage.errors import StoreError, translated
from storage.printing import size
from storage.programs import end_run, register_run
from storage.retention import prune
from storage.store import Store, anywhere, home_folder, open_store

_PRUNE_EVERY = 600.0
"""Seconds between two looks for what retention lets go."""

_LAST_ALERTS = 10
"""Seconds that the alerts of the last batch are given; what is left then waits in the store."""


class RunFailed(WhilstError):
    """A run that cannot go on, in one line, and where to read more."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A program, ready to run."""

    name: str
    program: Program
    sets: list[tuple[PremiseSet, ...]]
    routing: Routing

    @classmethod
    def of(cls, name: str, program: Program) -> Loaded:
        sets = [premise_sets(program, query) for query in program.queries]
        return cls(name, program, sets, Routing.of(sets, program.delays))


@dataclass(frozen=True, slots=True)
class Settings:
    """What `whilst run` was told, beside how to run."""

    sources: list[Files | Topic]
    options: Options
    store: str | None = None
    master: str = "local[*]"
    partitions: int | None = None
    fresh: bool = False
    metrics: tuple[str, int] | None = None
    json_logs: bool = False
    spark: dict[str, str] = field(default_factory=dict)
    alerts: dict[str, tuple[Alert, ...]] = field(default_factory=dict)


def make_run(
    spark: SparkSession,
    store: Store,
    home: Path,
    loaded: Loaded,
    sources: list[Files | Topic],
    options: Options,
    *,
    fresh: bool = False,
    watch: Callable[[Happening], None] = lambda _: None,
) -> Run:
    """A run that goes on from its checkpoint in `home`, or begins one. Raises ProgramChanged."""
    names = [str(source) for source in sources]
    settings = {"sources": names, "until": options.until, "arrival": options.arrival_field}
    checkpoint = open_checkpoint(
        home, loaded.name, loaded.program, loaded.sets, settings, fresh=fresh
    )
    info = program_info(loaded.name, checkpoint.text, loaded.program, loaded.sets)
    with store.engine("owner") as engine:
        number = register_run(engine, info, str(checkpoint.folder), names)
    conninfo = anywhere(store.url("writer"))  # executors use it too
    complete, latest = known_to_store(conninfo, number)
    clock = Clock(loaded.program.unit, options.grace, not options.once, complete, latest)
    return Run(
        spark,
        loaded.program,
        loaded.routing,
        sources,
        conninfo,
        number,
        checkpoint,
        clock,
        options,
        watch,
    )


def run_program(loaded: Loaded, settings: Settings) -> str:
    """Run a program until its log is read, or until it is told to end. What came of it, in a line.

    Raises RunFailed, and whatever else says why it cannot even begin.
    """
    log_to_stderr(settings.json_logs)
    topics = [source for source in settings.sources if isinstance(source, Topic)]
    if settings.options.arrival_field is None:
        for topic in topics:
            require_log_append_time(topic)
    home = home_folder().absolute()
    conf = dict(settings.spark)
    if settings.partitions:
        conf["spark.sql.shuffle.partitions"] = str(settings.partitions)
    log_file = home / "logs" / "spark.log"
    with open_store(settings.store, home) as store, _told_to_end() as ended:
        spark = session(settings.master, kafka=bool(topics), log_file=log_file, conf=conf)
        totals = Totals()
        watchers: list[Callable[[Happening], None]] = [totals.add]
        run = make_run(
            spark,
            store,
            home,
            loaded,
            settings.sources,
            settings.options,
            fresh=settings.fresh,
            watch=lambda what: [watcher(what) for watcher in watchers] and None,
        )
        metrics = Metrics(run.clock)
        watchers.append(metrics.happened)
        if settings.metrics is not None:
            host, port = settings.metrics
            log.info(f"metrics at http://{host}:{metrics.serve(host, port)}/metrics")
        counts = Counts(store.url("reader"), run.number)
        delivery = alerts.start(store, settings.alerts)
        error: str | None = "it was killed"
        try:
            with _pruned(store):
                _watched(run, ended, totals, counts, metrics, settings)
            error = None
        except (RunFailed, StoreError, WhilstError) as failed:
            error = str(failed)
            raise
        except (Py4JError, ConnectionError):
            error = "its Java process has ended"
            raise RunFailed(
                f"{error}, by itself or by a signal: start the run again, it goes on "
                f"from its checkpoint (Spark's log is {log_file})"
            ) from None
        except PySparkException as failed:
            error = _in_a_line(failed)
            log_file.parent.mkdir(parents=True, exist_ok=True)
            with log_file.open("a") as file:
                file.write(f"{failed}\n")
            raise RunFailed(f"the stream failed: {error} (all of it in {log_file})") from None
        finally:
            run.close()
            delivery.stop(drain=_LAST_ALERTS)
            with store.engine("owner") as engine:
                end_run(engine, run.number, error)
        told = totals.text(counts.read())
    spark.stop()
    return told


def _watched(
    run: Run,
    ended: threading.Event,
    totals: Totals,
    counts: Counts,
    metrics: Metrics,
    settings: Settings,
) -> None:
    shown = display(settings.options.once, settings.json_logs)
    patience = Patience(live=not settings.options.once)

    def look() -> None:
        if totals.batches > done:
            patience.worked()
        answers = counts.read()
        metrics.answers(answers)
        shown.show(totals, answers, _tasks(run.spark))

    try:
        while True:
            done = totals.batches
            try:
                if _streamed(run, ended, look) and settings.options.once:
                    totals.tau = run.finish()
                return
            except (PySparkException, StoreError) as failed:
                if ended.is_set() or not patience.has(failed):
                    raise
                pause = patience.pause()
                log.warning(f"{_in_a_line(failed)}; the batch is tried again in {pause:.0f} s")
                ended.wait(pause)
    finally:
        shown.close()


def _streamed(run: Run, ended: threading.Event, look: Callable[[], None]) -> bool:
    """Whether the stream came to its end; otherwise it was told to."""
    query = run.start()
    try:
        while not _over(query):
            if run.failure is not None:
                raise run.failure
            if ended.is_set():
                run.let_batch_end(query)
                return False
            look()
        return True
    finally:
        with suppress(Py4JError, ConnectionError):  # where Java has gone, there is nothing to stop
            query.stop()


@contextmanager
def _pruned(store: Store) -> Iterator[None]:
    """What is older than the settings of retention goes while a run goes on."""
    ended = threading.Event()

    def prune_now_and_then() -> None:
        while not ended.wait(_PRUNE_EVERY):
            try:
                with store.engine("owner") as engine:
                    for gone in prune(engine, thorough=False):
                        log.info(f"pruned {gone.table}: {size(gone.bytes)} of {gone.what}")
            except (StoreError, SQLAlchemyError) as error:
                log.warning(f"nothing was pruned: {translated(error) or error}")

    thread = threading.Thread(target=prune_now_and_then, name="whilst prune", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _over(query: StreamingQuery) -> bool:
    """Waits a little; whether the stream is over. Raises what it failed with."""
    return bool(query.awaitTermination(0.25))


def _tasks(spark: SparkSession) -> tuple[int, int] | None:
    """How many tasks of the batch at hand are done, of how many."""
    tracker = spark.sparkContext.statusTracker()
    stages = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
    known = [stage for stage in stages if stage is not None]
    if not known:
        return None
    return sum(s.numCompletedTasks for s in known), sum(s.numTasks for s in known)


@dataclass
class Counts:
    """The answers of a run by status, as the store has them."""

    conninfo: str
    run: int
    _db: psycopg.Connection[Any] | None = None

    def read(self) -> dict[str, int]:
        try:
            if self._db is None or self._db.closed:
                self._db = psycopg.connect(self.conninfo, autocommit=True)
            row: Any = self._db.execute(
                "select coalesce(sum(pending), 0), coalesce(sum(confirmed), 0), "
                "coalesce(sum(refuted), 0) from counts where run = %s",
                (self.run,),
            ).fetchone()
        except psycopg.Error:  # the batches will notice, and say so
            return {}
        return dict(zip(("pending", "confirmed", "refuted"), map(int, row), strict=True))


@contextmanager
def _told_to_end() -> Iterator[threading.Event]:
    """Set by Ctrl-C and SIGTERM: the batch at hand is finished first."""
    ended = threading.Event()

    def end(number: int, frame: FrameType | None) -> None:
        if ended.is_set():
            raise KeyboardInterrupt  # asked twice: at once
        ended.set()

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield ended
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


_CAUSE = re.compile(
    r"(?:Caused by: )?(?:\w+\.)*"
    r"(?P<name>(?<=\.)[A-Z]\w+|[A-Z]\w*(?:Error|Exception|Violation)): (?P<said>.+)"
)
"""A line that names an exception: a class in a module, or one whose name says that it is one."""

_UNREADABLE = re.compile(r"\[FAILED_READ_FILE\.\w+\] .* while reading file (?:file://)?(\S+?)\.\s")


def _in_a_line(error: PySparkException | StoreError) -> str:
    """The innermost cause that a failed stream names, and the file where that is one."""
    if isinstance(error, StoreError):
        return str(error)
    lines = [line.strip() for line in str(error).splitlines()]
    if ours := [line for line in lines if line.startswith("storage.errors.")]:
        return ours[-1].partition(": ")[2]
    causes = [found for line in lines if (found := _CAUSE.match(line))]
    plain = [c for c in causes if not re.search("Py4J|PythonException|Spark|Streaming", c["name"])]
    found = f"{plain[-1]['name']}: {plain[-1]['said']}" if plain else (lines or ["no reason"])[0]
    if unreadable := _UNREADABLE.search(str(error)):
        found = (
            f"{unquote(unreadable[1])} cannot be read ({found}): "
            "put a whole one in its place, and start the run again"
        )
    return found[:300]
