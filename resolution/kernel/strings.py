"""Columns of text, read where Arrow keeps them: which are equal to one, and codes for those used.

Facts that match no premise atom need no codes, and those that do need them once: looking only at
the bytes that count costs a third of encoding whole columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from resolution.kernel.compiled import compiled

if TYPE_CHECKING:
    from resolution.kernel.columns import Bools, Int32s, Ints

Bytes = npt.NDArray[np.uint8]

_U = np.uint64
_LETTERS = _U(2**56 - 1)


@dataclass(frozen=True)
class Strings:
    """A column of strings without nulls."""

    array: pa.StringArray
    letters: Bytes
    bounds: Int32s

    @classmethod
    def of(cls, array: pa.StringArray) -> Strings:
        _, offsets, data = array.buffers()
        bounds = np.frombuffer(offsets or b"\0\0\0\0", dtype=np.int32)
        letters = np.frombuffer(data or b"", dtype=np.uint8)
        return cls(array, letters, bounds[array.offset : array.offset + len(array) + 1])

    def equal(self, text: str) -> Ints:
        """The places of those that are equal to one."""
        found = np.empty(len(self.array), dtype=np.int64)
        return found[: _equal(self.letters, self.bounds, _bytes(text), found)]

    def are(self, places: Ints, text: str) -> Bools:
        """Which of those in some places are equal to one."""
        found: Bools = _are(self.letters, self.bounds, places, _bytes(text))
        return found

    def encoded(self, places: Ints) -> tuple[Ints, pa.StringArray]:
        """A code for those in some places, and what the codes stand for."""
        codes, first = _encoded(self.letters, self.bounds, places)
        return codes, self.array.take(pa.array(first))


def _bytes(text: str) -> Bytes:
    return np.frombuffer(text.encode(), dtype=np.uint8)


@compiled
def _equal(letters: Bytes, bounds: Int32s, text: Bytes, found: Ints) -> int:
    count = 0
    for at in range(len(bounds) - 1):
        if _is(letters, bounds[at], bounds[at + 1], text):
            found[count] = at
            count += 1
    return count


@compiled
def _are(letters: Bytes, bounds: Int32s, places: Ints, text: Bytes) -> Bools:
    found = np.empty(len(places), np.bool_)
    for at in range(len(places)):
        place = places[at]
        found[at] = _is(letters, bounds[place], bounds[place + 1], text)
    return found


@compiled
def _is(letters: Bytes, start: int, end: int, text: Bytes) -> bool:
    if end - start != len(text):
        return False
    for at in range(len(text)):  # noqa: SIM110 -- compiled
        if letters[start + at] != text[at]:
            return False
    return True


@compiled
def _encoded(letters: Bytes, bounds: Int32s, places: Ints) -> tuple[Ints, Ints]:
    """Codes by a table of hashes, looked through from where a hash points until it has a gap.

    A short text is its own key: its letters and, in the first byte, how many there are.
    """
    codes = np.empty(len(places), np.int64)
    first = np.empty(len(places), np.int64)
    keys = np.empty(len(places), np.uint64)
    table = np.full(1024, -1, np.int64)
    last = _U(len(table) - 1)
    count = 0
    for at in range(len(places)):
        start, end = bounds[places[at]], bounds[places[at] + 1]
        short = end - start < 8
        key = _U(0)
        for letter in range(start, end):
            if not short:
                key *= _U(0x100000001B3)
            key = (key << _U(8)) ^ (key >> _U(56)) ^ _U(letters[letter])
        key = (key & _LETTERS) | _U(end - start if short else 255) << _U(56)
        slot = _spread(key) & last
        code = table[slot]
        while code >= 0 and not (
            keys[code] == key
            and (
                short
                or _is(letters, start, end, letters[bounds[first[code]] : bounds[first[code] + 1]])
            )
        ):
            slot = (slot + _U(1)) & last
            code = table[slot]
        if code < 0:
            code = count
            table[slot], keys[code], first[code] = code, key, places[at]
            count += 1
            if 2 * count > len(table):
                table = np.full(4 * len(table), -1, np.int64)
                last = _U(len(table) - 1)
                for other in range(count):
                    slot = _spread(keys[other]) & last
                    while table[slot] >= 0:
                        slot = (slot + _U(1)) & last
                    table[slot] = other
        codes[at] = code
    return codes, first[:count].copy()


@compiled
def _spread(key: Any) -> Any:
    return (key * _U(0x9E3779B97F4A7C15)) >> _U(32)
