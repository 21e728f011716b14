"""Answer: everything about one answer, above all why it is what it is."""

from __future__ import annotations

from uuid import UUID

import streamlit as st

from dashboard import queries
from dashboard.explained import derivation
from dashboard.live import show
from dashboard.markup import Node, bag, h, link
from dashboard.queries import Alert, Answer, Event, Run, Triple, Whole
from dashboard.scope import clock_of, empty, refreshed, runs, source
from dashboard.timeline import timeline
from dashboard.times import Clock
from dashboard.words import must_happen, waits_for


def draw() -> None:
    _drawn()


def _wanted() -> tuple[Run, UUID] | None:
    """The run and the answer that the URL names; without a run, the current one that has it."""
    try:
        answer_id = UUID(st.query_params.get("id", ""))
    except ValueError:
        return None
    number = st.query_params.get("run", "")
    if number.isdigit() and len(number) < 10:
        run = source().ask(queries.run, int(number))
        return (run, answer_id) if run is not None else None
    for run in runs():
        if source().ask(queries.whole_answer, run.id, answer_id) is not None:
            return run, answer_id
    return None


@refreshed
def _drawn() -> None:
    if "id" not in st.query_params:
        show(
            "answer",
            empty("No answer is chosen.", "Open one from Now, Pending, Confirmed or Refuted."),
        )
        return
    wanted = _wanted()
    whole = source().ask(queries.whole_answer, wanted[0].id, wanted[1]) if wanted else None
    if wanted is None or whole is None:
        show(
            "answer",
            empty(
                "There is no such answer in the store.",
                "Its run may have been pruned, or the address is incomplete.",
            ),
        )
        return
    run = wanted[0]
    clock = clock_of(run)
    shown = next((t for t in whole.triples if t.id == whole.answer.shown), None)
    show(
        "answer",
        _head(run, whole.answer, clock),
        h("section", h("h2", "Why"), *_why(whole, shown, clock)),
        h(
            "section",
            h("h2", "Time line"),
            timeline(shown, whole.answer.since, whole.answer.decided_at, clock),
        )
        if shown is not None
        else None,
        _rules(whole, shown, clock),
        h("section", h("h2", "History"), _history(whole.history, clock)),
        h("section", h("h2", "Alerts"), _alerts(whole.alerts, clock)),
    )


def _rules(whole: Whole, shown: Triple | None, clock: Clock) -> Node | None:
    if shown is None:
        return None
    led = derivation(whole.explained, shown, whole.answer.answer, whole.program, clock)
    return h("section", h("h2", "Rules that lead to it"), led) if led is not None else None


def _head(run: Run, answer: Answer, clock: Clock) -> Node:
    told: list[Node] = [h("span", answer.status, class_=f"pill {answer.status}")]
    if answer.status == "pending":
        told += [h("span", clock.left(answer.deadline), class_="big")]
        if answer.deadline is not None:
            told += [h("span", "until ", clock.at(answer.deadline))]
    else:
        told += [h("span", "at ", clock.at(answer.decided_at))]
    told += [h("span", "since ", clock.at(answer.since), class_="quiet")]
    if not run.current:
        told += [h("span", "of a run that was superseded", class_="pill failed")]
    return bag("head", h("h1", clock.atom(answer.answer), class_="title"), bag("facts", *told))


def _why(whole: Whole, shown: Triple | None, clock: Clock) -> list[Node]:
    answer = whole.answer
    if shown is None:
        return [h("p", "What speaks for it is no longer in the store.")]
    if answer.status == "confirmed":
        last = max(shown.arrivals, default=answer.since)
        return [
            h("p", "All of its evidence arrived, the last at ", clock.at(last), ":"),
            _evidence(shown, clock),
        ]
    if answer.status == "refuted":
        told: list[Node] = []
        if answer.reason:
            told += [
                h("code", clock.atom(answer.reason)),
                " did not come: it could have arrived until ",
                clock.at(answer.decided_at),
                ". Nothing else is left that would make it true.",
            ]
        else:
            told += ["What it waited for came another way; nothing is left to make it true."]
        return [h("p", *told), h("p", "This spoke for it:"), _evidence(shown, clock)]
    ways = [t for t in whole.triples if t.live]
    nodes: list[Node] = [
        h("p", "It is confirmed if this happens:"),
        h("ul", *must_happen(shown, clock), class_="must"),
        h("p", "This speaks for it so far:"),
        _evidence(shown, clock),
    ]
    others = [t for t in ways if t.id != shown.id]
    if others:
        nodes.append(
            h(
                "details",
                h(
                    "summary",
                    f"{len(others)} other way{'' if len(others) == 1 else 's'} to complete it",
                ),
                *(h("ul", *must_happen(t, clock), class_="must", key=str(t.id)) for t in others),
            )
        )
    return nodes


def _evidence(triple: Triple, clock: Clock) -> Node:
    return h(
        "ul",
        *(
            h("li", h("code", clock.atom(fact)), " arrived at ", clock.at(arrival))
            for fact, arrival in zip(triple.evidence, triple.arrivals, strict=True)
        ),
        class_="must",
    )


_EVENTS = {
    "pending": "became pending",
    "progressed": "another way to complete it",
    "confirmed": "was confirmed",
    "refuted": "was refuted",
}


def _history(history: list[Event], clock: Clock) -> Node:
    if not history:
        return h("p", "Its history was pruned.", class_="quiet")
    items = []
    for event in history:
        waits = waits_for(event.hypotheses or (), (), clock) if event.event != "refuted" else []
        said = h("small", ", waiting for ", *waits) if waits else None
        items.append(h("li", clock.at(event.tau), " ", _EVENTS[event.event], said))
    return h("ul", *items, class_="history")


def _alerts(alerts: list[Alert], clock: Clock) -> Node:
    if not alerts:
        return h(
            "p",
            "No endpoint asked for alerts about it; see ",
            link("health", "Health"),
            ".",
            class_="quiet",
        )
    items = []
    for alert in alerts:
        done = alert.done_at or alert.next_at
        said = {
            "waiting": "waits to be sent to",
            "delivered": "was delivered to",
            "dead": "could not be delivered to",
        }
        items.append(
            h(
                "li",
                h("time", time=round(done.timestamp() * 1000), unit=1000),
                f" {alert.event}: {said[alert.status]} ",
                h("b", alert.endpoint),
                f" ({alert.attempts} tries)" if alert.attempts > 1 else None,
                h("small", f" {alert.error}")
                if alert.error and alert.status != "delivered"
                else None,
            )
        )
    return h("ul", *items, class_="history")
