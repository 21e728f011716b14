"""A real receiver of webhooks: HTTP or HTTPS on a port of its own, that fails as it is told."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from standardwebhooks.webhooks import Webhook


@dataclass(frozen=True, slots=True)
class Request:
    """A request that came in whole."""

    number: int
    method: str
    path: str
    headers: Mapping[str, str]
    body: str
    at: float

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    def verified(self, secret: str) -> object:
        """What the body says, if the public library takes the signature for good."""
        return Webhook(secret).verify(self.body, dict(self.headers))


@dataclass(frozen=True, slots=True)
class Reply:
    """What is done with a request. `how` other than `reply` breaks the protocol in some way."""

    status: int = 204
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    how: Literal["reply", "reset", "hang", "drip", "dawdle", "garbage", "endless", "cut"] = "reply"


Behaviour = Callable[[Request], Reply]


def fine(_: Request) -> Reply:
    return Reply()


class Receiver:
    """Serves in a thread. `behaviour` may be changed at any time; it runs in a thread too."""

    def __init__(self, behaviour: Behaviour = fine, tls: ssl.SSLContext | None = None) -> None:
        self.behaviour = behaviour
        self.requests: list[Request] = []
        self.most_at_once = 0
        self._at_once = 0
        self._tls = tls
        self._changed = threading.Condition()
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="receiver", daemon=True)
        self.port = 0

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}/hook"

    def ids(self) -> list[str]:
        with self._changed:
            return [request.id for request in self.requests]

    def wait(self, until: Callable[[list[Request]], bool], seconds: float = 60) -> list[Request]:
        """The requests so far, as soon as they are what is waited for."""
        with self._changed:
            if not self._changed.wait_for(lambda: until(self.requests), seconds):
                raise AssertionError(
                    f"not so within {seconds} s; {len(self.requests)} requests came: "
                    f"{[(r.path, r.headers.get('webhook-id')) for r in self.requests[-5:]]}"
                )
            return list(self.requests)

    def wait_for(self, count: int, seconds: float = 60) -> list[Request]:
        return self.wait(lambda requests: len(requests) >= count, seconds)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(10), "the receiver does not start"
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Cut off everybody, and listen no longer."""
        with contextlib.suppress(RuntimeError):  # it was stopped before
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    # --- the server ------------------------------------------------------------------------------

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0, ssl=self._tls)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                first, *lines = head.rstrip().split("\r\n")
                method, path, _ = first.split(" ", 2)
                headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in lines)}
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                if not await self._answer(method, path, headers, body.decode(), writer):
                    break
        writer.close()

    async def _answer(
        self,
        method: str,
        path: str,
        headers: dict[str, str],
        body: str,
        writer: asyncio.StreamWriter,
    ) -> bool:
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            with self._changed:
                request = Request(len(self.requests), method, path, headers, body, time.monotonic())
                self.requests.append(request)
                self._changed.notify_all()
            reply = await asyncio.to_thread(self.behaviour, request)
            return await self._reply(reply, writer)
        finally:
            self._at_once -= 1

    async def _reply(self, reply: Reply, writer: asyncio.StreamWriter) -> bool:
        """Whether the connection may be used again."""
        match reply.how:
            case "reset":
                writer.transport.abort()
                return False
            case "hang":
                await self._stop.wait()
                return False
            case "dawdle":  # all of the head, and then nothing
                writer.write(f"HTTP/1.1 {reply.status} x\r\ncontent-length: 9\r\n\r\n".encode())
                await self._stop.wait()
                return False
            case "garbage":
                writer.write(b"\x00\x01 this is no HTTP\r\n\r\n")
                return False
            case "cut":
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-le")
                return False
            case "drip" | "endless":
                writer.write(b"HTTP/1.1 200 OK\r\n")
                if reply.how == "endless":
                    writer.write(b"content-length: 1000000000000\r\n\r\n")
                while not self._stop.is_set():
                    if reply.how == "drip":  # one byte of a header at a time, for ever
                        writer.write(b"x")
                        await asyncio.sleep(0.01)
                    else:
                        writer.write(b"x" * 65536)
                        await writer.drain()
                return False
        lines = [f"HTTP/1.1 {reply.status} x"]
        lines += [f"{name}: {value}" for name, value in reply.headers.items()]
        if reply.status != 204:
            lines.append(f"content-length: {len(reply.body)}")
        writer.write("\r\n".join([*lines, "", ""]).encode() + reply.body)
        await writer.drain()
        return True


# --- certificates ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Certificate:
    """A self-signed certificate: its own authority."""

    file: Path
    key: Path

    def server(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.file, self.key)
        return context


def certificate(folder: Path, names: str = "IP:127.0.0.1", days: int = 2) -> Certificate:
    """One for these names, valid for so many days (below zero: it was)."""
    made = Certificate(folder / "cert.pem", folder / "key.pem")
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-nodes", "-subj", "/CN=receiver", "-addext", f"subjectAltName={names}"]
    command += ["-keyout", str(made.key), "-out", str(made.file), "-days", str(days)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except FileNotFoundError:
        raise AssertionError("these tests need openssl: apt-get install openssl") from None
    return made
