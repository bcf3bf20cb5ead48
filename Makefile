# `make run` and `make test` need nothing but Python 3.11 and make: each first installs what is missing.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := run

PYTHON ?= $(shell command -v python3.11 || echo python3)
VENV := .venv
BIN := $(VENV)/bin
LISTS := $(addprefix requirements/,engine-cpu.txt tokenizer.txt frontend.txt cli.txt dev.txt)
SOURCES := services tests protos/generate.py requirements/lock.py

# What is installed is current as long as the lists and pyproject.toml have this checksum. The stamp is written last.
STAMP := $(VENV)/.installed-$(shell cat $(LISTS) pyproject.toml | cksum | tr ' ' '-')
INSTALLING := $(VENV)/.installing

ARGS ?=
PYTEST_ARGS ?=
BENCH_ARGS ?=

.PHONY: run setup install model test lint types protos protos-check unit compatibility bench format lock clean

run: setup
	@exec $(BIN)/python -m services.cli.foreground $(BIN)/stream-omni up $(ARGS)

setup: model

install: $(STAMP)

# An install that was cut short can leave a package half unpacked, so it starts over; pip's cache keeps the downloads.
$(STAMP):
	@if [ -e $(INSTALLING) ]; then echo "setup: the last install was interrupted, starting over"; rm -rf $(VENV); fi
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null \
		|| { echo "setup: $(PYTHON) is not Python 3.11; install that, or name it: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@mkdir -p $(VENV) && touch $(INSTALLING)
	@[ -x $(BIN)/python ] || { echo "setup: making $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@echo "setup: installing pinned packages (3.4 GB on disk; about two minutes and the download)"
	@$(BIN)/python -m pip install --disable-pip-version-check --no-deps $(addprefix -r ,$(LISTS))
	@rm -f $(VENV)/.installed-* $(INSTALLING)
	@$(BIN)/python -m pip install --disable-pip-version-check --quiet --no-deps --no-build-isolation -e .
	@touch $@
	@echo "setup: installed"

model: install
	@$(BIN)/python -m services.cli.models

test: lint types protos-check unit

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo
	$(BIN)/python protos/generate.py lint

types: install
	$(BIN)/mypy $(SOURCES)

protos: install
	$(BIN)/python protos/generate.py write

protos-check: install
	$(BIN)/python protos/generate.py check

unit: setup
	$(BIN)/python -m pytest $(PYTEST_ARGS)

compatibility: setup
	$(BIN)/python -m pytest tests/e2e/tiny/test_differential.py --write-compatibility

bench: setup
	$(BIN)/python -m tests.performance.comparison $(BENCH_ARGS)

format: install
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lock: install
	$(BIN)/python requirements/lock.py

clean:
	rm -rf $(VENV) build dist *.egg-info .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find services tests protos requirements -name __pycache__ -type d -prune -exec rm -rf {} +
