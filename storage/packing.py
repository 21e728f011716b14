"""The rows that are kept of a batch: the triples that may still close, and one for the rest.

Most triples come and go: they grow, close or give way long before anybody asks for them. Those of
one answer that a batch tells for the first time, and that are over for good, are kept together, as
JSON in the column `past` of one row: that of the triple that leaves last (the confirmed one, if
there is one). What is left to decide about the answer, now or ever, is decided by the other rows.

Of an answer that nobody else speaks of, all that the store says is worked out here, so that its
rows need no more than to be inserted. `storage.merge` sees to the others.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from storage.texts import json_array, json_numbers, json_text

__all__ = ["JUDGED", "packed"]

JUDGED = ("first_tau", "past", "live", "shown", "status", "since", "decided_at")
"""What is said of each row beside its triple; from `live` on only of answers that are told first:
for the others `storage.merge` says it."""

_STATUSES = ("confirmed", "pending", "refuted")
_NEVER = 2**62

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


def packed(changes: pa.Table, over: int) -> pa.Table:
    """The rows to keep of some changes (`resolution.changes.CHANGES`), with the columns of JUDGED.

    `over`: the last time point that is complete, or will be by the end whatever is read till then.
    """
    changes = changes.combine_chunks()
    told = _truths(pc.is_in(changes["op"], pa.array(["new", "first"])))
    news = _News(changes.filter(pa.array(told)), over)
    rest = changes.filter(pa.array(~told))
    rows = [news.rows(), _judged(rest, {"first_tau": rest["start"]})]
    return pa.concat_tables(rows)


def _judged(changes: pa.Table, said: dict[str, Any]) -> pa.Table:
    types = [pa.int64(), pa.string(), pa.bool_(), pa.bool_(), pa.string(), pa.int64(), pa.int64()]
    for name, kind in zip(JUDGED, types, strict=True):
        column = said.get(name)
        changes = changes.append_column(
            pa.field(name, kind), pa.nulls(len(changes), kind) if column is None else column
        )
    return changes


class _News:
    """Triples that are told for the first time."""

    def __init__(self, table: pa.Table, over: int) -> None:
        self._table = table = table.combine_chunks()
        encoded = table["answer_id"].combine_chunks().dictionary_encode()
        self._answer = encoded.indices.to_numpy().astype(np.int64)
        self._answers = len(encoded.dictionary)
        self._start = _numbers(table["start"])
        self._deadline = _numbers(table["deadline"])
        self._end = _numbers(table["end"])
        self._left = np.minimum(self._end, self._deadline)
        self._whole = _truths(pc.equal(pc.list_value_length(table["hypotheses"]), 0))
        self._confirmed = self._any(self._whole)
        self._live = (
            ~self._whole
            & ~self._confirmed[self._answer]
            & (self._end == _NEVER)
            & (self._deadline > over)
        )

    def rows(self) -> pa.Table:
        """Those that are kept, with what is said of them."""
        best = np.zeros(len(self._answer), dtype=np.bool_)
        best[self._best] = True
        # The rest must not outlast the one that keeps it: that one says when all of it was over.
        kept = best | self._live | (self._left > self._left[self._best][self._answer])
        first_tau = np.where(
            best, self._least(self._start, best | ~kept)[self._answer], self._start
        )
        first = _truths(pc.equal(self._table["op"], "first"))
        speaks = first & best
        confirmed, pending = self._confirmed[self._answer], self._any(self._live)[self._answer]
        status = np.where(confirmed, 0, np.where(pending, 1, 2))
        decided = np.where(self._whole, self._start, self._left)
        since = self._least(self._start, np.ones_like(first))[self._answer]
        said = {
            "first_tau": pa.array(first_tau),
            "past": self._past(best, kept),
            "live": pa.array(self._live, mask=~first),
            "shown": pa.array(best, mask=~first),
            "status": pa.array(_STATUSES).take(pa.array(status, mask=~speaks)),
            "since": pa.array(since, mask=~first),
            "decided_at": pa.array(decided, mask=~speaks | (pending & ~confirmed)),
        }
        return _judged(self._table, said).filter(pa.array(kept))

    @cached_property
    def _best(self) -> Ints:
        """For each answer the place of the triple that speaks for it: the first to be confirmed;
        else the last to leave, rather one that is live, and rather by its deadline; then by the
        smallest text. As in `storage.merge`."""
        keys = (
            (self._deadline == _NEVER) | (self._deadline > self._end),
            -self._left,
            ~self._live,
            np.where(self._whole, self._start, 0),
            ~self._whole,
            self._answer,
        )
        order = np.lexsort(keys)
        heads = np.flatnonzero(np.diff(self._answer[order], prepend=-1))
        best: Ints = order[heads]
        alike = np.repeat(best, np.diff(heads, append=len(order)))
        tied = order[np.logical_and.reduce([key[order] == key[alike] for key in keys])]
        tied = tied[
            np.bincount(self._answer[tied], minlength=self._answers)[self._answer[tied]] > 1
        ]
        if len(tied):
            tied = tied[self._by_text(tied, "reason", "triple")]
            answers, least = np.unique(self._answer[tied], return_index=True)
            best[answers] = tied[least]
        return best

    def _by_text(self, rows: Ints, *columns: str) -> Ints:
        """The order of some rows by their answers, and by these columns."""
        some = self._table.select(columns).take(pa.array(rows))
        some = some.append_column("answer", pa.array(self._answer[rows]))
        by = [(name, "ascending") for name in ("answer", *columns)]
        order: Ints = pc.sort_indices(some, by).to_numpy()
        return order

    def _any(self, rows: Bools) -> Bools:
        """For each answer whether that is so of one of its triples."""
        found = np.zeros(self._answers, dtype=np.bool_)
        found[self._answer[rows]] = True
        return found

    def _least(self, values: Ints, rows: Bools) -> Ints:
        """For each answer the least value in those rows."""
        found = np.full(self._answers, _NEVER)
        np.minimum.at(found, self._answer[rows], values[rows])
        return found

    def _past(self, best: Bools, kept: Bools) -> Any:
        """For the best row of each answer those that are not kept, as they began; else null."""
        rows = np.flatnonzero(~kept)
        if not len(rows):
            return None
        rows = rows[self._by_text(rows, "start", "triple")]
        answers, sizes = np.unique(self._answer[rows], return_counts=True)
        ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
        items = _items(self._table.take(pa.array(rows)).combine_chunks())
        joined = pc.binary_join(pa.ListArray.from_arrays(pa.array(ends), items), ",")
        joined = pc.binary_join_element_wise("[", joined, "]", "")
        place = np.full(self._answers, -1)
        place[answers] = np.arange(len(answers))
        place = place[self._answer]
        return joined.take(pa.array(place, mask=~best | (place < 0)))


def _items(triples: pa.Table) -> Any:
    """Each triple as an array of JSON; `migrations` has the view that reads it."""

    def column(name: str) -> Any:
        return triples[name].chunk(0)

    def number(name: str) -> Any:
        return pc.fill_null(pc.cast(column(name), pa.string()), "null")

    parts = [
        pc.binary_join_element_wise('"', column("triple"), '"', ""),
        number("premise"),
        json_array(column("evidence")),
        json_numbers(column("arrivals")),
        json_array(column("hypotheses")),
        json_numbers(column("closes")),
        json_array(column("conditions")),
        number("deadline"),
        json_text(column("reason")),
        number("start"),
        number("end"),
    ]
    return pc.binary_join_element_wise("[", pc.binary_join_element_wise(*parts, ","), "]", "")


def _numbers(column: pa.ChunkedArray) -> Ints:
    return np.asarray(pc.fill_null(column, _NEVER).to_numpy(), dtype=np.int64)


def _truths(column: Any) -> Bools:
    return np.asarray(column.to_numpy(), dtype=np.bool_)
