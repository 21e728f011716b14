"""What the services of the tests have in common: they are started and stopped; `with` does both."""

from __future__ import annotations

from types import TracebackType
from typing import Self


class Service:
    def start(self) -> Self:
        raise NotImplementedError

    def stop(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
