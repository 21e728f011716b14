"""Confirmed and Refuted: what was decided, the newest first; how many over time; as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from functools import partial
from uuid import UUID

import streamlit as st

from dashboard import filters, paging, queries
from dashboard.charts import Column, columns
from dashboard.live import show
from dashboard.markup import Node, answer_link, count, h, unseen
from dashboard.queries import Decided, Filter, OverTime, Run, Status
from dashboard.scope import chosen_run, clock_of, empty, midnight, refreshed, runs, source
from dashboard.times import Clock

__all__ = ["confirmed", "refuted", "to_csv"]

_STRETCHES = 60
_MOST = 100_000
"""Rows of a CSV file; `whilst sql` writes more."""

Span = tuple[int | None, int | None]


def confirmed() -> None:
    _draw("confirmed")


def refuted() -> None:
    _draw("refuted")


def _draw(status: Status) -> None:
    run = chosen_run()
    if run is None:
        return
    asked = filters.chosen_with_span(run)
    if asked is None:
        return
    wanted, span = asked
    _drawn(status, run.name, wanted, span)
    st.download_button(
        "Download CSV",
        partial(_export, run, status, wanted, span),
        file_name=f"{run.name}-{status}.csv",
        mime="text/csv",
        on_click="ignore",
        help=f"What the filters leave, the newest first, at most {_MOST:,} answers.",
    )


def _place(text: str | None) -> tuple[int, UUID] | None:
    try:
        tau, answer = (text or "").split(".")
        return int(tau), UUID(answer)
    except ValueError:
        return None


@refreshed
def _drawn(status: Status, name: str, wanted: Filter, span: Span) -> None:
    run = next((one for one in runs() if one.name == name), None)
    if run is None:
        return
    clock = clock_of(run)
    text, back = paging.place()
    place = _place(text)
    back = back and place is not None
    found = source().ask(queries.decided, run.id, status, wanted, span, place, back)
    rows, before, after = paging.window(found, place is not None, back)
    time = source().ask(queries.over_time, run.id, status, wanted, span, _STRETCHES)
    show(
        status,
        unseen(status.capitalize()),
        _summary(run, status, wanted, span, time),
        _chart(status, time, clock) if time else None,
        _table(status, rows, clock) if rows else _none(status, wanted, span, place is not None),
        paging.pager(
            status,
            f"{rows[0].decided_at}.{rows[0].answer_id}" if rows and before else None,
            f"{rows[-1].decided_at}.{rows[-1].answer_id}" if rows and after else None,
            away=place is not None,
        ),
    )


def _summary(run: Run, status: Status, wanted: Filter, span: Span, time: OverTime | None) -> Node:
    counts = source().ask(queries.queries_now, run.id, midnight())
    total = sum(getattr(one, status) for one in counts)
    if not wanted and span == (None, None):
        return h("p", h("b", count(total)), f" {status}", class_=f"summary {status}")
    found = sum(time.counts) if time else 0
    told = f" {status} of {count(total)}"
    return h("p", h("b", count(found)), told, class_=f"summary {status}")


def _chart(status: Status, time: OverTime, clock: Clock) -> Node:
    found = [
        Column(number, f"{number:,} at τ {time.first + place * time.width}")
        for place, number in enumerate(time.counts)
    ]
    each = clock.span(time.width)
    last = time.first + len(time.counts) * time.width - 1
    return columns(
        f"{status.capitalize()} in each {each}",
        found,
        (clock.at(time.first), clock.at(last)),
        top=f"up to {max(time.counts):,}",
        kind=status,
    )


def _none(status: Status, wanted: Filter, span: Span, placed: bool) -> Node:
    if placed:
        return empty("Nothing is left on this page.", "Go to First.")
    if wanted or span != (None, None):
        return empty(f"No {status} answer matches.", "Clear a filter to see more.")
    if status == "confirmed":
        return empty(
            "Nothing is confirmed yet.", "An answer is confirmed when all of its evidence arrived."
        )
    return empty(
        "Nothing is refuted yet.",
        "A pending answer is refuted when what it waits for can no longer arrive.",
    )


def _table(status: Status, rows: Iterable[Decided], clock: Clock) -> Node:
    heads = ["Answer", "Query", status.capitalize(), "Since"]
    if status == "refuted":
        heads.insert(2, "Did not come")
    return h(
        "table",
        h("thead", h("tr", *(h("th", text, scope="col") for text in heads))),
        h("tbody", *(_row(status, one, clock) for one in rows)),
        class_="rows",
    )


def _row(status: Status, one: Decided, clock: Clock) -> Node:
    reason = h("td", clock.atom(one.reason) if one.reason else "–", class_="waits")
    return h(
        "tr",
        h("td", answer_link(one.run, one.answer_id, clock.atom(one.answer)), class_="main"),
        h("td", one.query, class_="query"),
        reason if status == "refuted" else None,
        h("td", clock.at(one.decided_at), class_="time due"),
        h("td", clock.at(one.since), class_="time since"),
        class_="opens",
        key=str(one.answer_id),
    )


def _export(run: Run, status: Status, wanted: Filter, span: Span) -> bytes:
    rows = source().read(queries.decided, run.id, status, wanted, span, None, False, _MOST)
    return to_csv(rows).encode()


def to_csv(rows: Iterable[Decided]) -> str:
    """The answers with a column for each variable. What a spreadsheet would run as a formula is
    led by an apostrophe, as it would show it."""
    rows = list(rows)
    names = list(dict.fromkeys(name for one in rows for name in one.bindings))
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["query", "answer", *names, "since", "decided_at", "reason"])
    for one in rows:
        values = (one.bindings.get(name) for name in names)
        cells = (one.query, one.answer, *values, one.since, one.decided_at, one.reason)
        writer.writerow([_cell(cell) for cell in cells])
    return out.getvalue()


def _cell(value: object) -> object:
    if isinstance(value, str) and value[:1] in "=+-@\t\r" and value:
        return "'" + value
    return value
