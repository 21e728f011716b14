"""Faults by plan: `make chaos` breaks everything that can break, and compares what is left."""
