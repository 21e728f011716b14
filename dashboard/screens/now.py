"""Now: how many answers there are, how the run does, what decides next. Readable across a room."""

from __future__ import annotations

from dashboard import queries
from dashboard.live import show
from dashboard.markup import Node, answer_link, bag, count, h, link, unseen
from dashboard.queries import Decided, Pending, Pulse, QueryNow, Run
from dashboard.scope import clock_of, empty, midnight, no_runs, refreshed, runs, source
from dashboard.times import Clock
from dashboard.words import waits_for

_ROWS = 8


def draw() -> None:
    _drawn()


@refreshed
def _drawn() -> None:
    since = midnight()
    found = runs()
    if not found:
        show("now", no_runs())
        return
    several = len(found) > 1
    soonest: list[tuple[float, Run, Pending]] = []
    newest: list[tuple[float, Run, Decided]] = []
    sections: list[Node] = []
    for run in found:
        counts = source().ask(queries.queries_now, run.id, since)
        pulse = source().ask(queries.pulse, run.id)
        sections.append(_program(run, counts, pulse, several))
        unit = run.unit_ms or 1
        for one in source().ask(queries.soonest, run.id, _ROWS):
            due = float("inf") if one.deadline is None else one.deadline * unit
            soonest.append((due, run, one))
        confirmed = source().ask(
            queries.decided, run.id, "confirmed", queries.Filter(), (None, None), None, False, _ROWS
        )
        newest += [(one.decided_at * unit, run, one) for one in confirmed]
    soonest.sort(key=lambda item: item[0])
    newest.sort(key=lambda item: -item[0])
    show(
        "now",
        unseen("Now"),
        *sections,
        bag(
            "two",
            h(
                "section",
                h("h2", "Decide soonest"),
                _soonest([(run, one) for _, run, one in soonest[:_ROWS]]),
            ),
            h(
                "section",
                h("h2", "Newest confirmed"),
                _newest([(run, one) for _, run, one in newest[:_ROWS]]),
            ),
        ),
    )


def _program(run: Run, counts: list[QueryNow], pulse: Pulse, several: bool) -> Node:
    name = {"program": run.name} if several else {}
    return h(
        "section",
        bag("strip", h("h2", run.name), *_state(run), *_pulse(run, clock_of(run), pulse)),
        bag("cards", *(_card(run, one, name) for one in counts)),
        key=f"run {run.id}",
    )


def _state(run: Run) -> list[Node]:
    if run.status == "running":
        return []
    text = "finished" if run.status == "finished" else f"failed: {run.error or 'no reason given'}"
    return [h("span", text, class_=f"pill {run.status}")]


def _figure(name: str, value: Node, hint: str, class_: str = "") -> Node:
    return bag(f"figure {class_}".strip(), h("b", value), h("span", name), title=hint)


def _pulse(run: Run, clock: Clock, pulse: Pulse) -> list[Node]:
    shown = [_figure("τ", clock.at(run.complete_tau), "the last complete time point")]
    if clock.ticks:
        # Half a minute behind is a monitor that cannot be trusted to be in time.
        behind = h("span", gone=round(clock.now), most=30_000 + (run.unit_ms or 0))
        shown.append(_figure("behind", behind, "wall time since τ ended"))
    if pulse.behind:
        shown.append(_figure("not read yet", count(pulse.behind), "events in the log", "bad"))
    if run.status == "running":
        shown.append(
            _figure("facts/s", _rate(pulse.facts_per_second or 0), "over the last ten seconds")
        )
    hour = "in the last hour; see Health"
    shown.append(_figure("late", count(pulse.late), hour, "warn" if pulse.late else ""))
    shown.append(_figure("rejected", count(pulse.rejected), hour, "warn" if pulse.rejected else ""))
    return shown


def _rate(number: float) -> str:
    return f"{number:.1f}" if 0 < number < 10 else count(number)


def _card(run: Run, one: QueryNow, name: dict[str, str]) -> Node:
    def number(page: str, value: int, text: str, hint: str) -> Node:
        return bag(
            f"number {page}",
            link(page, count(value), {"query": one.query} | name),
            h("span", text, title=hint),
        )

    return bag(
        "card",
        h("h3", one.atom),
        bag(
            "numbers",
            number("pending", one.pending, "pending", "now"),
            number(
                "confirmed",
                one.confirmed_since,
                "confirmed today",
                f"{one.confirmed:,} in this run",
            ),
            number("refuted", one.refuted_since, "refuted today", f"{one.refuted:,} in this run"),
        ),
        key=one.query,
    )


def _soonest(rows: list[tuple[Run, Pending]]) -> Node:
    if not rows:
        return empty("Nothing is pending.", "Answers that may still come are listed here.")
    items = []
    for run, one in rows:
        clock = clock_of(run)
        items.append(
            h(
                "li",
                bag("clock", clock.left(one.deadline)),
                bag(
                    "what",
                    answer_link(one.run, one.answer_id, clock.atom(one.answer)),
                    h("small", "waits for ", *waits_for(one.hypotheses, one.conditions, clock, 2)),
                ),
                class_="opens",
                key=str(one.answer_id),
            )
        )
    return h("ul", *items, class_="list")


def _newest(rows: list[tuple[Run, Decided]]) -> Node:
    if not rows:
        return empty(
            "Nothing is confirmed yet.", "An answer whose evidence is complete shows here."
        )
    items = []
    for run, one in rows:
        clock = clock_of(run)
        items.append(
            h(
                "li",
                bag("clock", clock.at(one.decided_at)),
                bag("what", answer_link(one.run, one.answer_id, clock.atom(one.answer))),
                class_="opens",
                key=str(one.answer_id),
            )
        )
    return h("ul", *items, class_="list")
