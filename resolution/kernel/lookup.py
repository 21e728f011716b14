"""Rows by key: tables of hashes, compiled. A look-up costs the same however many keys there are."""

from __future__ import annotations

from typing import Any

import numpy as np

from resolution.kernel.columns import NEVER, Bools, Int32s, Ints
from resolution.kernel.compiled import compiled


def least(wanted: Ints, keys: Ints, values: Ints) -> Ints:
    """For each wanted key the least of its values, NEVER where it has none."""
    found = np.full(len(wanted), NEVER, dtype=np.int64)
    _least(wanted, keys, values, _table(keys), found)
    return found


def first_of_each(keys: Ints) -> Bools:
    """The rows in which a key is met for the first time."""
    found = np.empty(len(keys), dtype=np.bool_)
    _first_of_each(keys, _table(keys), found)
    return found


def spans(wanted: Ints, keys: Ints) -> tuple[Ints, Ints]:
    """Where in keys that are sorted each wanted one begins and ends; nowhere: from 0 to 0."""
    begin, end = np.zeros((2, len(wanted)), dtype=np.int64)
    _spans(wanted, keys, _table(keys), begin, end)
    return begin, end


def _table(keys: Ints) -> Int32s:
    """Room for twice as many keys."""
    return np.full(1 << (2 * len(keys) + 1).bit_length(), -1, dtype=np.int32)


@compiled
def _slot(table: Int32s, keys: Ints, key: int) -> Any:
    """Where in the table a key stands, by the row in which it is first met, or would stand."""
    last = np.uint64(len(table) - 1)
    slot = ((np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)) & last
    while table[slot] >= 0 and keys[table[slot]] != key:
        slot = (slot + np.uint64(1)) & last
    return slot


@compiled
def _least(wanted: Ints, keys: Ints, values: Ints, table: Int32s, found: Ints) -> None:
    best = values.copy()
    for row in range(len(keys)):
        slot = _slot(table, keys, keys[row])
        if table[slot] < 0:
            table[slot] = row
        first = table[slot]
        best[first] = min(best[first], values[row])
    for row in range(len(wanted)):
        first = table[_slot(table, keys, wanted[row])]
        if first >= 0:
            found[row] = best[first]


@compiled
def _first_of_each(keys: Ints, table: Int32s, found: Bools) -> None:
    for row in range(len(keys)):
        slot = _slot(table, keys, keys[row])
        found[row] = table[slot] < 0
        if found[row]:
            table[slot] = row


@compiled
def _spans(wanted: Ints, keys: Ints, table: Int32s, begin: Ints, end: Ints) -> None:
    past = np.empty(len(keys), np.int64)
    first = 0
    for row in range(len(keys)):
        if keys[row] != keys[first] or row == 0:
            first = row
            table[_slot(table, keys, keys[row])] = row
        past[first] = row + 1
    for row in range(len(wanted)):
        found = table[_slot(table, keys, wanted[row])]
        if found >= 0:
            begin[row], end[row] = found, past[found]
