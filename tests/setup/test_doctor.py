"""`whilst doctor` finds what is missing, and says what to do."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from monitor.setup import doctor, java
from monitor.setup.places import SetupError


def findings() -> dict[str, doctor.Finding]:
    return {finding.check: finding for finding in doctor.look()}


def test_after_setup_nothing_is_a_problem() -> None:
    assert not [f for f in doctor.look() if f.state == "problem"]


def test_whatever_is_not_ok_comes_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_java() -> java.Java:
        raise SetupError("no Java", "get one")

    monkeypatch.setattr(java, "require", no_java)
    monkeypatch.setenv("WHILST_JARS", str(tmp_path / "none"))
    monkeypatch.setattr(doctor, "_CHROMIUM", ("no-such-browser",))
    monkeypatch.setattr(doctor, "_synchronised", lambda: False)
    found = findings()
    assert {name for name, f in found.items() if f.state == "problem"} == {"java", "connector"}
    assert {"broker", "chromium", "clock"} <= {n for n, f in found.items() if f.state == "warning"}
    assert all(f.do for f in found.values() if f.state != "ok")


def test_a_taken_port_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setattr(doctor, "DASHBOARD_PORT", server.getsockname()[1])
        assert findings()["port"].state == "warning"
    assert findings()["port"].state == "ok"


def test_a_home_that_cannot_be_a_folder_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("WHILST_HOME", str(tmp_path / "file" / "home"))
    assert findings()["home"].state == "problem"
    monkeypatch.setenv("WHILST_HOME", str(tmp_path / "new" / "home"))
    assert findings()["home"].state == "ok"
    assert not (tmp_path / "new").exists()


def test_a_clock_behind_the_code_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import os
    import time

    ahead = tmp_path / "doctor.py"
    ahead.touch()
    os.utime(ahead, (time.time() + 3600, time.time() + 3600))
    monkeypatch.setattr(doctor, "__file__", str(ahead))
    assert findings()["clock"].state == "problem"
