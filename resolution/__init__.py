"""Temporal Datalog with hypothetical answers: the language and the logic, as a library.

    program = load(text)                                   # or ProgramErrors, with every mistake
    facts = [read_event(line, program) for line in log]    # or RejectedEvent, with the reason
    arrivals = Arrivals.of(facts, program.delays)          # first arrivals, and what is late

    for tau, triples in trace(program, arrivals.first):    # every τ at which an answer changed
        for triple in triples:
            print(tau, triple.answer, triple.hypotheses, triple.deadline(program.delays))

    answers(program, arrivals.first, tau)                  # S_τ at one time point
    premise_sets(program, program.queries[0])              # P_Q of one query

What an answer means is settled in SEMANTICS; the errors are

    WhilstError
    ├── ProgramErrors         a program with mistakes: all of them
    ├── TooManyPremiseSets    a query whose rules multiply
    ├── TooLargePremiseSet    a query that needs too many atoms at once
    ├── Entangled             atoms that map onto one another in too many ways
    └── RejectedEvent         an event that states no fact of the program

Nothing here reads files, or needs Spark, a database or Arrow. `resolution.explain` puts premise
sets into words; the vectorised evaluation is in `resolution.kernel`.
"""

from resolution.errors import ProgramErrors, WhilstError
from resolution.facts import Arrivals, Fact, RejectedEvent, fact_of, read_event
from resolution.limits import TooLargePremiseSet, TooManyPremiseSets
from resolution.lives import answers, trace
from resolution.premises import PremiseSet, premise_sets
from resolution.program import Program, Query, load
from resolution.substitution import Entangled
from resolution.terms import Atom
from resolution.triples import Triple

__all__ = [
    "Arrivals",
    "Atom",
    "Entangled",
    "Fact",
    "PremiseSet",
    "Program",
    "ProgramErrors",
    "Query",
    "RejectedEvent",
    "TooLargePremiseSet",
    "TooManyPremiseSets",
    "Triple",
    "WhilstError",
    "answers",
    "fact_of",
    "load",
    "premise_sets",
    "read_event",
    "trace",
]
