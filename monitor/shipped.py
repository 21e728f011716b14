"""A program on the executors: sent once as a broadcast, unpacked once a Python worker."""

from __future__ import annotations

import gc
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING
from uuid import uuid4

from monitor.parse import Streams
from resolution.kernel import Kernel
from resolution.program import Program
from resolution.routing import Routing

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.broadcast import Broadcast


@dataclass(frozen=True)
class _Parts:
    program: Program
    routing: Routing

    @cached_property
    def streams(self) -> Streams:
        return Streams.of(self.program)

    @cached_property
    def kernel(self) -> Kernel:
        return Kernel(self.program)


_unpacked: dict[str, _Parts] = {}


@dataclass(frozen=True, slots=True)
class Shipped:
    """A handle that travels with functions; what it stands for stays where it was unpacked."""

    token: str
    broadcast: Broadcast[_Parts]

    @classmethod
    def of(cls, context: SparkContext, program: Program, routing: Routing) -> Shipped:
        return cls(uuid4().hex, context.broadcast(_Parts(program, routing)))

    @property
    def _parts(self) -> _Parts:
        if self.token not in _unpacked:
            _unpacked.clear()  # a worker serves one program at a time
            _unpacked[self.token] = self.broadcast.value
            gc.freeze()  # Spark has a worker collect after each task, 0.1 s for what is imported
        return _unpacked[self.token]

    @property
    def program(self) -> Program:
        return self._parts.program

    @property
    def routing(self) -> Routing:
        return self._parts.routing

    @property
    def streams(self) -> Streams:
        return self._parts.streams

    @property
    def kernel(self) -> Kernel:
        return self._parts.kernel
