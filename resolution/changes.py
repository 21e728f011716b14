"""The tables that leave the kernel: triples with the interval in which each was in `S_τ`.

A *triple* is one ⟨θ, E, H, C⟩ up to renaming and up to E. It enters `S_τ` once, at `start`, and
leaves it once: at `end`, where something arrived that made it grow or made a smaller one, or else
at its `deadline`, where nothing arrived. So a row says everything about it at every τ:

    in S_τ  ⇔  start <= τ < min(end, deadline)      (null is infinity)

A change is one of four. `put` replaces what was said of the triple, if anything was; `drop` takes
it back, where it turns out never to have been in `S_τ`: a fact was read after one that had arrived
later. Two more are puts of which more is known, for whoever keeps the rows: `new`, nothing was said
of the triple before; `first`, nor of any other triple of its answer, and nobody else will say any.
Adding up the changes of any cut of a stream into batches gives the same rows.
"""

from __future__ import annotations

import pyarrow as pa

TRIPLES = pa.schema(
    [
        pa.field("triple", pa.string(), nullable=False),  # id of (query, θ, H, C): 32 hex digits
        pa.field("answer_id", pa.string(), nullable=False),  # id of (query, θ): 32 hex digits
        pa.field("query", pa.string(), nullable=False),  # the query's predicate
        pa.field("answer", pa.string(), nullable=False),  # Malf(wt2, 1)
        pa.field("bindings", pa.string(), nullable=False),  # JSON: query variable -> value or null
        pa.field("premise", pa.int32(), nullable=False),  # number of its premise set
        pa.field("evidence", pa.list_(pa.string()), nullable=False),
        pa.field("arrivals", pa.list_(pa.int64()), nullable=False),  # one for each of evidence
        pa.field("hypotheses", pa.list_(pa.string()), nullable=False),  # empty: confirmed
        pa.field("closes", pa.list_(pa.int64()), nullable=False),  # one each; null: never
        pa.field("conditions", pa.list_(pa.string()), nullable=False),
        pa.field("deadline", pa.int64()),
        pa.field("reason", pa.string()),  # the hypothesis that closes at the deadline
        pa.field("start", pa.int64(), nullable=False),
        pa.field("end", pa.int64()),
    ]
)

CHANGES = pa.schema([pa.field("op", pa.string(), nullable=False), *TRIPLES])
"""`op` is put, drop, new or first."""
