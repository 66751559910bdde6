# A thin list of commands; CI calls the same ones. `make help` lists them.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
MODEL := $(VENV)/share/faultline/model
STAMP := $(VENV)/.installed
DEV_STAMP := $(VENV)/.installed-dev
DEMO_PORT ?= 8080

.PHONY: help install demo test test-deps lint bench bench-pages simulate soak faultlab-check faultlab suspicion clean

help: ## list the commands
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/\1\t\2/' | expand -t 18

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
		{ echo "faultline needs Python 3.11 or newer as $(PYTHON) (found: $$($(PYTHON) -V 2>&1 | head -1)); set PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || \
		{ echo "this Python has no venv module; on Debian or Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)

$(STAMP): pyproject.toml | $(VENV)/bin/python
	@echo "installing Faultline into $(VENV) ..."
	@$(BIN)/pip install --quiet --disable-pip-version-check -e '.[postgres,pdf]'
	@touch $@

$(DEV_STAMP): pyproject.toml | $(STAMP)
	@echo "installing what the tests need into $(VENV) ..."
	@$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@ $(STAMP)

$(MODEL)/.trained: $(STAMP) $(wildcard classifiers/*.py classifiers/*.toml classifiers/signatures/*.toml classifiers/corpus/*/*.jsonl)
	@echo "training the model ..."
	@$(BIN)/faultline train
	@touch $@

install: $(MODEL)/.trained ## make .venv with .venv/bin/faultline and a trained model
	@echo "installed: $(BIN)/faultline"

demo: install ## play four weeks of job completions and show them at http://127.0.0.1:8080
	@$(BIN)/python -m service.demo --port $(DEMO_PORT)

test: $(DEV_STAMP) $(MODEL)/.trained ## the whole test suite; what is missing on this machine is skipped with its reason
	@$(BIN)/python -m pytest $(PYTEST_ARGS)

test-deps: ## install what tests like to have from the system (Debian or Ubuntu, as root)
	@bash tests/labs/install-system-deps

lint: $(DEV_STAMP) ## ruff, mypy --strict, import rules
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

bench: $(DEV_STAMP) $(MODEL)/.trained ## speed and memory on a real broker and PostgreSQL
	@$(BIN)/python -m tests.bench

bench-pages: $(DEV_STAMP) $(MODEL)/.trained ## every page and its API call over 1 million failures in SQLite and 3 million in PostgreSQL (an hour)
	@$(BIN)/python -m tests.bench.page $(ARGS)

simulate: $(STAMP) ## what the mitigation policy is worth in a fleet with known truth (20 seeds, every parameter ±50 %)
	@$(BIN)/python -m service.recommend.simulate

soak: $(DEV_STAMP) $(MODEL)/.trained ## 10,000 events with workers, broker and database killed on the way
	@$(BIN)/python -m tests.flows.soak

faultlab-check: $(DEV_STAMP) ## run twenty fault-lab programs again and compare with what was captured
	@$(BIN)/python -m classifiers.faultlab check

suspicion: $(DEV_STAMP) ## which ranking of nodes finds known bad ones, 20 seeds
	@$(BIN)/python -m service.fleet.simulate

clean: ## remove what the build and the tests left
	@rm -rf build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis var
