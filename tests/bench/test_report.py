"""The report: what is kept, what it says first, what got worse, and that its plots are drawings."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from monitor.bench import dashboard
from monitor.bench.report import build, keep, machine, write
from monitor.bench.report_plots import bars, lines
from monitor.bench.report_worse import Kept, worse
from monitor.cli import app
from monitor.setup.places import SetupError

BEGAN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def _peer(peer: str, figure: str, value: object, order: str | None = None) -> dict[str, Any]:
    made = {"bench": "peers", "task": "turbines", "peer": peer, "figure": figure, "value": value}
    return made | ({"order": order} if order else {})


def _answers(peer: str, missed: int, wrong: int) -> list[dict[str, Any]]:
    values = {"found": 100 - missed, "missed": missed, "wrong": wrong, "latency": 4, "lost": 1}
    return [_peer(peer, name, value, "within δ") for name, value in values.items()]


def _speeds(peer: str, rate: int, memory: int) -> list[dict[str, Any]]:
    values = {"events/s": rate, "events/s least": rate - 1, "events/s most": rate + 1}
    values |= {"peak MB": memory, "events": 1000, "answers": 9, "answers there are": 10}
    return [_peer(peer, name, value) for name, value in values.items()]


def _figures(rate: int = 3_000) -> list[dict[str, Any]]:
    curve = {"bench": "peers", "task": "cost by window", "peer": "kernel"}
    return [
        *_answers("pipeline", 0, 0),
        *_answers("flink", 7, 2),
        *_speeds("pipeline", rate, 900),
        *_speeds("flink", 1_000, 500),
        _peer("pipeline", "vs flink", rate / 1_000),
        _peer("meteor", "cannot", "does not install: no | such"),
        curve | {"figure": "seconds at 10", "value": 1.0},
        curve | {"figure": "seconds at 1,000", "value": 2.0},
        curve | {"figure": "exponent", "value": 0.15},
        {"bench": "store", "task": "merge", "figure": "rows/s", "value": 70_000},
    ]


def test_a_report_is_written_from_what_is_kept(tmp_path: Path) -> None:
    page = write(tmp_path, _figures(), 0.1, BEGAN)
    text = page.read_text()
    assert "Measured on 2026-01-02" in text
    sections = re.findall(r"(?m)^## (.*)$", text)
    assert sections[0] == "Where we are behind"
    assert sections[-2:] == ["The other benches", "The machine"]
    assert "| flink | within δ | 93 | 7 | 2 | 4, " in text
    assert "cannot: does not install: no \\| such" in text
    assert "| pipeline | 3,000 | 2,999 – 3,001 |" in text
    assert "9 of 10" in text
    assert "| cost by window | kernel | 0.15 | 10: 1 s, 1,000: 2 s |" in text
    assert "| merge | rows/s | 70,000 |" in text
    for name in re.findall(r"\]\((.*?\.svg)\)", text):
        ElementTree.parse(tmp_path / name)
    assert {p.name for p in tmp_path.glob("*.svg")} == {"speed.svg", "cost-by-window.svg"}
    kept = json.loads((tmp_path / "history" / "2026-01-02T030405Z.json").read_text())
    assert kept["figures"] == _figures()
    text_again = build(tmp_path).read_text()
    assert text_again == text


def test_where_we_are_behind_is_said_first(tmp_path: Path) -> None:
    text = write(tmp_path, _figures(3_000), 0.1, BEGAN).read_text()
    behind = text.split("## Where we are behind")[1].split("## ")[0]
    assert "the pipeline is 3 times as fast as flink; the goal is 5." in behind
    assert "the pipeline takes 900 MB; less take flink 500." in behind
    text = write(tmp_path, _figures(500), 0.1, BEGAN + timedelta(days=1)).read_text()
    assert "the pipeline has 0.5 times the speed of flink; the goal is 5." in text
    fine = [f for f in _figures(6_000) if f["figure"] != "peak MB"]
    text = write(tmp_path, fine, 0.1, BEGAN + timedelta(days=2)).read_text()
    assert "- In nothing that is measured here." in text


def test_a_run_on_a_busy_machine_is_compared_with_none(tmp_path: Path) -> None:
    keep(tmp_path, _figures(3_000), 0.1, BEGAN, 0.1)
    text = write(tmp_path, _figures(300), 0.1, BEGAN + timedelta(days=1), 9.0).read_text()
    assert "3,000 → 300" not in text
    text = write(tmp_path, _figures(200), 0.1, BEGAN + timedelta(days=2), 0.1).read_text()
    assert "3,000 → 200" in text


def test_a_speed_that_is_a_lower_bound_says_so(tmp_path: Path) -> None:
    figures = [*_figures(), _peer("flink", "events/s is at least", 1)]
    text = write(tmp_path, figures, 0.1, BEGAN).read_text()
    assert "| flink | ≥ 1,000 |" in text
    assert "the pipeline is at most 3 times as fast as flink" in text
    assert "| pipeline | 3,000 |" in text


def test_a_note_in_the_file_of_a_run_is_told(tmp_path: Path) -> None:
    path = keep(tmp_path, _figures(), 0.1, BEGAN)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"note": "One disk was slow."}))
    assert "One disk was slow." in build(tmp_path).read_text()


def test_a_busy_machine_is_told(tmp_path: Path) -> None:
    busy = write(tmp_path, _figures(), 0.1, BEGAN, 7.5).read_text()
    idle = write(tmp_path, _figures(), 0.1, BEGAN + timedelta(days=1), 0.2).read_text()
    assert "busy with other work (load 7.5 on" in busy
    assert "busy" not in idle


def test_a_kernel_slower_than_duckdb_is_said_first(tmp_path: Path) -> None:
    figure = {"bench": "kernel", "task": "example 8", "figure": "vs duckdb", "value": 0.7}
    text = write(tmp_path, [figure], 0.1, BEGAN).read_text()
    assert "**example 8**: the kernel has 0.7 times the speed of duckdb." in text


def test_an_answer_of_ours_that_is_wrong_is_said_first(tmp_path: Path) -> None:
    text = write(tmp_path, _answers("kernel", 0, 3), 0.1, BEGAN).read_text()
    behind = text.split("## Where we are behind")[1].split("## ")[0]
    assert "kernel wrong 3." in behind


def test_a_change_for_the_worse_is_told(tmp_path: Path) -> None:
    keep(tmp_path, _figures(3_000), 0.1, BEGAN)
    text = write(tmp_path, _figures(2_000), 0.1, BEGAN + timedelta(days=1)).read_text()
    assert "- peers, turbines, pipeline: events/s 3,000 → 2,000" in text
    text = write(tmp_path, _figures(1_900), 0.1, BEGAN + timedelta(days=2)).read_text()
    assert "- nothing." in text
    text = write(tmp_path, _figures(100), 0.5, BEGAN + timedelta(days=3)).read_text()
    assert "There is no earlier run of this size on this machine, otherwise idle" in text


@pytest.mark.parametrize(
    ("figure", "before", "now", "told"),
    [
        ("events/s", 100, 70, True),
        ("events/s", 100, 90, False),
        ("events/s", 100, 200, False),
        ("vs flink", 5.0, 3.0, True),
        ("peak MB", 100, 150, True),
        ("peak MB", 100, 60, False),
        ("seconds at 60", 1.0, 1.5, True),
        ("wrong", 0, 1, True),
        ("events/s least", 100, 10, False),
        ("floor events/s", 100, 10, True),
        ("latency", None, 3, False),
        ("cannot", "one", "two", False),
    ],
)
def test_what_counts_as_worse(figure: str, before: Any, now: Any, told: bool) -> None:
    def run(value: Any) -> Kept:
        return Kept("", 0, 1, "", None, {}, [_peer("pipeline", figure, value)])

    assert bool(worse(run(before), run(now))) is told


def test_a_peer_that_got_slower_is_not_our_concern() -> None:
    old, new = (Kept("", 0, 1, "", None, {}, _speeds("flink", rate, 5)) for rate in (1000, 10))
    assert worse(old, new) == []


def test_a_machine_is_described_without_its_name() -> None:
    import platform

    told = machine()
    assert all(told[key] for key in ("cores", "processor", "java"))
    assert platform.node() not in json.dumps(told).split('"')


def test_plots_are_drawings() -> None:
    drawn = bars("<Speed> & more", {"task": {"a": (1.0, 10.0, 100.0), "b": (5.0, 5.0, 5.0)}})
    tree = ElementTree.fromstring(drawn)
    assert len([e for e in tree.iter() if e.tag.endswith("title")]) == 2
    tree = ElementTree.fromstring(lines("t", "x", "y", {"k": [(1, 0.5), (100, 5.0)]}))
    assert len([e for e in tree.iter() if e.tag.endswith("circle")]) == 2
    ElementTree.fromstring(lines("t", "x", "y", {"k": [(7, 1.0)]}))


def test_bench_writes_a_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("monitor.bench.kernel.figures", lambda scale: iter(_figures()[-1:]))
    done = CliRunner().invoke(app, ["bench", "kernel", "--report", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert "merge" in done.stdout
    assert "70,000" in (tmp_path / "out" / "README.md").read_text()


def test_of_several_benches_one_that_fails_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(scale: float) -> Any:
        raise RuntimeError("no browser here")
        yield

    monkeypatch.setattr("monitor.cli.bench.BENCHES", ("dashboard", "kernel"))
    monkeypatch.setattr("monitor.bench.dashboard.figures", fails)
    monkeypatch.setattr("monitor.bench.kernel.figures", lambda scale: iter(_figures()[-1:]))
    done = CliRunner().invoke(app, ["bench", "all", "--format", "json"])
    assert done.exit_code == 0, done.output
    first, second = map(json.loads, done.stdout.splitlines())
    assert first == {
        "bench": "dashboard",
        "task": "",
        "figure": "cannot",
        "value": "no browser here",
    }
    assert second["task"] == "merge"


def test_a_bench_says_in_a_line_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("monitor.setup.doctor.chromium", lambda: None)
    with pytest.raises(SetupError), dashboard._browser():
        pass

    def fails(scale: float) -> Any:
        raise SetupError("there is no Chromium", "make bench gets it")
        yield

    monkeypatch.setattr("monitor.bench.dashboard.figures", fails)
    done = CliRunner().invoke(app, ["bench", "dashboard"])
    assert done.exit_code == 1
    assert done.stderr == "error: there is no Chromium; make bench gets it\n"
