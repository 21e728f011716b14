"""A Postgres that is not ours: its own server on a port, as `--store postgresql://…` finds one."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Self

import psycopg

from storage import embedded
from tests.services import ports
from tests.services.service import Service

START_SECONDS = 90
USER = DATABASE = "whilst"

_SETTINGS = """\
listen_addresses = '127.0.0.1'
port = {port}
unix_socket_directories = ''
max_connections = 60
# A small disk: the log of the server gives back what it does not need.
min_wal_size = 4MB
max_wal_size = 24MB
shared_buffers = 32MB
"""


class Postgres(Service):
    """Started by `start` or `with`; its data survives `kill` and `stop` until `remove`.

    The folder must be one that the server's own user reaches: root cannot run Postgres.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "server.log"
        self.password = secrets.token_urlsafe(24)
        (self.port,) = ports.free(1)
        self._identity = embedded._identity()
        self._process: subprocess.Popen[bytes] | None = None

    def url(self, port: int | None = None, *, password: bool = True) -> str:
        secret = f":{self.password}" if password else ""
        return f"postgresql://{USER}{secret}@127.0.0.1:{port or self.port}/{DATABASE}"

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        assert self._process is not None, "the server is not started"
        return self._process.pid

    def start(self) -> Self:
        new = not (self.folder / "data").exists()
        if new:
            self._make()
        self.launch()
        self._await_answer()
        if new:
            with psycopg.connect(self._admin(), autocommit=True) as db:
                db.execute(f"create database {DATABASE}")
        return self

    def launch(self) -> None:
        """Start it, and do not wait until it answers."""
        identity = self._identity
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [str(identity.programs / "postgres"), "-D", str(self.folder / "data")],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd="/",
                env={"PATH": os.defpath, "LC_ALL": "C"},
                start_new_session=True,
                user=identity.uid if identity.foreign else None,
                group=identity.gid if identity.foreign else None,
                extra_groups=[] if identity.foreign else None,
            )

    def stop(self) -> None:
        """End it in good order; who is connected is cut off."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(60)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def kill(self) -> None:
        """kill -9 of the server itself: its children notice, and end too."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _admin(self) -> str:
        return f"postgresql://{USER}:{self.password}@127.0.0.1:{self.port}/postgres"

    def _make(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self.folder / "password"
        file.touch(0o600)
        file.write_text(self.password)
        (self.folder / "data").mkdir(mode=0o700)
        for path in (file, self.folder / "data"):
            os.chown(path, self._identity.uid, self._identity.gid)
        self.folder.chmod(0o711)
        made = self._identity.run(
            self._identity.programs / "initdb",
            *("-D", self.folder / "data", "-U", USER, f"--pwfile={file}", "--no-sync"),
            *("--auth=scram-sha-256", "--encoding=UTF8", "--no-locale", "--wal-segsize=1"),
        )
        file.unlink()
        if made.returncode != 0:
            raise RuntimeError(f"initdb failed in {self.folder}: {made.stdout}{made.stderr}")
        with (self.folder / "data" / "postgresql.conf").open("a") as conf:
            conf.write(_SETTINGS.format(port=self.port))

    def _await_answer(self) -> None:
        ends = time.monotonic() + START_SECONDS
        while time.monotonic() < ends:
            if not self.running:
                raise RuntimeError(f"Postgres ended at its start:\n{self.log_tail()}")
            try:
                psycopg.connect(self._admin(), connect_timeout=5).close()
                return
            except psycopg.OperationalError:
                time.sleep(0.05)
        raise RuntimeError(f"Postgres did not answer in {START_SECONDS} s:\n{self.log_tail()}")

    def log_tail(self, lines: int = 30) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])
