"""What a first start would do once and keep: bytecode of its imports, machine code of the kernel.

The demo and the tests begin in seconds less when `make setup` has done it, beside a download.
"""

from __future__ import annotations

import importlib

_STARTED = ("monitor.cli", "monitor.start", "dashboard.server", "streamlit.web.bootstrap")
"""What a run and a dashboard import, and with it most of what is installed."""


def main() -> None:
    for name in _STARTED:
        importlib.import_module(name)
    import pyarrow as pa

    from monitor.windfarm import RULES
    from resolution.kernel import FACTS, Kernel
    from resolution.program import load

    reading = {"group": 0, "predicate": "Temp", "args": ["wt2", "high"]}
    facts = [reading | {"time": at, "arrival": at, "fresh": at > 1} for at in range(3)]
    Kernel(load(RULES)).changes(0, pa.Table.from_pylist(facts, FACTS))


if __name__ == "__main__":
    main()
