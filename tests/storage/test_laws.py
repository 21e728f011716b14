"""However changes are cut into batches, the store says what a small model in memory says."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from storage.store import Store
from tests.storage.changes import Running, a_program, dropped, triple
from tests.storage.model import Row, said, stored


@dataclass(frozen=True)
class Step:
    """A change (or the passing of time alone), and whether a batch ends after it."""

    row: Row | None
    tau: int
    cut: bool


@st.composite
def triples(draw: st.DrawFn) -> Row:
    start = draw(st.integers(0, 6))
    waiting = draw(st.sampled_from([0, 1, 1, 1, 2, 2, 2]))
    hypotheses = sorted(draw(st.permutations("fghk"))[:waiting])
    deadline = end = None
    if hypotheses:
        deadline = draw(st.none() | st.integers(start + 1, 9))
        end = draw(st.none() | st.integers(start + 1, deadline or 9))
    answer = draw(st.sampled_from("abc"))
    return triple(answer, ["e"], hypotheses, start=start, end=end, deadline=deadline)


@st.composite
def lives(draw: st.DrawFn) -> list[Step]:
    steps, tau, known = [], 0, {}
    for _ in range(draw(st.integers(1, 20))):
        tau += draw(st.sampled_from([0, 0, 1, 2]))
        kind = draw(st.sampled_from(["put", "put", "put", "put", "drop", "time"]))
        row: Row | None = None
        if kind == "put":
            row = draw(triples())
            known[row["triple"]] = row
        elif kind == "drop" and known:
            row = dropped(known.pop(draw(st.sampled_from(sorted(known)))))
        steps.append(Step(row, tau, draw(st.sampled_from([True, False, False, False]))))
    return steps


ALONE = ("a", "b")
"""Answers that no other group speaks of."""


def told(rows: list[Row], known: dict[str, Row]) -> list[Row]:
    """The changes of a batch as the kernel says them, given what was said before."""
    before = {row["answer"] for row in known.values()}
    found = []
    for row in rows:
        op = row["op"]
        if op == "put" and row["triple"] not in known:
            op = "first" if row["answer"] in ALONE and row["answer"] not in before else "new"
        if op != "drop" or row["triple"] in known:
            found.append({**row, "op": op})
    return found


def play(running: Running, steps: list[Step], cuts: list[bool], *, live: bool) -> None:
    """Apply the steps; a batch ends where told, or where it would say a triple twice.

    Live, every batch makes a time point complete. Otherwise none is until all is read; but what is
    over by then, so far as was read, is written down as such.
    """
    rows: dict[str, Row] = {}
    kept: dict[str, Row] = {}
    known: dict[str, Row] = {}
    for step, cut in zip(steps, [*cuts[:-1], True], strict=True):
        if step.row is not None:
            kept[step.row["triple"]] = step.row
            rows[step.row["triple"]] = step.row  # the net difference: the last one stands
        if cut:
            tau = step.tau if live else None
            running.apply(*told(list(rows.values()), known), tau=tau, over=step.tau)
            rows = {}
            known = {name: row for name, row in kept.items() if row["op"] == "put"}
            if live:
                assert stored(running) == said(list(known.values()), step.tau)
    if not live:
        assert stored(running)[2] == []  # nothing is refuted before it is complete
        running.complete(steps[-1].tau)
        assert stored(running) == said(list(known.values()), steps[-1].tau)


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps=lives(), data=st.data())
def test_any_cut_says_what_the_model_says(
    embedded_store: Store, steps: list[Step], data: st.DataObject
) -> None:
    program = a_program("laws")
    one = Running(embedded_store, program)
    play(one, steps, [step.cut for step in steps], live=True)
    counts = "select pending, confirmed, refuted from counts where run = :run"
    known = {step.row["triple"]: step.row for step in steps if step.row is not None}
    there = {row["answer"] for row in known.values() if row["op"] == "put"}
    _, confirmed, refuted = stored(one)
    decided = len(confirmed) + len(refuted)
    assert one.read(counts) == [(len(there) - decided, len(confirmed), len(refuted))]
    for live in (True, False):
        other = Running(embedded_store, program)
        cut = st.sampled_from([True, False, False, False])
        cuts = data.draw(st.lists(cut, min_size=len(steps), max_size=len(steps)))
        play(other, steps, cuts, live=live)
        for select in (
            counts,
            "select event, tau, triple from history where run = :run order by 1, 2, 3",
            "select answer, status, since, decided_at, reason, deadline from answers "
            "where run = :run order by 1",
            "select id, start_tau, end_tau, live from lives where run = :run order by 1",
        ):
            assert one.read(select) == other.read(select)
        other.close()
    one.close()


def test_the_model_can_fail(embedded_store: Store) -> None:
    """The law above compares something: a store that was told less says less."""
    running = Running(embedded_store, a_program())
    rows = [triple("a", ["e"], ["h"], start=0), triple("b", start=0)]
    running.apply(rows[0], tau=0)
    assert stored(running) != said(rows, 0)
    assert stored(running)[0] == [("a", 0, None, ("h",))]
    running.close()
