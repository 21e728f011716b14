"""Pending: every answer that may still come, by deadline; millions of them, a page at a time."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from dashboard import filters, paging, queries
from dashboard.live import show
from dashboard.markup import Node, answer_link, bag, count, h, unseen
from dashboard.queries import Filter, Pending, Place, Run
from dashboard.scope import chosen_run, clock_of, empty, midnight, refreshed, runs, source
from dashboard.times import Clock
from dashboard.words import evidence_of, waits_for


def draw() -> None:
    run = chosen_run()
    if run is None:
        return
    wanted = filters.chosen(run)
    if wanted is not None:
        _drawn(run.name, wanted)


def _text(row: Pending) -> str:
    deadline = "" if row.deadline is None else row.deadline
    return f"{deadline}.{row.answer_id}.{row.triple}"


def _place(text: str | None) -> Place | None:
    """The row that the URL names; a URL that somebody bent begins at the start."""
    try:
        deadline, answer, triple = (text or "").split(".")
        return Place(int(deadline) if deadline else None, UUID(answer), UUID(triple))
    except ValueError:
        return None


@refreshed
def _drawn(name: str, wanted: Filter) -> None:
    run = next((one for one in runs() if one.name == name), None)
    if run is None:
        return
    text, back = paging.place()
    place = _place(text)
    back = back and place is not None
    found = source().ask(queries.pending, run.id, wanted, place, back)
    rows, before, after = paging.window(found, place is not None, back)
    counts = source().ask(queries.queries_now, run.id, midnight())
    total = sum(one.pending for one in counts if wanted.query in (None, one.query))
    show(
        "pending",
        unseen("Pending"),
        _summary(rows, total, wanted),
        _table(rows, clock_of(run)) if rows else _none(wanted, place, run),
        paging.pager(
            "pending",
            _text(rows[0]) if rows and before else None,
            _text(rows[-1]) if rows and after else None,
            away=place is not None,
        ),
    )


def _summary(rows: Sequence[Pending], total: int, wanted: Filter) -> Node:
    told: list[Node] = [h("b", count(total)), " pending"]
    if wanted.bindings or wanted.text:
        told.append(f"; {len(rows)} shown that match")
    return h("p", *told, class_="summary")


def _none(wanted: Filter, place: Place | None, run: Run) -> Node:
    if place is not None:
        return empty(
            "Nothing is left on this page.", "What was here has been decided: go to First."
        )
    if wanted:
        return empty("No pending answer matches.", "Clear a filter to see more.")
    if run.status != "running":
        return empty("Nothing is pending.", "The run has ended; see Confirmed and Refuted.")
    return empty(
        "Nothing is pending.", "An answer shows here as soon as some evidence for it came."
    )


def _table(rows: Sequence[Pending], clock: Clock) -> Node:
    heads = ("Answer", "Query", "Evidence", "Waits for", "Left", "Deadline", "Since")
    return h(
        "table",
        h("thead", h("tr", *(h("th", text, scope="col") for text in heads))),
        h("tbody", *(_row(one, clock) for one in rows)),
        class_="rows",
    )


def _row(one: Pending, clock: Clock) -> Node:
    evidence, hypotheses = len(one.evidence), len(one.hypotheses)
    share = round(100 * evidence / (evidence + hypotheses), 1)
    return h(
        "tr",
        h("td", answer_link(one.run, one.answer_id, clock.atom(one.answer)), class_="main"),
        h("td", one.query, class_="query"),
        h(
            "td",
            evidence_of(evidence, hypotheses),
            bag("meter", h("span", style=f"--w: {share}%")),
            class_="evidence",
        ),
        h("td", *waits_for(one.hypotheses, one.conditions, clock), class_="waits"),
        h("td", clock.left(one.deadline), class_="due"),
        h("td", clock.at(one.deadline), class_="time"),
        h("td", clock.at(one.since), class_="time since"),
        class_="opens",
        key=str(one.triple),
    )
