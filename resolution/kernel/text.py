"""Columns of text, put together whole: Arrow strings, and plain ones where all rows are alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from resolution.kernel.columns import NEVER, Bools, Ints

Text: TypeAlias = "pa.StringArray | str"
"""A text for each row, or one for all."""

SEPARATOR = "\x01"
"""Between the atoms of an evidence set: below all that can stand in one."""


def column(text: Text, size: int) -> pa.StringArray:
    return pa.repeat(text, size) if isinstance(text, str) else text


def joined(parts: Sequence[Text], between: str = "") -> Text:
    """Texts side by side."""
    if all(isinstance(part, str) for part in parts):
        return between.join(parts)
    return _flat(pc.binary_join_element_wise(*parts, between))


def joined_present(parts: Sequence[Text], between: str, size: int) -> pa.StringArray:
    """Texts side by side, those that are empty left out."""
    found = column("", size)
    for part in parts:
        here = column(part, size)
        some = pc.not_equal(here, "")
        gap = pc.if_else(pc.and_(some, pc.not_equal(found, "")), between, "")
        found = _flat(pc.binary_join_element_wise(found, gap, here, ""))
    return found


def numbers(values: Ints) -> pa.StringArray:
    return pc.cast(pa.array(values), pa.string())


def chosen(where: Bools, yes: Text, no: Text) -> pa.StringArray:
    return _flat(pc.if_else(pa.array(where), yes, no))


def less(a: Text, b: Text) -> Bools:
    """Where one text stands before another."""
    return np.asarray(pc.less(a, b).to_numpy(zero_copy_only=False), dtype=np.bool_)


def _flat(found: pa.Array | pa.ChunkedArray) -> pa.StringArray:
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


@dataclass(frozen=True, slots=True)
class Entry:
    """A member of a list: where it is sorted, its text, and the moment that goes with it."""

    order: Ints
    text: pa.StringArray
    moment: Ints


def in_order(entries: Sequence[Entry]) -> list[Entry]:
    """Sorted row by row, by order and then by text: an insertion of each among those before it."""
    found = list(entries)
    for last in range(1, len(found)):
        for at in range(last, 0, -1):
            left, right = found[at - 1], found[at]
            swap = left.order > right.order
            tied = left.order == right.order
            if tied.any():
                swap = swap | (tied & less(right.text, left.text))
            if not swap.any():
                break
            found[at - 1], found[at] = (
                (right, left)
                if swap.all()
                else (_either(swap, right, left), _either(swap, left, right))
            )
    return found


def _either(where: Bools, yes: Entry, no: Entry) -> Entry:
    return Entry(
        np.where(where, yes.order, no.order),
        chosen(where, yes.text, no.text),
        np.where(where, yes.moment, no.moment),
    )


def lists(columns: Sequence[pa.Array], kind: pa.DataType, size: int) -> pa.ListArray:
    """A list for each row, of what the columns have there; an empty text is left out."""
    width = len(columns)
    if not width:
        return pa.ListArray.from_arrays(pa.array(np.zeros(size + 1, np.int32)), pa.array([], kind))
    order = np.arange(width * size).reshape(width, size).T.ravel()
    flat = pa.concat_arrays(columns).take(pa.array(order))
    counts = np.full(size, width, dtype=np.int64)
    if pa.types.is_string(kind):
        keep = pc.not_equal(flat, "")
        flat = flat.filter(keep)
        counts = np.asarray(keep.to_numpy(zero_copy_only=False)).reshape(size, width).sum(axis=1)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), flat)


def or_null(moments: Ints) -> pa.Int64Array:
    """Time points, null for NEVER."""
    never = moments >= NEVER
    return pa.array(moments, pa.int64(), mask=never if never.any() else None)
