"""A TCP proxy that breaks connections when it is told to: cut, refused, or silent for a while."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from types import TracebackType
from typing import Self


class Proxy:
    """From a port of its own to one of this machine, in a thread. Each of its faults can end."""

    def __init__(self, target: int) -> None:
        self.target = target
        self.port = 0
        self._open: set[asyncio.StreamWriter] = set()
        self._refusing = False
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)

    def cut(self) -> None:
        """Reset every connection there is. New ones work."""
        self._call(self._cut)

    def refuse(self, wanted: bool) -> None:
        """Reset every connection there is, and each new one, until that ends."""
        self._refusing = wanted
        if wanted:
            self.cut()

    def silence(self, wanted: bool) -> None:
        """Pass nothing on until that ends; nobody is told."""
        self._call(self._flowing.clear if wanted else self._flowing.set)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(10), "the proxy does not start"
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._call(self._stop.set)
        self._thread.join(10)

    def _call(self, what: object) -> None:
        with contextlib.suppress(RuntimeError):  # it has ended
            self._loop.call_soon_threadsafe(what)  # type: ignore[arg-type]

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        self._stop, self._flowing = asyncio.Event(), asyncio.Event()
        self._flowing.set()
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        self._cut()

    def _cut(self) -> None:
        for writer in list(self._open):
            writer.transport.abort()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._refusing:
            writer.transport.abort()
            return
        try:
            there = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.transport.abort()
            return
        self._open |= {writer, there[1]}
        try:
            await asyncio.gather(self._pass(reader, there[1]), self._pass(there[0], writer))
        finally:
            self._open -= {writer, there[1]}
            for side in (writer, there[1]):
                side.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(1 << 16):
                await self._flowing.wait()
                writer.write(data)
                await writer.drain()
        with contextlib.suppress(OSError, RuntimeError):
            writer.close()
