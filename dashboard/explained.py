"""What `whilst explain` says of a query, as the run left it in the store, put on a page."""

from __future__ import annotations

from typing import Any

from dashboard.atoms import Values, filled, values_of
from dashboard.markup import Node, bag, h
from dashboard.queries import Triple
from dashboard.scope import empty
from dashboard.times import Clock

__all__ = ["derivation", "premise_sets"]

_MOST = 20
"""Premise sets on a page; the command shows all."""


def premise_sets(atom: str, explained: dict[str, Any] | None, clock: Clock) -> Node:
    """The premise sets of a query and their windows, in words."""
    head = h("h3", atom)
    if explained is None:
        return bag(
            "premises",
            head,
            empty("This run did not say.", "The command does:", "whilst explain PROGRAM"),
            key=atom,
        )
    found = explained["premise_sets"]
    more = len(found) - _MOST
    return bag(
        "premises",
        head,
        *(h("p", note[:1].upper() + note[1:] + ".") for note in explained["notes"]),
        *(_premise_set(one, clock) for one in found[:_MOST]),
        h("p", f"And {more:,} more; see ", h("code", "whilst explain PROGRAM"), ".")
        if more > 0
        else None,
        key=atom,
    )


def _premise_set(one: dict[str, Any], clock: Clock) -> Node:
    return bag(
        "premise",
        h("p", h("code", one["answer"]), " holds where"),
        h(
            "ul",
            *(_atom(atom, clock) for atom in one["atoms"]),
            *(h("li", h("code", condition)) for condition in one["conditions"]),
            class_="must",
        ),
        h("p", _decided(one["decided_after"], clock), class_="quiet"),
        key=str(one["number"]),
    )


def _atom(atom: dict[str, Any], clock: Clock) -> Node:
    closes = atom["closes_after"]
    told = f" {_when(atom['from'], atom['to'], clock)}, and may arrive up to "
    told += f"{clock.span(atom['delay'])} late"
    if closes is not None:
        told += f": it closes {_shift(closes, clock)}"
    return h("li", h("code", atom["atom"]), told)


def _when(first: int | None, last: int | None, clock: Clock) -> str:
    """When an atom holds, told from the time of the answer."""
    if first is None and last is None:
        return "at any time"
    if first == last and first is not None:
        return _shift(first, clock)
    if first is None and last is not None:
        return f"at the latest {_shift(last, clock)}"
    if last is None and first is not None:
        return f"at the earliest {_shift(first, clock)}"
    assert first is not None
    assert last is not None
    return f"from {_shift(first, clock)} to {_shift(last, clock)}"


def _shift(points: int, clock: Clock) -> str:
    if points == 0:
        return "at the answer's time"
    return f"{clock.span(abs(points))} {'after' if points > 0 else 'before'} it"


def _decided(after: int | None, clock: Clock) -> str:
    if after is None:
        return "Nothing bounds how late some of it may come: it may stay pending for ever."
    return f"Decided {clock.span(after)} after the answer's time at the latest."


# --- one answer ----------------------------------------------------------------------------------


def derivation(
    explained: list[dict[str, Any]], triple: Triple, answer: str, clock: Clock
) -> Node | None:
    """The rules that lead to an answer, with its own values; None where the run did not say."""
    atoms = (*triple.evidence, *triple.hypotheses)
    for query in explained:
        for one in query["premise_sets"]:
            premises = [atom["atom"] for atom in one["atoms"]]
            if one["number"] != triple.premise:
                continue
            values = values_of(premises, (one["answer"], answer), atoms)
            if all(filled(atom, values) in atoms for atom in premises):
                return h("ul", _derived(one["derivation"], values, triple, clock), class_="tree")
    return None


def _derived(node: dict[str, Any], values: Values, triple: Triple, clock: Clock) -> Node:
    text = filled(node["atom"], values)
    told: list[Node] = [h("code", clock.atom(text))]
    if node["line"] is not None:
        rule = f"line {node['line']}: {node['rule']}"
        told.append(h("small", rule, class_="rule"))
    if text in triple.evidence:
        arrival = triple.arrivals[triple.evidence.index(text)]
        told.append(h("span", "arrived at ", clock.at(arrival), class_="leaf evidence"))
    elif text in triple.hypotheses:
        said = "may still arrive" if triple.live else "did not come"
        told.append(h("span", said, class_="leaf hypothesis"))
    below = [_derived(child, values, triple, clock) for child in node["from"]]
    return h("li", *told, h("ul", *below) if below else None)
