"""No predicate needs itself: resolution would not end."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from resolution.checks.scope import Scope, body_atoms
from resolution.errors import Diagnostic
from resolution.syntax import Atom

_SHOWN = 12  # predicates of a cycle that a message lists


def run(scope: Scope) -> Iterator[Diagnostic]:
    needs = dependencies(scope)
    for component in _components(needs):
        first = min(component, key=lambda name: scope.heads[name][0].span.start)
        cycle = _shortest_cycle(first, needs, component)
        if cycle:
            shown = [*cycle, first]
            if len(shown) > _SHOWN:
                shown = [*shown[: _SHOWN - 2], "…", first]
            message = f"recursion is not part of the language yet: {' -> '.join(shown)}"
            at = needs[first][cycle[1] if len(cycle) > 1 else first].name_span
            yield Diagnostic(
                at, message, "no predicate may need itself, directly or through others"
            )


def dependencies(scope: Scope) -> dict[str, dict[str, Atom]]:
    """The derived predicates that each one needs, with the first atom that says so."""
    needs: dict[str, dict[str, Atom]] = {}
    for name, rules in scope.heads.items():
        mine = needs.setdefault(name, {})
        for rule in rules:
            for atom in body_atoms(rule):
                if atom.predicate in scope.heads:
                    mine.setdefault(atom.predicate, atom)
    return needs


def _components(needs: dict[str, dict[str, Atom]]) -> Iterator[set[str]]:
    """The strongly connected components, by Tarjan's algorithm without recursion."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    for root in needs:
        if root in order:
            continue
        path = [(root, iter(needs[root]))]
        order[root] = lowest[root] = len(order)
        stack.append(root)
        on_stack.add(root)
        while path:
            name, rest = path[-1]
            for other in rest:
                if other not in order:
                    order[other] = lowest[other] = len(order)
                    stack.append(other)
                    on_stack.add(other)
                    path.append((other, iter(needs[other])))
                    break
                if other in on_stack:
                    lowest[name] = min(lowest[name], order[other])
            else:
                path.pop()
                if path:
                    above = path[-1][0]
                    lowest[above] = min(lowest[above], lowest[name])
                if lowest[name] == order[name]:
                    component: set[str] = set()
                    while name not in component:
                        component.add(stack.pop())
                    on_stack -= component
                    yield component


def _shortest_cycle(
    start: str, needs: dict[str, dict[str, Atom]], component: set[str]
) -> list[str]:
    """The predicates of a shortest cycle through `start`, from it on; none if there is no cycle."""
    came_from: dict[str, str] = {}
    queue = deque([start])
    while queue:
        name = queue.popleft()
        for other in needs[name]:
            if other == start:
                cycle = [name]
                while cycle[-1] != start:
                    cycle.append(came_from[cycle[-1]])
                return cycle[::-1]
            if other in component and other not in came_from:
                came_from[other] = name
                queue.append(other)
    return []
