"""The page on benchmarks in Markdown, and the plots in it. Where we are behind comes first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from monitor.bench.peers_logs import ORDERS
from monitor.bench.report_plots import bars, lines
from monitor.bench.report_worse import Kept, worse

GOALS = {"flink": 5.0, "spark join": 1.0}
"""How many times a peer's speed the pipeline shall have at least, on the same task."""
OURS = ("pipeline", "kernel", "reference")
_ABOUT = {
    "pipeline": "Whilst as it runs: Spark, the kernel in it, answers in Postgres",
    "kernel": "its kernel alone, on one core, pending answers and their text included",
    "reference": "its reference evaluator, the definition step by step in plain Python",
    "flink": "Apache Flink, SQL `MATCH_RECOGNIZE` with a watermark of δ",
    "flink join": "Apache Flink, SQL interval joins with a watermark of δ",
    "spark join": "Spark's own stream-stream self-joins with watermarks of δ",
    "duckdb": "DuckDB, one query over the whole log: no stream",
    "meteor": "MeTeoR, materialisation in DatalogMTL over the whole log: no stream",
}


def page(run: Kept, before: Kept | None, drawn: list[str]) -> str:
    parts = [
        "# Benchmarks\n",
        f"Measured on {run.began[:10]} at commit `{run.commit}`, scale {run.scale:g}, in "
        f"{run.minutes:g} minutes; `make bench` makes this page anew, from figures that it adds "
        "to the folder `history`. Ratios within a run matter, absolute figures say as much about "
        "the machine.\n",
        _busy(run),
        f"{run.note}\n" if run.note else "",
        _behind(run, before),
        _answers(run),
        _speed(run, drawn),
        _curves(run, drawn),
        _others(run),
        _machine(run),
    ]
    return "\n".join(part for part in parts if part).rstrip() + "\n"


def _busy(run: Kept) -> str:
    if not run.busy:
        return ""
    return (
        f"When it began, the machine was busy with other work (load {run.load:g} on "
        f"{run.machine.get('cores')} cores): figures are lower, and differ more from run to run, "
        "than they would be on an idle one.\n"
    )


# --- where we are behind -------------------------------------------------------------------------


def _behind(run: Kept, before: Kept | None) -> str:
    found = [*_slower(run), *_slower_within(run), *_not_exact(run), *_larger(run)]
    text = ["## Where we are behind\n"]
    text += [f"- {line}" for line in found] or ["- In nothing that is measured here."]
    text.append("\n## What got worse\n")
    if before is None:
        text.append(
            "There is no earlier run of this size on this machine, otherwise idle, to compare with."
        )
    else:
        text.append(
            f"Against {before.began[:16]} (commit `{before.commit}`), by more than a fifth:\n"
        )
        text += [f"- {w.text}" for w in worse(before, run)] or ["- nothing."]
    return "\n".join(text) + "\n"


def _slower(run: Kept) -> Iterator[str]:
    for figure in run.where(bench="peers", peer="pipeline"):
        if not str(figure["figure"]).startswith("vs "):
            continue
        other, ratio = figure["figure"].removeprefix("vs "), figure["value"]
        goal = GOALS.get(other, 1.0)
        bound = run.value(
            bench="peers", task=figure["task"], peer=other, figure="events/s is at least"
        )
        most = "at most " if bound else ""
        if ratio < 1:
            yield (
                f"**{figure['task']}**: the pipeline has {most}{ratio:g} times the speed of {other}"
                + (f"; the goal is {goal:g}." if other in GOALS else ".")
            )
        elif ratio < goal:
            yield (
                f"**{figure['task']}**: the pipeline is {most}{ratio:g} times as fast as {other}; "
                f"the goal is {goal:g}."
            )


def _slower_within(run: Kept) -> Iterator[str]:
    """Behind another way of computing the same, by a bench of our own."""
    for figure in run.figures:
        alike = figure["bench"] != "peers" and figure["figure"] in ("vs duckdb", "vs reference")
        if alike and figure["value"] < 1:
            other = figure["figure"].removeprefix("vs ")
            yield (
                f"**{figure['task']}**: the {figure['bench']} has {figure['value']:g} times the "
                f"speed of {other}."
            )


def _not_exact(run: Kept) -> Iterator[str]:
    for figure in run.where(bench="peers"):
        bad = figure["figure"] in ("missed", "wrong", "cannot") and figure["value"]
        if bad and figure.get("peer") in OURS:
            yield (
                f"**{figure['task']}**, {figure.get('order', 'all orders')}: "
                f"{figure['peer']} {figure['figure']} {figure['value']}."
            )


def _larger(run: Kept) -> Iterator[str]:
    for task in _tasks(run):
        ours = run.value(bench="peers", task=task, peer="pipeline", figure="peak MB")
        others = {
            f["peer"]: f["value"]
            for f in run.where(bench="peers", task=task, figure="peak MB")
            if f["peer"] not in OURS
        }
        less = [f"{peer} {value:,}" for peer, value in others.items() if ours and value < ours]
        if less:
            yield f"**{task}**: the pipeline takes {ours:,} MB; less take {', '.join(less)}."


# --- answers and speed ---------------------------------------------------------------------------


def _answers(run: Kept) -> str:
    if not run.where(bench="peers", figure="found"):
        return ""
    text = [
        "## The same answers?\n",
        "The same small logs for all, read in the order of arrival. *Latency*: time points from "
        "the arrival of the last fact that an answer needs until the answer is known, median and "
        "most; systems with micro-batches read such a log in four, and an answer that "
        "comes out of the batch in which its last fact was read counts as known at once. "
        "*Lead*: how long before that it was to be seen as pending. *Lost*: events that a system "
        "drops as late and keeps nowhere; Whilst keeps late facts and shows them. An event beyond "
        "δ takes no part by definition, so an answer made with one is wrong.\n",
    ]
    for task in _tasks(run):
        text.append(f"### {task}\n")
        head = ("", "log", "found", "missed", "wrong", "latency", "lead", "lost", "kept as late")
        rows = []
        for peer in _peers(run):
            for order in ORDERS:
                row = _answer_row(run, task, peer, order)
                if row:
                    rows.append(row)
            reason = run.value(bench="peers", task=task, peer=peer, figure="cannot")
            if reason:
                rows.append((peer, "", f"cannot: {_plain(reason)}", *[""] * 6))
        text.append(_table(head, rows))
    return "\n".join(text)


def _answer_row(run: Kept, task: str, peer: str, order: str) -> tuple[str, ...] | None:
    def value(name: str) -> Any:
        return run.value(bench="peers", task=task, peer=peer, order=order, figure=name)

    if value("found") is None:
        return None
    return (
        peer,
        order,
        _show(value("found")),
        _show(value("missed")),
        _show(value("wrong")),
        _pair(value("latency"), value("latency most")),
        _pair(value("lead"), value("lead most")),
        _show(value("lost")),
        _show(value("late")),
    )


def _speed(run: Kept, drawn: list[str]) -> str:
    if not run.where(bench="peers", figure="events/s"):
        return ""
    text = [
        "## Speed and memory\n",
        "Events a second on a larger log, out of order within δ: the median of three runs, the "
        "least and the most. All read JSON Lines and write their answers; what a system needs to "
        "start (*start*: a log of a thousand events) is taken off; where that left next to nothing "
        "the log was too short, and the figure is a lower bound (≥). Memory is the sum over all "
        "processes of a system of what each has resident, at its peak.\n",
    ]
    if "speed.svg" in drawn:
        text.append("![Events a second of every system in every task](speed.svg)\n")
    for task in _tasks(run):
        text.append(f"### {task}: speed\n")
        rows = [row for peer in _peers(run) if (row := _speed_row(run, task, peer))]
        head = (
            "",
            "events/s",
            "least – most",
            "pipeline is",
            "events",
            "start s",
            "peak MB",
            "answers",
        )
        text.append(_table(head, rows))
    text.append(_bounds(run))
    text.append("| | what it is |\n|---|---|")
    text += [f"| {peer} | {_ABOUT.get(peer, '')} |" for peer in _peers(run)]
    return "\n".join(text) + "\n"


def _bounds(run: Kept) -> str:
    """What the pipeline does in its time, as far as it tells."""
    rows = []
    for task in _tasks(run):
        whole, kernel, changes = (
            run.value(bench="peers", task=task, peer="pipeline", figure=name)
            for name in ("seconds", "kernel s", "changes an event")
        )
        if whole is not None:
            share = f"{kernel / whole / 2:.0%}"
            rows.append((task, _show(whole), _show(kernel), share, _show(changes)))
    if not rows:
        return ""
    head = ("", "seconds of a run", "kernel s, both cores", "share", "changes an event")
    return (
        "### What bounds the pipeline\n\n"
        "Peers write answers alone. The pipeline writes every pending answer too, with evidence, "
        "hypotheses and deadline: these are its changes. What the kernel does not take goes to "
        "reading, shuffling and state in Spark, and to writing changes in Postgres; the bench "
        "`pipeline` below has the floor without kernel and store.\n\n" + _table(head, rows)
    )


def _speed_row(run: Kept, task: str, peer: str) -> tuple[str, ...] | None:
    def value(name: str, of: str = peer) -> Any:
        return run.value(bench="peers", task=task, peer=of, figure=name)

    if value("events/s") is None:
        reason = value("cannot")
        return (peer, f"cannot: {_plain(reason)}", *[""] * 6) if reason else None
    ours = value("events/s", "pipeline")
    ratio = f"{ours / value('events/s'):.2g} ×" if ours and peer != "pipeline" else ""
    there, given = value("answers there are"), value("answers")
    least = "≥ " if value("events/s is at least") else ""
    return (
        peer,
        least + _show(value("events/s")),
        f"{_show(value('events/s least'))} – {_show(value('events/s most'))}",
        ratio,
        _show(value("events")),
        _show(value("start s")),
        _show(value("peak MB")),
        _show(given) if given == there else f"{_show(given)} of {_show(there)}",
    )


# --- curves, other benches, machine --------------------------------------------------------------


def _curves(run: Kept, drawn: list[str]) -> str:
    found = run.where(bench="peers", figure="exponent")
    if not found:
        return ""
    text = [
        "## What the cost depends on\n",
        "One thing grows and all else stays. The exponent is that of cost against it: 0 is no "
        "growth, 1 is linear, -1 is perfect sharing (cores). Seconds are those of a whole run "
        "over a log of one file; a run of the pipeline has a fixed part in it.\n",
    ]
    rows = []
    for figure in found:
        points = _points(run, figure["task"], figure["peer"])
        shown = ", ".join(f"{x:,.0f}: {y:g} s" for x, y in points)
        rows.append((figure["task"], figure["peer"], _show(figure["value"]), shown))
    text.append(_table(("", "", "exponent", "seconds"), rows))
    text += [f"![{name[:-4].replace('-', ' ')}]({name})\n" for name in drawn if name != "speed.svg"]
    return "\n".join(text)


def _others(run: Kept) -> str:
    text = []
    for bench in dict.fromkeys(f["bench"] for f in run.figures if f["bench"] != "peers"):
        text.append(f"### {bench}\n")
        rows = [
            (str(f["task"]), str(f["figure"]), _show(f["value"])) for f in run.where(bench=bench)
        ]
        text.append(_table(("", "", ""), rows))
    return "\n".join(["## The other benches\n", *text]) if text else ""


def _machine(run: Kept) -> str:
    rows = [(key, _plain(str(value))) for key, value in run.machine.items()]
    return "## The machine\n\n" + _table(("", ""), rows)


def plots(run: Kept) -> dict[str, str]:
    """SVG by file name."""
    made = {}
    groups: dict[str, dict[str, tuple[float, float, float]]] = {}
    for figure in run.where(bench="peers", figure="events/s"):
        task, peer = figure["task"], figure["peer"]
        least, most = (
            run.value(bench="peers", task=task, peer=peer, figure=f"events/s {which}")
            for which in ("least", "most")
        )
        groups.setdefault(task, {})[peer] = (least, figure["value"], most)
    if groups:
        made["speed.svg"] = bars("Events a second", groups)
    for task in dict.fromkeys(f["task"] for f in run.where(bench="peers", figure="exponent")):
        series = {
            f["peer"]: _points(run, task, f["peer"])
            for f in run.where(bench="peers", task=task, figure="exponent")
        }
        name = f"{task.replace(' ', '-')}.svg"
        made[name] = lines(task.capitalize(), task.removeprefix("cost by "), "seconds", series)
    return made


def _points(run: Kept, task: str, peer: str) -> list[tuple[float, float]]:
    found = []
    for figure in run.where(bench="peers", task=task, peer=peer):
        at = re.fullmatch(r"seconds at ([\d,]+)", figure["figure"])
        if at:
            found.append((float(at[1].replace(",", "")), float(figure["value"])))
    return found


def _tasks(run: Kept) -> list[str]:
    return list(
        dict.fromkeys(
            f["task"] for f in run.where(bench="peers") if not f["task"].startswith("cost by ")
        )
    )


def _peers(run: Kept) -> list[str]:
    return list(dict.fromkeys(f["peer"] for f in run.where(bench="peers") if f.get("peer")))


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines_of = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    lines_of += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(lines_of) + "\n"


def _pair(middle: Any, most: Any) -> str:
    return "" if middle is None else f"{_show(middle)}, {_show(most)}"


def _show(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return _plain(value)
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:g}"


def _plain(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
