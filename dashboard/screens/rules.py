"""Rules: the program, what its queries come down to, and its delay bounds against what came."""

from __future__ import annotations

from dashboard import queries
from dashboard.advice import advice
from dashboard.charts import Column, columns
from dashboard.explained import premise_sets
from dashboard.highlight import highlighted
from dashboard.live import show
from dashboard.markup import Node, bag, h, unseen
from dashboard.queries import Delays
from dashboard.scope import chosen_run, clock_of, empty, refreshed, runs, source
from dashboard.times import Clock

_MOST = 60
"""Columns of a histogram."""


def draw() -> None:
    run = chosen_run()
    if run is not None:
        _drawn(run.name)


@refreshed
def _drawn(name: str) -> None:
    run = next((one for one in runs() if one.name == name), None)
    if run is None:
        return
    clock = clock_of(run)
    text = source().ask(queries.program_text, run.program)
    asked = source().ask(queries.explanations, run.program)
    seen = source().ask(queries.delays, run.id)
    show(
        "rules",
        unseen("Rules"),
        h("section", h("h2", run.name), highlighted(text)),
        h("section", h("h2", "Premise sets"), *(premise_sets(*one, clock) for one in asked)),
        h("section", h("h2", "Delays seen"), *(_delays(one, clock) for one in seen)),
    )


def _delays(one: Delays, clock: Clock) -> Node:
    title = f"{one.stream}({', '.join(f['name'] for f in one.fields)})"
    head = h("h3", title)
    if not one.seen:
        return bag("premises", head, empty("No fact of it has come yet.", "Its delays show here."))
    last = max(one.seen[-1][0], one.longest_delay)
    width = max(1, -(-(last + 1) // _MOST))
    counts = [0] * (last // width + 1)
    for delay, facts in one.seen:
        counts[delay // width] += facts
    found = [
        Column(
            number,
            f"{number:,} facts came {place * width}–{place * width + width - 1} after their time"
            if width > 1
            else f"{number:,} facts came {place} after their time",
            "late" if place * width > one.longest_delay else "",
        )
        for place, number in enumerate(counts)
    ]
    total = sum(counts)
    suggestion = advice(one, clock)
    return bag(
        "premises",
        head,
        columns(
            f"{total:,} facts by their delay",
            found,
            ("0", f"{last:,}"),
            top=f"up to {max(counts):,}",
            kind="confirmed",
            lines=[
                ((bound // width + 1) / len(counts), f"δ {bound:,}")
                for bound in dict.fromkeys((one.delay, one.longest_delay))
            ],
        ),
        h("p", suggestion.text, class_="suggestion" if suggestion.change else "fine"),
        key=one.stream,
    )
