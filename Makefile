# `make` alone lists what there is. All paths are relative: a clone may lie in a path with blanks.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
PY := .venv/bin/python
JOBS ?= 2
ARGS ?=
SCALE ?= 0.1
ROUNDS ?= 25
SEED ?= 1
TASK ?= all
SECONDS_EACH ?= 60

# Keep bytecode whatever the shell says: a suite of many processes compiles every package anew without.
export PYTHONDONTWRITEBYTECODE :=
# The banner of Material says nothing about these pages.
export NO_MKDOCS_2_WARNING := 1

.DEFAULT_GOAL := help
.PHONY: help setup test check fmt demo docs pins clean chaos cluster cluster-up cluster-down soak fuzz bench \
  check-types check-tests

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 14

setup: ## Make .venv with everything in it (offline when nothing changed)
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo 'setup: Whilst needs Python 3.11 or newer: make setup PYTHON=/path/to/python3.11' >&2; exit 1; }
	@"$(PYTHON)" -m monitor.setup.bootstrap

test: setup ## The whole suite, on real Spark, Kafka, Postgres and Chromium (ARGS="-k late")
	@$(PY) -m tests.services.browser
	$(PY) -m pytest -n $(JOBS) --dist loadfile $(ARGS)

check: setup ## The quick one: format, lint, types, tests without services, docs
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	@$(MAKE) --no-print-directory -j 2 check-types check-tests

# Beside each other: some tests wait for most of their time.
check-types:
	$(PY) -m mypy
	$(PY) -m mkdocs build --strict --quiet

# Nothing is shared here that a file should keep to one worker, and some files take as long as ten.
check-tests:
	$(PY) -m pytest -n $(JOBS) --dist worksteal -m "not service" $(ARGS)

fmt: setup ## Format the code and mend what the linter can
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

demo: setup ## A simulated wind farm, the monitor and the dashboard (DEMO_SECONDS=60 to end by itself)
	@.venv/bin/whilst demo

chaos: setup ## Break everything by plan, and compare what is left (ROUNDS=25 SEED=1)
	@$(PY) -m tests.chaos --rounds $(ROUNDS) --seed $(SEED) $(ARGS)

bench: setup ## Measure everything, beside what people use instead, into docs/benchmarks (SCALE=0.1)
	@-$(PY) -m tests.services.browser
	.venv/bin/whilst bench all --scale $(SCALE) --report docs/benchmarks

cluster-up: setup ## A Spark master, two workers, a broker and a Postgres on this machine
	@$(PY) -m tests.services.cluster up

cluster-down: setup ## End them
	@$(PY) -m tests.services.cluster down

cluster: setup ## The same job here and on executors of their own: answers and events/s
	@$(PY) -m tests.chaos.cluster $(ARGS)

soak: setup ## Load and limits, with memory sampled and plotted into build/soak (TASK=steady)
	@$(PY) -m tests.chaos.soak $(TASK) $(ARGS)

fuzz: setup ## Programs, facts, configuration and addresses under a fuzzer (SECONDS_EACH=60)
	@$(PY) -m tests.chaos.fuzz --seconds $(SECONDS_EACH) $(ARGS)

docs: setup ## Build the documentation into site/, broken links as errors
	$(PY) -m mkdocs build --strict --quiet

pins: ## Bring constraints.txt up to pyproject.toml (ARGS=--upgrade for the newest that fit)
	$(PY) -m uv pip compile pyproject.toml --quiet --all-extras --universal --python-version 3.11 \
	  --no-annotate --no-header --output-file constraints.txt $(ARGS)

clean: ## Remove .venv, caches and everything else that can be made again
	rm -rf .venv .cache .whilst .hypothesis .mypy_cache .pytest_cache .ruff_cache site build *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
