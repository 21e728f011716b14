"""Real services for tests: each started here is ended here, and only it."""
