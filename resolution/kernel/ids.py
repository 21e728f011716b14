"""`resolution.triples.identifiers` for a whole column of text, read where Arrow keeps it.

The same digits: SipHash-2-4 under two keys, each spread by the finish of splitmix64, in base 16.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from resolution.kernel.compiled import compiled
from resolution.triples import HASH_KEYS

_U = np.uint64
_KEYS = np.frombuffer("".join(HASH_KEYS).encode(), dtype=np.uint64)
_DIGITS = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)


def identifiers(query: str, texts: pa.StringArray) -> pa.StringArray:
    """32 hex digits for each text, the same for the same query and text wherever it is computed."""
    size = len(texts)
    _, offsets, data = texts.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int32)[texts.offset : texts.offset + size + 1]
    letters = np.frombuffer(data or b"", dtype=np.uint8)
    prefix = np.frombuffer(f"{query}\x00".encode(), dtype=np.uint8)
    out = np.empty(32 * size, dtype=np.uint8)
    _hash(prefix, letters, bounds, _KEYS, _DIGITS, out)
    ends = np.arange(0, 32 * size + 1, 32, dtype=np.int32)
    return pa.StringArray.from_buffers(size, pa.py_buffer(ends), pa.py_buffer(out))


@compiled
def _hash(
    prefix: npt.NDArray[np.uint8],
    letters: npt.NDArray[np.uint8],
    bounds: npt.NDArray[np.int32],
    keys: npt.NDArray[np.uint64],
    digits: npt.NDArray[np.uint8],
    out: npt.NDArray[np.uint8],
) -> None:
    head = len(prefix)
    for row in range(len(bounds) - 1):
        start = bounds[row]
        size = head + bounds[row + 1] - start
        one, other = _begun(keys[0], keys[1]), _begun(keys[2], keys[3])
        word = _U(0)
        for at in range(size):
            letter = prefix[at] if at < head else letters[start + at - head]
            word |= _U(letter) << _U(8 * (at & 7))
            if at & 7 == 7:
                one, other = _mixed(one, word), _mixed(other, word)
                word = _U(0)
        word |= _U(size & 255) << _U(56)
        _write(_ended(_mixed(one, word)), digits, out, 32 * row)
        _write(_ended(_mixed(other, word)), digits, out, 32 * row + 16)


@compiled
def _begun(k0: Any, k1: Any) -> Any:
    return (
        k0 ^ _U(0x736F6D6570736575),
        k1 ^ _U(0x646F72616E646F6D),
        k0 ^ _U(0x6C7967656E657261),
        k1 ^ _U(0x7465646279746573),
    )


@compiled
def _ended(state: Any) -> Any:
    v0, v1, v2, v3 = state[0], state[1], state[2] ^ _U(255), state[3]
    for _ in range(4):
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    value = v0 ^ v1 ^ v2 ^ v3
    value = (value ^ (value >> _U(30))) * _U(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> _U(27))) * _U(0x94D049BB133111EB)
    return value ^ (value >> _U(31))


@compiled
def _write(
    value: Any, digits: npt.NDArray[np.uint8], out: npt.NDArray[np.uint8], start: int
) -> None:
    for place in range(16):
        out[start + place] = digits[(value >> _U(60 - 4 * place)) & _U(15)]


@compiled
def _mixed(state: Any, word: Any) -> Any:
    v0, v1, v2, v3 = state[0], state[1], state[2], state[3] ^ word
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    return v0 ^ word, v1, v2, v3


@compiled
def _round(v0: Any, v1: Any, v2: Any, v3: Any) -> Any:
    v0 += v1
    v1 = (v1 << _U(13)) | (v1 >> _U(51))
    v1 ^= v0
    v0 = (v0 << _U(32)) | (v0 >> _U(32))
    v2 += v3
    v3 = (v3 << _U(16)) | (v3 >> _U(48))
    v3 ^= v2
    v0 += v3
    v3 = (v3 << _U(21)) | (v3 >> _U(43))
    v3 ^= v0
    v2 += v1
    v1 = (v1 << _U(17)) | (v1 >> _U(47))
    v1 ^= v2
    v2 = (v2 << _U(32)) | (v2 >> _U(32))
    return v0, v1, v2, v3
