"""Benchmarks: each module here offers `figures(scale)`, one figure after another.

A figure is {"bench": …, "task": …, "figure": …, "value": …}; ratios are taken within one run.
"""

BENCHES = ("peers", "kernel", "store", "pipeline", "alerts", "dashboard")
