"""The commands, as a person types them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from storage.store import Store
from tests.alerts.conftest import SECRET, alert
from tests.alerts.test_delivery import confirmed, register, statuses
from tests.services.receiver import Receiver, Reply
from tests.storage.changes import Running


@pytest.fixture
def whilst(store: Store, tmp_path: Path):
    def run(*arguments: str, code: int = 0) -> str:
        main = "from monitor.cli import main; main()"
        done = subprocess.run(
            [sys.executable, "-c", main, *arguments, "--store", store.url("writer")],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "COLUMNS": "300"},
            timeout=120,
        )
        both = done.stdout + done.stderr
        assert done.returncode == code, both
        assert "Traceback" not in both
        assert SECRET.removeprefix("whsec_") not in both
        return done.stdout if code == 0 else done.stderr

    return run


def declare(folder: Path, url: str) -> None:
    (folder / "whilst.toml").write_text(
        f'[[alert]]\nname = "pager"\nurl = "{url}?key=hunter2"\n'
        'secret_env = "HOOK_SECRET"\nallow_private = true\n'
    )


def test_declared_delivered_and_listed(
    whilst, store: Store, running: Running, receiver: Receiver, tmp_path: Path
) -> None:
    declare(tmp_path, receiver.url)
    assert "pager" in whilst("alerts", "list")
    running.apply(confirmed("a"), confirmed("b"), tau=2)
    assert whilst("deliver", "--once") == "delivered 2, failed attempts 0\n"
    (row,) = json.loads(whilst("alerts", "list", "--format", "json"))
    assert (row["name"], row["status"], row["delivered"], row["waiting"], row["dead"]) == (
        "pager",
        "enabled",
        2,
        0,
        0,
    )
    assert row["last_status"] == 204
    assert "hunter2" not in json.dumps(row)
    assert all(request.verified(SECRET) for request in receiver.requests)


def test_a_store_is_made_without_a_word_of_its_tools(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from monitor.cli import main; main()", "deliver", "--once"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "WHILST_HOME": "home"},
        timeout=120,
    )
    assert (done.stdout, done.stderr) == ("delivered 0, failed attempts 0\n", "")


def test_failures_are_said(
    whilst, store: Store, running: Running, receiver: Receiver, tmp_path: Path
) -> None:
    declare(tmp_path, receiver.url)
    whilst("alerts", "list")
    receiver.behaviour = lambda _: Reply(500)
    running.apply(confirmed("a"), tau=2)
    assert "`whilst alerts list` says what failed" in whilst("deliver", "--once", code=1)
    assert re.search(
        r"^pager +http://\S+/… +enabled +1 .* the reply was 500$", whilst("alerts", "list"), re.M
    )
    (row,) = json.loads(whilst("alerts", "list", "--format", "json"))
    assert (row["waiting"], row["last_status"], row["last_error"]) == (1, 500, "the reply was 500")
    receiver.behaviour = lambda _: Reply()
    assert whilst("alerts", "retry", "pager").startswith("1 to be tried again")
    whilst("deliver", "--once")
    assert statuses(store) == {"delivered": 1}


def test_a_test_says_what_came_of_it(whilst, receiver: Receiver, tmp_path: Path) -> None:
    declare(tmp_path, receiver.url)
    assert whilst("alerts", "test", "pager").startswith("pager: 204 in ")
    told = receiver.requests[0].verified(SECRET)
    assert isinstance(told, dict)
    assert told["type"] == "test"
    receiver.behaviour = lambda _: Reply(401)
    assert whilst("alerts", "test", "pager", code=1) == "error: pager: the reply was 401\n"
    assert "there is no alert 'other'; there are pager" in whilst("alerts", "test", "other", code=1)


def test_disabled_and_enabled(
    whilst, store: Store, running: Running, receiver: Receiver, tmp_path: Path
) -> None:
    register(store, alert(receiver.url, "pager"))
    running.apply(confirmed("a"), tau=2)
    whilst("alerts", "disable", "pager")
    running.apply(confirmed("b"), tau=2)
    assert whilst("deliver", "--once") == "delivered 0, failed attempts 0\n"
    assert receiver.requests == []
    assert whilst("alerts", "retry", "pager").endswith(
        "pager is disabled: first `whilst alerts enable pager`\n"
    )
    whilst("alerts", "enable", "pager")
    assert whilst("deliver", "--once") == "delivered 1, failed attempts 0\n"


def test_mistakes(whilst, tmp_path: Path) -> None:
    (tmp_path / "url").write_text("ftp://example.org")
    (tmp_path / "other.toml").write_text(
        '[[alert]]\nname = "x"\nurl_file = "url"\nsecret_env = "HOOK_SECRET"\n'
    )
    said = whilst("alerts", "test", "x", "--config", "other.toml", code=1)
    assert said == f"error: file:{tmp_path}/url: the URL has to begin with https:// or http://\n"
    assert "there is no missing.toml" in whilst("deliver", "--config", "missing.toml", code=1)
    (tmp_path / "whilst.toml").write_text('[[alert]]\nname = "x"\nurl = "http://127.0.0.1/"\n')
    said = whilst("deliver", "--once", code=1)
    assert said.startswith("error: whilst.toml, alert 'x': it needs a secret")
    assert said.count("\n") == 1
    whilst("alerts", "retry", code=2)
    assert "no alert 7 waits or was given up" in whilst("alerts", "retry", "--id", "7", code=1)


def test_a_missing_secret_is_said_and_nothing_goes_out_unsigned(
    whilst, store: Store, running: Running, receiver: Receiver
) -> None:
    register(store, alert(receiver.url, "pager", secret="env:NOT_SET"))
    running.apply(confirmed("a"), tau=2)
    assert "alert pager: the environment variable NOT_SET is not set" in whilst(
        "deliver", "--once", code=1
    )
    assert receiver.requests == []
    assert statuses(store) == {"waiting": 1}
