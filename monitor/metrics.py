"""Prometheus metrics of a run, served on a port of its own."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

from monitor.clock import Clock
from monitor.run import BatchDone, Clocked, Happening, Progress

_SECONDS = (0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60, 300)


class Metrics:
    """Counts what happens to a run; τ and its lag are read when they are asked for."""

    def __init__(self, clock: Clock) -> None:
        self.registry = CollectorRegistry()
        own = {"registry": self.registry}
        self._facts = Counter("whilst_facts", "Facts read in time", **own)
        self._late = Counter("whilst_late_facts", "Facts that broke their delay bound", **own)
        self._rejected = Counter("whilst_rejected_events", "Events that state no fact", **own)
        self._changes = Counter("whilst_changes", "Changes of triples", **own)
        self._answers = Gauge("whilst_answers", "Answers by status", ["status"], **own)
        self._batch = Histogram("whilst_batch_seconds", "Time of a batch", buckets=_SECONDS, **own)
        self._rows = Gauge("whilst_state_groups", "Groups in Spark's state", **own)
        self._bytes = Gauge("whilst_state_bytes", "Memory of Spark's state", **own)
        tau = Gauge("whilst_complete_tau", "The last complete time point", **own)
        tau.set_function(lambda: float("nan") if clock.complete is None else clock.complete)
        lag = Gauge(
            "whilst_tau_lag_seconds", "How far the last complete time point is behind", **own
        )
        lag.set_function(lambda: float("nan") if clock.lag is None else clock.lag)
        arrival = Gauge("whilst_latest_arrival", "The time point of the latest arrival", **own)
        arrival.set_function(lambda: float("nan") if clock.latest is None else clock.latest)

    def serve(self, host: str, port: int) -> int:
        """The port that is served: `port`, or a free one for 0."""
        server, _ = start_http_server(port, host, registry=self.registry)
        return int(server.server_port)

    def happened(self, what: Happening) -> None:
        match what:
            case BatchDone():
                self._facts.inc(what.figures.facts)
                self._late.inc(what.late)
                self._rejected.inc(what.rejected)
                self._changes.inc(what.figures.changes)
                self._batch.observe(what.seconds)
            case Progress():
                self._rows.set(what.state_rows)
                self._bytes.set(what.state_bytes)
            case Clocked():
                pass

    def answers(self, counts: dict[str, int]) -> None:
        for status, count in counts.items():
            self._answers.labels(status).set(count)
