"""What `whilst explain` says of a query, as the run left it in the store, put on a page."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dashboard.markup import Node, bag, h
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
            empty("This run did not say.", "See", "whilst explain PROGRAM"),
            key=atom,
        )
    found = explained["premise_sets"]
    more = len(found) - _MOST
    return bag(
        "premises",
        head,
        *(h("p", note[:1].upper(), note[1:], ".") for note in explained["notes"]),
        *(_premise_set(one, clock) for one in found[:_MOST]),
        h("p", f"And {more} more; see ", h("code", "whilst explain PROGRAM"), ".")
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
            *(_atom(atom) for atom in one["atoms"]),
            *(h("li", h("code", condition)) for condition in one["conditions"]),
            class_="must",
        ),
        h("p", _decided(one["decided_after"]), class_="quiet"),
        key=str(one["number"]),
    )


def _atom(atom: dict[str, Any]) -> Node:
    return h(
        "li", h("code", atom["atom"]), f" holds, and arrives at most {_points(atom['delay'])} late"
    )


def _decided(after: int | None) -> str:
    if after is None:
        return "Nothing bounds how late some of it may come: it may stay pending for ever."
    return f"Decided at the latest {_points(after)} after the answer's own."


def _points(count: int) -> str:
    return "1 time point" if count == 1 else f"{count} time points"


def derivation(
    explained: list[dict[str, Any]], premise: int, bindings: Mapping[str, Any]
) -> Node | None:
    """The rules that lead to an answer, with its own values; None where the run did not say."""
    for query in explained:
        for one in query["premise_sets"]:
            if one["number"] == premise:
                return h("ul", _derived(one["derivation"], bindings), class_="history")
    return None


def _derived(node: dict[str, Any], bindings: Mapping[str, Any]) -> Node:
    by = h("small", f" by the rule in line {node['line']}") if node["line"] is not None else None
    below = [_derived(child, bindings) for child in node["from"]]
    atom = h("code", _with_values(node["atom"], bindings))
    return h("li", atom, by, h("ul", *below) if below else None)


_VARIABLE = re.compile(r'"(?:[^"\\]|\\.)*"|\b([A-Z_]\w*)\b(?!\()([+-]\d+)?')


def _with_values(atom: str, bindings: Mapping[str, Any]) -> str:
    """An atom with the values of the variables that are bound; strings are left as they are."""

    def value(found: re.Match[str]) -> str:
        bound = bindings.get(found[1]) if found[1] else None
        if bound is None:
            return found[0]
        if found[2] and isinstance(bound, int):
            return str(bound + int(found[2]))
        return str(bound)

    return _VARIABLE.sub(value, atom)
