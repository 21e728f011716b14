"""What the store must say, worked out in memory from the lives of triples; and what it says."""

from __future__ import annotations

from typing import Any

from tests.storage.changes import Running

Row = dict[str, Any]


def said(rows: list[Row], tau: int) -> tuple[Any, ...]:
    """Pending triples, confirmed and refuted answers, by the definitions.

    An arrival that is known already takes its triple out; the answer is refuted once that is
    complete.
    """
    answers: dict[str, list[Row]] = {}
    for row in rows:
        answers.setdefault(row["answer_id"], []).append(row)
    pending, confirmed, refuted = [], [], []
    for mine in answers.values():
        answer = mine[0]["answer"]
        since = min(row["start"] for row in mine)
        whole = [row for row in mine if not row["hypotheses"]]
        live = [
            row
            for row in mine
            if row["hypotheses"]
            and row["end"] is None
            and (row["deadline"] is None or row["deadline"] > tau)
        ]
        if whole:
            confirmed.append((answer, since, min(row["start"] for row in whole)))
        elif live:
            pending += [(answer, since, row["deadline"], tuple(row["hypotheses"])) for row in live]
        else:
            left = {id(row): _left(row) for row in mine}
            last = max(left.values())
            reasons = [
                row["reason"]
                for row in mine
                if row["deadline"] == last and (row["end"] is None or row["end"] >= last)
            ]
            if last <= tau:
                refuted.append((answer, since, last, min(reasons) if reasons else None))
    return sorted(pending, key=repr), sorted(confirmed), sorted(refuted, key=repr)


def _left(row: Row) -> int:
    return min(t for t in (row["end"], row["deadline"]) if t is not None)


def stored(running: Running) -> tuple[Any, ...]:
    pending = running.read(
        "select answer, since, deadline, hypotheses from all_pending_answers where run = :run"
    )
    return (
        sorted(((a, s, d, tuple(h)) for a, s, d, h in pending), key=repr),
        sorted(
            running.read(
                "select answer, since, decided_at from all_confirmed_answers where run = :run"
            )
        ),
        sorted(
            running.read(
                "select answer, since, decided_at, reason from all_refuted_answers where run = :run"
            ),
            key=repr,
        ),
    )
