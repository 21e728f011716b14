"""What `whilst explain` says of a query, as the run left it in the store, put on a page."""

from __future__ import annotations

from typing import Any

from dashboard.markup import Node, bag, h
from dashboard.scope import empty
from dashboard.times import Clock

__all__ = ["premise_sets"]


def premise_sets(atom: str, explained: dict[str, Any] | None, clock: Clock) -> Node:
    head = h("h3", atom)
    if explained is None:
        return bag(
            "premises",
            head,
            empty("This run did not say.", "See", "whilst explain PROGRAM"),
            key=atom,
        )
    return bag("premises", head, key=atom)
