"""MeTeoR, a reasoner for DatalogMTL: materialisation over the whole log."""

from __future__ import annotations

import contextlib
import io
import time
from typing import Any

from meteor_reasoner.materialization.coalesce import coalescing_d
from meteor_reasoner.materialization.materialize import materialize
from meteor_reasoner.utils.loader import load_dataset, load_program
from protocol import Answer, Job, arguments, events_of, known_at_the_end, reply


def _rules(task: str, window: int) -> list[str]:
    if task == "turbines":
        return ["Answer(X):-High(X),Boxplus[1,1]High(X),Boxplus[2,2]High(X)"]
    if task == "login":
        return [f"Answer(X):-Success(X),Diamondminus[1,{window}]Fail(X)"]
    stops = []
    for k in (1, 2, 3, 4):
        chain = ",".join(f"Boxminus[{i},{i}]Pos(X)" for i in range(1, k + 1))
        stops.append(f"Answer(X):-Out(X),{chain},Boxminus[{k + 1},{k + 1}]Out(X)")
    return ["Out(X):-NotPos(X)", "Out(X):-NotOnMap(X)", *stops]


def _fact(event: dict[str, Any]) -> str:
    name = event["args"][1].capitalize() if len(event["args"]) > 1 else event["fact"]
    return f"{name}({event['args'][0]})@[{event['time']},{event['time']}]"


def run(job: Job) -> tuple[list[Answer] | None, dict[str, Any]]:
    began = time.perf_counter()
    with contextlib.redirect_stdout(io.StringIO()):
        facts = load_dataset([_fact(event) for event in events_of(job.events)])
        coalescing_d(facts)
        materialize(facts, load_program(_rules(job.task, job.window)), mode="seminaive", K=5)
    rows = {
        (entity[0].name, at)
        for entity, intervals in facts["Answer"].items()
        for interval in intervals
        for at in range(int(interval.left_value), int(interval.right_value) + 1)
    }
    seconds = time.perf_counter() - began
    return known_at_the_end(job, rows, seconds)


def main() -> None:
    for job in arguments().jobs:
        reply(*run(job))


if __name__ == "__main__":
    main()
