"""δ of atoms, for whole columns of values at a time."""

from __future__ import annotations

import numpy as np

from resolution.delays import Delays
from resolution.kernel.columns import Columns, Ints
from resolution.substitution import apply
from resolution.terms import Atom, Var


def delays_of(
    atom: Atom, bound: dict[Var, Ints], columns: Columns, delays: Delays, rows: int
) -> Ints:
    """δ of an atom in which some variables are bound, row by row.

    Only the constants of its `delay` patterns make a difference, so δ is asked for once for each
    combination of them.
    """
    patterns = delays.bounds[atom.predicate]
    named = {v for pattern in patterns for v in pattern if v is not None}
    if len(patterns) == 1 or not named:
        return np.full(rows, delays.of(atom), dtype=np.int64)
    codes = {value: columns.code(value) for value in named}
    interesting = np.full(len(columns.texts) + 1, -1, dtype=np.int64)
    values = list(codes)
    for number, value in enumerate(values):
        if codes[value] >= 0:
            interesting[codes[value]] = number
    used = [v for v in dict.fromkeys(atom.args) if isinstance(v, Var) and v in bound]
    if not used:
        return np.full(rows, delays.of(atom), dtype=np.int64)
    kinds = np.stack([interesting[bound[v]] for v in used])
    distinct, which = np.unique(kinds, axis=1, return_inverse=True)
    found = [
        delays.of(
            apply(
                atom,
                {v: values[k] if k >= 0 else _other(v) for v, k in zip(used, kind, strict=True)},
            )
        )
        for kind in distinct.T.tolist()
    ]
    return np.array(found, dtype=np.int64)[which.ravel()]


def _other(var: Var) -> str:
    """A constant that no pattern has."""
    return f"\x00{var.name}"
