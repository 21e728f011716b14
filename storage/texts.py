"""Columns of Arrow as the text that Postgres reads: JSON, and arrays of numbers."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

__all__ = [
    "is_text",
    "json_array",
    "json_numbers",
    "json_text",
    "number_array",
    "storable",
    "storable_json",
]


def is_text(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))


def json_array(column: Any) -> Any:
    """Lists of text as arrays of JSON."""
    values = _escaped(pc.cast(column.flatten(), pa.string()))
    body = _joined(column, values, '","')
    empty = pc.equal(pc.list_value_length(column), 0)
    return pc.if_else(empty, "[]", pc.binary_join_element_wise('["', body, '"]', ""))


def json_numbers(column: Any) -> Any:
    """Lists of numbers as arrays of JSON."""
    return pc.binary_join_element_wise("[", _numbers(column, "null"), "]", "")


def number_array(column: Any) -> Any:
    """Lists of numbers as arrays of Postgres."""
    return pc.binary_join_element_wise("{", _numbers(column, "NULL"), "}", "")


def json_text(column: Any) -> Any:
    """Text as JSON, null as null."""
    quoted = pc.binary_join_element_wise('"', _escaped(column), '"', "")
    return pc.fill_null(quoted, "null")


def _numbers(column: Any, null: str) -> Any:
    return _joined(column, pc.fill_null(pc.cast(column.flatten(), pa.string()), null), ",")


def _joined(column: Any, values: Any, separator: str) -> Any:
    """Each list's values joined; an empty list gives an empty string."""
    start = column.offsets[0].as_py()
    offsets = pc.cast(pc.subtract(column.offsets, start), pa.int32())
    return pc.binary_join(pa.ListArray.from_arrays(offsets, values), separator)


def _escaped(values: Any) -> Any:
    """Text as it stands between the quotes of a JSON string."""
    values = storable(values)
    held = _bytes(values)
    for code in (ord("\\"), ord('"')):
        if (held == code).any():
            values = pc.replace_substring(values, chr(code), "\\" + chr(code))
    if (held < 32).any():
        for code in range(1, 32):
            values = pc.replace_substring(values, chr(code), f"\\u{code:04x}")
    return values


def storable(values: Any) -> Any:
    """Postgres keeps no zero character in a text: it is shown as U+FFFD."""
    if (_bytes(values) == 0).any():
        return pc.replace_substring(values, "\0", "\ufffd")
    return values


def _bytes(values: Any) -> npt.NDArray[np.uint8]:
    """All the text of a column. To look for a byte here takes a fifth of asking each value."""
    _, offsets, data = values.buffers()
    if data is None or not len(values):
        return np.empty(0, dtype=np.uint8)
    kind = np.int64 if pa.types.is_large_string(values.type) else np.int32
    ends = np.frombuffer(offsets, dtype=kind)[values.offset : values.offset + len(values) + 1]
    return np.frombuffer(data, dtype=np.uint8)[ends[0] : ends[-1]]


_UNSTORABLE = r"\\u0000|\\u[dD][89a-fA-F]"


def storable_json(values: Any) -> Any:
    """JSON that `jsonb` takes: no zero character, no half of a surrogate pair."""
    doubtful = pc.match_substring_regex(values, _UNSTORABLE)
    if not pc.any(doubtful).as_py():
        return values
    return pa.array([_clean(text) for text in values.to_pylist()], pa.string())


def _clean(text: str) -> str:
    value = json.dumps(json.loads(text), ensure_ascii=False)
    value = value.encode("utf-8", "replace").decode()
    return re.sub(r"(?<!\\)((?:\\\\)*)\\u0000", "\\1\ufffd", value)
