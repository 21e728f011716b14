"""Peers: the logs they are given, how their answers are scored, and how they are driven."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from monitor.bench.peers import compared, rates_of
from monitor.bench.peers_curves import CURVES
from monitor.bench.peers_logs import ORDERS, TASKS, Event, Task, delayed, write_log
from monitor.bench.peers_run import PEERS, Peer, PeerFailed, running, tree
from monitor.bench.peers_score import Truth, exponent, score, truth
from resolution.facts import Fact
from resolution.lives import lives
from resolution.premises import premise_sets
from resolution.program import load
from resolution.terms import Atom, Time, parse_value

OURS = tuple(peer for peer in PEERS if peer.name in ("kernel", "reference"))


# --- scoring -------------------------------------------------------------------------------------


def test_found_missed_and_wrong() -> None:
    true = Truth({("a", 1): 5, ("a", 2): 6, ("b", 1): 7}, [], 0)
    scored = score(true, [("a", 1, 5, 5), ("b", 1, 9, 9), ("c", 1, 9, 9)])
    assert (scored.found, scored.missed, scored.wrong) == (2, 1, 1)
    assert not scored.exact
    assert (scored.latency, scored.latest) == (1.0, 2)


def test_an_answer_twice_is_one_answer_known_when_it_first_came() -> None:
    true = Truth({("a", 1): 5}, [], 0)
    scored = score(true, [("a", 1, 9, 9), ("a", 1, 6, 6), ("a", 1, 12, 12)])
    assert scored.exact
    assert scored.latest == 1


def test_the_batch_that_read_the_last_fact_knows_at_once() -> None:
    true = Truth({("a", 1): 15}, [], 0)
    assert score(true, [("a", 1, 10, 19)]).latest == 0
    assert score(true, [("a", 1, 20, 29)]).latest == 5


def test_nothing_found_has_no_latency() -> None:
    scored = score(Truth({("a", 1): 5}, [], 0), [])
    assert (scored.found, scored.missed, scored.latency, scored.latest) == (0, 1, None, None)


def test_the_truth_of_the_worked_example() -> None:
    """SEMANTICS: two facts arrive at 2, Malf(wt2, 0) is confirmed there and was pending from 0."""
    events = [_temp("wt2", 0, 0), _temp("wt2", 1, 2), _temp("wt2", 2, 2), _temp("wt2", 3, 99)]
    found = truth(_task("turbines").program, events, 4)
    assert found == Truth({("wt2", 0): 2}, [2], 1)


def _temp(device: str, time: int, arrival: int) -> Event:
    return {"fact": "Temp", "args": [device, "high"], "time": time, "arrival": arrival}


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
@pytest.mark.parametrize("order", ORDERS)
def test_the_truth_is_what_the_reference_evaluator_says(task: Task, order: str) -> None:
    events = delayed(task.make(0), task.delay, order)[:500]
    program = load(task.program)
    facts = [
        Fact(
            Atom(e["fact"], tuple(map(parse_value, e["args"])), Time(None, e["time"])), e["arrival"]
        )
        for e in events
        if e["arrival"] <= e["time"] + task.delay
    ]
    arrived = {fact.atom: fact.arrival for fact in facts}
    slow = {
        str(life.triple.answer): life.start
        for life in lives(premise_sets(program, program.queries[0]), program.delays, arrived)
        if life.triple.confirmed
    }
    query = program.queries[0].name
    found = truth(task.program, events, task.delay)
    assert {f"{query}({key}, {at})": tau for (key, at), tau in found.confirmed.items()} == slow
    assert slow
    assert found.late == len(events) - len(facts)


def test_an_exponent() -> None:
    assert exponent([1, 10, 100], [3, 30, 300]) == 1.0
    assert exponent([1, 10, 100], [7, 7, 7]) == 0.0
    assert exponent([1, 2], [10, 5]) == -1.0


def test_the_start_is_taken_off_unless_nothing_else_is_left() -> None:
    assert rates_of(101_000, [11.0, 6.0], 1.0) == [10_000, 20_000]
    assert rates_of(3_000, [1.2, 3.0], 1.0) == [1_000, 2_500]


# --- logs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ORDERS[:2])
def test_short_stops_are_1263_in_any_order(order: str) -> None:
    task = _task("shortstop")
    events = delayed(task.make(0), task.delay, order)
    assert len(truth(task.program, events, task.delay).confirmed) == 1_263


def test_short_stops_are_enlarged_over_renamed_vehicles() -> None:
    task = _task("shortstop")
    events = delayed(task.make(16_000), task.delay, "within δ")
    assert len(truth(task.program, events, task.delay).confirmed) == 2 * 1_263


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_orders_are_what_they_say(task: Task) -> None:
    late = {}
    for order in ORDERS:
        events = delayed(task.make(0), task.delay, order)
        behind = [e["arrival"] - e["time"] for e in events]
        assert [e["arrival"] for e in events] == sorted(e["arrival"] for e in events)
        late[order] = sum(b > task.delay for b in behind) / len(events)
        assert (max(behind) == 0) == (order == "in order")
    assert late["in order"] == late["within δ"] == 0
    assert 0.005 < late["1 % beyond δ"] < 0.015


@pytest.mark.parametrize("files", [None, 3])
def test_a_log_holds_every_event_in_order_of_age(files: int | None, tmp_path: Path) -> None:
    events = delayed(_task("login").make(90), 5, "within δ")
    log = write_log(events, tmp_path / "log", files)
    paths = sorted(log.folder.iterdir())
    assert len(paths) == log.files == (files or len({e["arrival"] for e in events}))
    assert [json.loads(line) for path in paths for line in path.open()] == events
    assert log.whole.read_text() == "".join(path.read_text() for path in paths)
    assert sorted(paths, key=lambda path: path.stat().st_mtime) == paths


def _task(name: str) -> Task:
    return next(task for task in TASKS if task.name == name)


@pytest.mark.parametrize("curve", CURVES, ids=lambda curve: curve.name)
def test_programs_of_curves_have_no_mistake(curve: Any) -> None:
    for value in curve.values:
        program, _, events, _ = curve.make(value, 100)
        assert load(program).queries
        assert events


# --- processes -----------------------------------------------------------------------------------


def test_ours_find_every_answer_and_tell_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel and the reference evaluator as peers, from their processes to the ratios."""
    small = [_small(task) for task in TASKS]
    monkeypatch.setattr("monitor.bench.peers.TASKS", small)
    monkeypatch.setattr("monitor.bench.peers.REPEATS", 1)
    found = list(compared(0.002, OURS))
    assert not [f for f in found if f["figure"] == "cannot"]
    for task in small:
        mine = [f for f in found if f["task"] == task.name]
        assert {f["figure"] for f in mine} >= {"events/s", "peak MB", "lead", "vs reference"}
        for peer in OURS:
            by_peer = [f for f in mine if f["peer"] == peer.name]
            assert all(
                f["value"] == 0 for f in by_peer if f["figure"] in ("missed", "wrong", "lost")
            )
            assert all(f["value"] == 0 for f in by_peer if f["figure"] == "latency most")
            assert [f["value"] > 0 for f in by_peer if f["figure"] == "found"] == [True] * 3
            given = {f["figure"]: f["value"] for f in by_peer}
            assert given["answers"] == given["answers there are"] > 0
            assert given["peak MB"] > 10


def _small(task: Task) -> Task:
    return Task(task.name, task.program, task.delay, lambda n: task.make(n)[:600], task.window)


def test_duckdb_takes_part_and_takes_late_events_for_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In our own environment, which has it: nothing is downloaded."""
    duckdb = Peer("duckdb", "duckdb_peer.py")
    monkeypatch.setattr("monitor.bench.peers.TASKS", [_task("turbines")])
    monkeypatch.setattr("monitor.bench.peers.REPEATS", 1)
    found = list(compared(0.002, (duckdb,)))
    value = {(f.get("order"), f["figure"]): f["value"] for f in found}
    assert value["within δ", "missed"] == value["within δ", "wrong"] == 0
    assert value["within δ", "latency most"] > 100
    assert value["1 % beyond δ", "missed"] == 0
    assert value["1 % beyond δ", "wrong"] > 0


def test_a_peer_that_dies_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("monitor.bench.peers_run.SCRIPTS", tmp_path)
    (tmp_path / "dies.py").write_text("input()\nraise ValueError('this task is too much')\n")
    with running(Peer("dies", "dies.py"), tmp_path) as one:
        with pytest.raises(PeerFailed, match="ValueError: this task is too much"):
            one.do({}, 60)
        with pytest.raises(PeerFailed, match="too much"):
            one.do({}, 60)


def test_a_peer_that_never_answers_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("monitor.bench.peers_run.SCRIPTS", tmp_path)
    monkeypatch.setattr("monitor.bench.peers_run.PATIENCE", 0.1)
    (tmp_path / "waits.py").write_text(
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "print('up', flush=True)\nchild.wait()\n"
    )
    with running(Peer("waits", "waits.py"), tmp_path) as one:
        with pytest.raises(PeerFailed, match="took more than"):
            one.do({}, 1)
        process = one.process
    assert process.returncode == -9


def test_a_peer_that_does_not_install_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("monitor.bench.peers_run.cache", lambda: tmp_path)
    nothing = Peer("nothing", "nothing_peer.py", None, (f"{tmp_path}/there-is-no-such-wheel.whl",))
    with pytest.raises(PeerFailed, match="does not install"), running(nothing, tmp_path):
        pass


def test_a_tree_of_processes() -> None:
    processes = {1: (0, 5), 2: (1, 5), 3: (2, 5), 4: (1, 5), 5: (0, 5)}
    assert tree(2, processes) == {2, 3}
    assert tree(1, processes) == {1, 2, 3, 4}


def test_an_environment_of_a_peer_imports_nothing_of_ours() -> None:
    """What runs elsewhere may use the standard library and its own package alone."""
    folder = Path(__file__).resolve().parents[2] / "benchmarks" / "peers"
    code = "import sys, protocol; print([m for m in sys.modules if m in ('monitor', 'resolution')])"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
    )
    assert done.stdout == "[]\n", done.stderr
