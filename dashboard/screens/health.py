"""Health: what takes no part in answers and why, throughput and lag, state, and deliveries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import streamlit as st

from dashboard import queries
from dashboard.charts import Column, columns
from dashboard.live import show
from dashboard.markup import Node, bag, count, h, unseen
from dashboard.queries import NoPart, Run, Slice
from dashboard.scope import chosen_run, clock_of, empty, refreshed, runs, source
from dashboard.times import Clock, duration

_SPANS = {"10 minutes": (600, 10), "1 hour": (3600, 60), "1 day": (86_400, 1800)}
"""What is looked back at -> seconds, and seconds of a column."""


def draw() -> None:
    run = chosen_run()
    if run is None:
        return
    back = st.segmented_control(
        "Look back",
        list(_SPANS),
        default="10 minutes",
        key="back",
        bind="query-params",
        required=True,
    )
    _drawn(run.name, back if back in _SPANS else "10 minutes")


@refreshed
def _drawn(name: str, back: str) -> None:
    run = next((one for one in runs() if one.name == name), None)
    if run is None:
        return
    clock = clock_of(run)
    seconds, stretch = _SPANS[back]
    found = source().ask(queries.slices, run.id, seconds, stretch)
    late = source().ask(queries.newest_events, run.id, "late")
    rejected = source().ask(queries.newest_events, run.id, "rejected")
    show(
        "health",
        unseen("Health"),
        _run(run, clock),
        _charts(found, seconds, stretch, back),
        h("section", h("h2", "Late facts"), _events(late, clock, "late")),
        h("section", h("h2", "Rejected events"), _events(rejected, clock, "rejected")),
        h("section", h("h2", "Endpoints"), _endpoints(source().ask(queries.endpoints))),
    )


def _wall(at: datetime | None) -> Node:
    return "–" if at is None else h("time", time=round(at.timestamp() * 1000), unit=1000)


def _run(run: Run, clock: Clock) -> Node:
    told: list[Node] = [
        h("span", run.status, class_=f"pill {run.status}"),
        h("span", "since ", _wall(run.started_at)),
        h("span", "last heard of ", _wall(run.seen_at)),
        h("span", "τ ", clock.at(run.complete_tau)),
        h("span", f"batch {run.last_batch:,}"),
        h("span", "reads ", ", ".join(run.sources), class_="quiet") if run.sources else "",
    ]
    failed = bag("banner", h("strong", "The run failed. "), run.error) if run.error else None
    return h("section", bag("facts", *told), failed)


def _charts(found: Sequence[Slice], seconds: int, stretch: int, back: str) -> Node:
    if not found:
        return empty(
            f"No batch in the last {back}.", "Look further back, or see whether the run goes on."
        )
    now = datetime.now(UTC).timestamp()
    first = (now - seconds) // stretch * stretch
    by_place = {round((one.at.timestamp() - first) / stretch): one for one in found}
    places = range(seconds // stretch + 1)
    ends = (h("time", time=round(first * 1000), unit=60_000), "now")

    def chart(
        title: str, value: Callable[[Slice], float | None], said: Callable[[float], str], mark: str
    ) -> Node | None:
        values = [value(by_place[p]) if p in by_place else None for p in places]
        known = [v for v in values if v is not None]
        if not known:
            return None
        if not any(known):
            return h("p", h("b", title), " none", class_="quiet")
        top = f"now {said(known[-1])}, up to {said(max(known))}"
        drawn = [Column(v, "" if v is None else said(v)) for v in values]
        return columns(title, drawn, ends, top=top, kind=mark)

    return bag(
        "charts",
        chart("Facts", lambda s: s.facts_per_second, lambda v: f"{v:,.1f}/s", "confirmed"),
        chart("Lag", lambda s: s.lag_ms, duration, "pending"),
        chart("Not read yet", lambda s: s.behind, count, "pending"),
        chart("A batch takes", lambda s: s.batch_ms, duration, "refuted"),
        chart("Late facts", lambda s: s.late, count, "bad"),
        chart("Rejected events", lambda s: s.rejected, count, "bad"),
        chart("Groups in state", lambda s: s.state_rows, count, "refuted"),
        chart("Size of state", lambda s: s.state_bytes, _bytes, "refuted"),
    )


def _bytes(value: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:,.0f} {unit}"
        value /= 1000
    return f"{value:,.1f} TB"


_NONE = {
    "late": ("No fact was late.", "Facts that arrive after their delay bound are listed here."),
    "rejected": ("No event was rejected.", "Events that state no fact are listed here, and why."),
}


def _events(found: Sequence[NoPart], clock: Clock, kind: str) -> Node:
    if not found:
        return empty(*_NONE[kind])
    heads = ("Event", "Reason", "Where", "Read")
    return h(
        "table",
        h("thead", h("tr", *(h("th", text, scope="col") for text in heads))),
        h(
            "tbody",
            *(
                h(
                    "tr",
                    h("td", one.event, class_="waits event"),
                    h("td", *_reason(one, clock), class_="main"),
                    h("td", f"{one.source} {one.place}", class_="quiet"),
                    h("td", _wall(one.recorded_at), class_="time"),
                )
                for one in found
            ),
        ),
        class_="rows events",
    )


def _reason(one: NoPart, clock: Clock) -> list[Node]:
    """Why it takes no part; of a late fact how late it was, in the times that the page shows."""
    if one.arrival is None or one.time is None or one.delay is None:
        return [one.reason]
    late = clock.span(one.arrival - one.time - one.delay)
    held, arrived = clock.at(one.time), clock.at(one.arrival)
    return [f"{late} after its bound", h("small", "held ", held, ", arrived ", arrived)]


def _endpoints(found: Sequence[dict[str, Any]]) -> Node:
    if not found:
        return empty(
            "There are no endpoints.", "Alerts go to the endpoints that the configuration names."
        )
    heads = ("Endpoint", "State", "Waiting", "Delivered", "Given up", "Last try")
    return h(
        "table",
        h("thead", h("tr", *(h("th", text, scope="col") for text in heads))),
        h("tbody", *(_endpoint(one) for one in found)),
        class_="rows",
    )


def _endpoint(one: dict[str, Any]) -> Node:
    said = "–" if one["tried_at"] is None else f"{one['status_code'] or one['error'] or 'no reply'}"
    state: list[Node] = [h("span", one["status"], class_=f"pill {one['status']}")]
    if one["status_reason"]:
        state.append(h("small", one["status_reason"]))
    return h(
        "tr",
        h("td", one["name"], h("small", one["url"]), class_="main"),
        h("td", *state),
        h("td", count(one["waiting"]), class_="number"),
        h("td", count(one["delivered"]), class_="number"),
        h("td", count(one["dead"]), class_="number"),
        h("td", said, h("small", _wall(one["tried_at"]))),
        key=one["name"],
    )
