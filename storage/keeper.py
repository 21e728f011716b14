"""The process that keeps the embedded server up while somebody uses it, and ends it afterwards.

Started by `storage.embedded` as a script of its own, with nothing but the standard library, and
detached from whoever started it, so that a killed user takes no server with it. What it goes by:

    users.lock    held shared by every process that uses the server; a killed one lets go of it
    keep          there while `whilst db start` wants the server kept without users
    start.lock    held while somebody starts or ends the server
    keeper.lock   held by the one keeper

A server that dies while it is used is started again, on the same port.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

PATIENCE = 60.0
"""Seconds for which a server that never came up is tried again (a killed one's backends may need a
while to notice that their postmaster is gone). One that did is tried for as long as it is used: its
disk may be full for a while."""

_TICK = 0.25
_LONGEST = 5.0
"""Seconds between two tries, in the end."""


def lock(path: Path, how: int) -> int | None:
    """A file descriptor that holds the lock, or None where LOCK_NB is given and others have it."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, how)
    except BlockingIOError:
        os.close(handle)
        return None
    return handle


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def free_port(wanted: int | None) -> int:
    """The wanted port if it can be had, else any other."""
    for port in (wanted or 0, 0):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            return int(probe.getsockname()[1])
    raise OSError("no free port on 127.0.0.1")


def write_private(path: Path, values: dict[str, Any]) -> None:
    """Replace a file that only its owner may read, whole or not at all."""
    new = path.with_suffix(".new")
    handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w") as file:
        json.dump(values, file)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)


def _shared_megabytes() -> int:
    """A sixteenth of the memory for the server's pages, from 128 MB to 1 GB: Spark is here too."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return int(min(max(memory // 16, 128 << 20), 1 << 30) >> 20)


class Server:
    """One postmaster: a child of ours, or one that an earlier keeper left behind."""

    def __init__(self, folder: Path, postgres: str, uid: int, gid: int, adopt: int | None) -> None:
        self.folder = folder
        self.postgres = postgres
        self.identity: dict[str, Any] = (
            {} if uid == os.geteuid() else {"user": uid, "group": gid, "extra_groups": []}
        )
        self.child: subprocess.Popen[bytes] | None = None
        self.pid = adopt

    def running(self) -> bool:
        if self.child is not None:
            return self.child.poll() is None
        return self.pid is not None and alive(self.pid)

    def ready(self) -> bool:
        """Whether it has come up: recovery may take long, and fail in the end."""
        try:
            lines = (self.folder / "data" / "postmaster.pid").read_text().splitlines()
            return self.running() and int(lines[0]) == self.pid and lines[7].strip() == "ready"
        except (OSError, IndexError, ValueError):
            return False

    def start(self) -> None:
        connection = self.folder / "connection.json"
        values = json.loads(connection.read_text())
        port = free_port(values.get("port"))
        if port != values.get("port"):
            write_private(connection, {**values, "port": port})
        settings = {
            "port": port,
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",  # no path of ours is too long for a socket, then
            "max_connections": 100,
            "shared_buffers": f"{_shared_megabytes()}MB",
            "wal_buffers": "32MB",  # a large merge fills the usual 8 in no time
            "work_mem": "32MB",
            "maintenance_work_mem": "256MB",
            "max_wal_size": "4GB",
            "checkpoint_timeout": "15min",  # after each, every page is logged whole again
            "jit": "off",
            "timezone": "UTC",
            "log_timezone": "UTC",
            "log_min_messages": "warning",
            "logging_collector": "off",
        }
        log_path = self.folder / "server.log"
        with contextlib.suppress(FileNotFoundError):
            if log_path.stat().st_size > 10_000_000:
                log_path.replace(self.folder / "server.log.1")
        log = os.open(log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            self.child = subprocess.Popen(
                [
                    self.postgres,
                    "-D",
                    os.path.realpath(self.folder / "data"),
                    *(f"--{name}={value}" for name, value in settings.items()),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env={"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"},
                **self.identity,
            )
        finally:
            os.close(log)
        self.pid = self.child.pid

    def stop(self) -> None:
        """A fast shutdown, which waits for nobody's transaction; a hard one where that hangs."""
        for how, seconds in ((signal.SIGINT, 60.0), (signal.SIGQUIT, 30.0)):
            if self.pid is None or not self.running():
                return
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, how)
            end = time.monotonic() + seconds
            while self.running() and time.monotonic() < end:
                time.sleep(0.02)


def keep(folder: Path, server: Server, grace: float) -> None:
    """Run until nobody has wanted the server for `grace` seconds."""
    users, start, wanted = folder / "users.lock", folder / "start.lock", folder / "keep"
    unused_since: float | None = None
    failing_since: float | None = None
    came_up = server.running()  # one that was taken over
    next_try = pause = 0.0
    while True:
        held = lock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if held is not None:
            os.close(held)
        used = held is None or wanted.exists()
        now = time.monotonic()
        if server.ready():
            came_up, failing_since, pause = True, None, 0.0
        elif server.running():
            pass
        elif used or unused_since is None:
            failing_since = failing_since or now
            if now - failing_since > PATIENCE and not came_up:
                return
            if now >= next_try:
                server.start()
                pause = min(2 * pause + _TICK, _LONGEST)
                next_try = now + pause
        else:
            return
        if used:
            unused_since = None
        elif unused_since is None:
            unused_since = now
        elif now - unused_since >= grace:
            starting = lock(start, fcntl.LOCK_EX | fcntl.LOCK_NB)
            leaving = lock(users, fcntl.LOCK_EX | fcntl.LOCK_NB) if starting is not None else None
            if leaving is not None and not wanted.exists():
                server.stop()  # who comes meanwhile waits for our locks, and starts it anew
                return
            for handle in (starting, leaving):
                if handle is not None:
                    os.close(handle)
        time.sleep(_TICK)


def main() -> None:
    folder, postgres, uid, gid, adopt, grace = sys.argv[1:7]
    held = lock(Path(folder) / "keeper.lock", fcntl.LOCK_EX | fcntl.LOCK_NB)
    if held is None:
        return
    os.ftruncate(held, 0)
    os.write(held, str(os.getpid()).encode())
    server = Server(Path(folder), postgres, int(uid), int(gid), int(adopt) or None)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        keep(Path(folder), server, float(grace))
    finally:
        server.stop()


if __name__ == "__main__":
    main()
