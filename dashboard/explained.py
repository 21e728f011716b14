"""What `whilst explain` says of a query, as the run left it in the store, put on a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dashboard.atoms import Values, filled, instance, values_of
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
        *map(_warning, explained["warnings"]),
        *(_premise_set(one, clock) for one in found[:_MOST]),
        h("p", f"And {more:,} more; see ", h("code", "whilst explain PROGRAM"), ".")
        if more > 0
        else None,
        key=atom,
    )


def _warning(text: str) -> Node:
    return h("p", text[:1].upper() + text[1:] + ".", class_="suggestion")


def _premise_set(one: dict[str, Any], clock: Clock) -> Node:
    with_ = ", ".join(one["rigid"])
    return bag(
        "premise",
        h("p", h("code", one["answer"]), " holds where"),
        h(
            "ul",
            *(_atom(atom, clock) for atom in one["atoms"]),
            *(h("li", h("code", condition)) for condition in one["conditions"]),
            class_="must",
        ),
        h("p", "with ", h("code", with_)) if with_ else None,
        h("p", one["says"][:1].upper() + one["says"][1:] + ".", class_="quiet"),
        *map(_warning, one["warnings"]),
        key=str(one["number"]),
    )


def _atom(atom: dict[str, Any], clock: Clock) -> Node:
    least, most = clock.span(atom["least_delay"]), clock.span(atom["delay"])
    late = f"up to {most} late" if least == most else f"up to {least} late, some up to {most}"
    closes = "it never closes" if atom["closes"] is None else f"it closes at {atom['closes']}"
    when = _when(atom["from"], atom["to"], clock)
    return h("li", h("code", atom["atom"]), f" {when}; may arrive {late}; {closes}")


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


# --- one answer ----------------------------------------------------------------------------------


def derivation(
    explained: list[dict[str, Any]], triple: Triple, answer: str, program: str, clock: Clock
) -> Node | None:
    """The rules that lead to an answer, with its own values; None where the run did not say."""
    atoms = (*triple.evidence, *triple.hypotheses)
    for query in explained:
        for one in query["premise_sets"]:
            premises = [atom["atom"] for atom in one["atoms"]]
            if one["number"] != triple.premise:
                continue
            values = values_of(premises, (one["answer"], answer), atoms)
            if all(instance(atom, values, atoms) for atom in premises):
                tree = _Tree(values, triple, program.splitlines(), clock)
                return h("ul", *tree.branches(one["derivation"]), class_="tree")
    return None


@dataclass(frozen=True, slots=True)
class _Tree:
    values: Values
    triple: Triple
    lines: list[str]
    clock: Clock

    def branches(self, nodes: Sequence[dict[str, Any]]) -> list[Node]:
        """The nodes of the least depth, each with those below it: they come top down."""
        starts = [n for n, node in enumerate(nodes) if node["depth"] == nodes[0]["depth"]]
        ends = [*starts[1:], len(nodes)]
        return [
            self._branch(nodes[start], nodes[start + 1 : end])
            for start, end in zip(starts, ends, strict=True)
        ]

    def _branch(self, node: dict[str, Any], below: Sequence[dict[str, Any]]) -> Node:
        told = self._leaf(node["atom"]) if node["kind"] == "stream" else self._inner(node)
        return h("li", *told, h("ul", *self.branches(below)) if below else None)

    def _inner(self, node: dict[str, Any]) -> list[Node]:
        told: list[Node] = [h("code", self.clock.atom(filled(node["atom"], self.values)))]
        line = node["line"]
        if line is not None and line <= len(self.lines):
            told.append(h("small", f"line {line}: {self.lines[line - 1].strip()}", class_="rule"))
        return told

    def _leaf(self, premise: str) -> list[Node]:
        triple = self.triple
        evidence = instance(premise, self.values, triple.evidence)
        if evidence is not None:
            arrival = self.clock.at(triple.arrivals[triple.evidence.index(evidence)])
            said = h("span", "arrived at ", arrival, class_="leaf evidence")
            return [h("code", self.clock.atom(evidence)), said]
        awaited = instance(premise, self.values, triple.hypotheses)
        said = "may still arrive" if triple.live else "did not come"
        return [
            h("code", self.clock.atom(awaited or filled(premise, self.values))),
            h("span", said, class_="leaf hypothesis"),
        ]
