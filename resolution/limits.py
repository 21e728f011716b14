"""Programs that blow up: where resolution is cut off, and which rules multiply.

A query may have too many premise sets, because predicates that hold in several ways stand side by
side; or too large ones, because predicates that need several atoms do.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from resolution.errors import Lines, WhilstError
from resolution.program import Program, Query, Rule

LIMIT = 50_000
"""Leaves of a resolution beyond which a program is refused rather than waited for."""
STEPS_A_LEAF = 20
"""Steps on the way to a leaf that are waited for: they may multiply too, and lead nowhere."""
LARGEST = 500
"""Atoms of a premise set: evaluation tries them one inside the other."""
UNRESOLVED = 2_000
"""Atoms on the way to a premise set, where many may turn out to be one."""

_SHOWN = 5  # rules that an error names

Counted: TypeAlias = Literal["ways", "atoms"]


@dataclass(frozen=True, slots=True)
class Multiplier:
    """A rule whose head holds in many ways, or needs many atoms, because those of its body do."""

    rule: Rule
    line: int
    ways: int
    factors: tuple[tuple[str, int, int], ...]
    """Each predicate of the body that is behind it: in how many ways, how often it stands."""
    counted: Counted = "ways"

    def __str__(self) -> str:
        join = " × " if self.counted == "ways" else " + "
        factors = join.join(self._factor(*factor) for factor in self.factors)
        head = self.rule.head.predicate
        return f"line {self.line}: {factors}: {head} in {self.ways:,} {self.counted}"

    def _factor(self, name: str, ways: int, times: int) -> str:
        often = f"{times:,} times" if times > 1 else ""
        many = f"in {ways:,} {self.counted}" if ways > 1 else ""
        return f"{name} {', '.join(filter(None, (many, often)))}"


class _BlowUp(WhilstError):
    """`multipliers` says which rules are behind it, the worst first."""

    def __init__(self, query: str, limit: int, multipliers: list[Multiplier]) -> None:
        self.query, self.limit, self.multipliers = query, limit, multipliers
        super().__init__(query, limit, multipliers)

    def _told(self, first: str, hint: str) -> str:
        rules = (f"  {multiplier}" for multiplier in self.multipliers[:_SHOWN])
        return "\n".join([first, *rules, f"  hint: {hint}"])


class TooManyPremiseSets(_BlowUp):
    """A query whose rules multiply beyond the limit; `multipliers` says which ones do."""

    def __str__(self) -> str:
        why = "its rules multiply" if self.multipliers else "it has that many rules"
        return self._told(
            f"{self.query} has more than {self.limit:,} premise sets: {why}",
            "join fewer predicates that each have several rules or rigid facts in one body, or "
            "query the parts on their own",
        )


class TooLargePremiseSet(_BlowUp):
    """A query that needs more atoms at once than the limit; `multipliers` says which rules do."""

    def __str__(self) -> str:
        return self._told(
            f"{self.query} has a premise set of more than {self.limit:,} atoms",
            "let a body need fewer predicates that each need several atoms",
        )


def multiplying_rules(program: Program, query: Query) -> list[Multiplier]:
    """The rules behind a query that make their heads hold in several ways, the worst first."""
    known = dict.fromkeys(program.streams, 1)
    known |= {name: len(rows) for name, rows in program.rigid.items()}

    def product(ways: Mapping[str, int], often: Counter[str]) -> int:
        return math.prod(ways[name] ** times for name, times in often.items())

    return _rules(program, query, known, "ways", product, sum)


def growing_rules(program: Program, query: Query) -> list[Multiplier]:
    """The rules behind a query that make their heads need several atoms, the worst first."""
    known = dict.fromkeys(program.streams, 1) | dict.fromkeys(program.rigid, 0)

    def total(atoms: Mapping[str, int], often: Counter[str]) -> int:
        return sum(atoms[name] * times for name, times in often.items())

    return _rules(program, query, known, "atoms", total, max)


def _rules(
    program: Program,
    query: Query,
    known: dict[str, int],
    counted: Counted,
    of_body: Callable[[Mapping[str, int], Counter[str]], int],
    of_rules: Callable[[Iterable[int]], int],
) -> list[Multiplier]:
    """Counts from the streams up: what a body comes to, and what the rules of a head do."""
    found: list[Multiplier] = []
    lines = Lines(program.source.text)
    stack = [query.name]
    while stack:
        predicate = stack[-1]
        rules = program.rules_for(predicate)
        ahead = [a.predicate for rule in rules for a in rule.body if a.predicate not in known]
        if predicate in known or ahead:
            stack.extend(ahead) if ahead else stack.pop()
            continue
        counts = []
        for rule in rules:
            often = Counter(atom.predicate for atom in rule.body)
            counts.append(of_body(known, often))
            factors = tuple(
                (name, known[name], times)
                for name, times in often.items()
                if known[name] > 1 or (counted == "atoms" and known[name] == 1 < times)
            )
            if factors:
                line, _ = lines.place(rule.span.start)
                found.append(Multiplier(rule, line, counts[-1], factors, counted))
        known[predicate] = of_rules(counts)
    return sorted(found, key=lambda multiplier: -multiplier.ways)
