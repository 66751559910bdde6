# A thin list of commands; CI calls the same ones. `make help` lists them.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
MODEL := $(VENV)/share/faultline/model
# All tests run on all cores, each worker with its own servers. The longest come first.
ALL_TESTS := tests/flows tests/labs tests/architecture tests/attack tests/classifiers tests/contracts tests/faultlab_tests tests/chaos tests/fuzz \
	tests/service tests/simulations_tests
# On SQLite only, which needs no server; `make test` runs the same tests on PostgreSQL too. `make check` leaves out what
# takes a second of processor time or more.
UNIT_TESTS := tests/architecture tests/classifiers tests/service -k "not postgresql"
# A worker takes whole files, so that what the tests of a file share is made once.
BY_FILE := --dist loadgroup --no-loadscope-reorder
STAMP := $(VENV)/.installed
DEV_STAMP := $(VENV)/.installed-dev
NATIVE_STAMP := $(VENV)/.compiled
DEMO_PORT ?= 8080
# Test processes: four more than cores, as tests of clusters, brokers and processes that are killed wait for most of
# their time. Three groups that share a lab (conftest.py) are busy with waiting for minutes.
WORKERS ?= $(shell echo $$(( $$(getconf _NPROCESSORS_ONLN) + 4 )))
# Tests that are compiled once start faster, whatever the environment says.
export PYTHONDONTWRITEBYTECODE :=

PIP_INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --no-compile
# Twice as fast as pip's own compilation: on all cores, and without the tests that packages carry.
COMPILE_BYTECODE := $(BIN)/python -m compileall -qq -j 0 -x '/tests?/' $(VENV)/lib || true
COMPILE_LOCK := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-strip-extras \
	--no-emit-index-url --custom-compile-command 'make lock' --group build pyproject.toml
RUNTIME_EXTRAS := postgres pdf logs-http object-storage kubernetes oidc chat dask
# Everything that training depends on: its code and its data.
TRAINING_INPUT := $(shell find classifiers -type f \( -name "*.py" -o -name "*.toml" -o -name "*.jsonl*" \))
# What is compiled, and what that relies on.
NATIVE_INPUT := deploy/build_native.py $(shell find classifiers -maxdepth 3 -name "*.py")

.PHONY: help install demo test compile-tests test-deps check quick-tests coverage lint bench bench-pages simulate fuzz chaos soak faultlab-check screenshots suspicion lock vendor audit release clean

help: ## list the commands
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/\1\t\2/' | expand -t 18

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
		{ echo "faultline needs Python 3.11 or newer as $(PYTHON) (found: $$($(PYTHON) -V 2>&1 | head -1)); set PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || \
		{ echo "this Python has no venv module; on Debian or Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)

# Packages come from the lock files, with their hashes; the project itself is installed in place, without an index.
$(STAMP): pyproject.toml requirements.lock | $(VENV)/bin/python
	@echo "installing Faultline into $(VENV) ..."
	@$(PIP_INSTALL) --require-hashes -r requirements.lock
	@$(PIP_INSTALL) --no-deps --no-build-isolation -e .
	@$(COMPILE_BYTECODE)
	@$(BIN)/python -m compileall -qq -j 0 classifiers migrations service || true
	@touch $@

$(DEV_STAMP): requirements-dev.lock $(STAMP)
	@echo "installing what the tests need into $(VENV) ..."
	@$(PIP_INSTALL) --require-hashes -r requirements-dev.lock
	@$(COMPILE_BYTECODE)
	@touch $@

# Optional: without a C compiler the program runs its sources, with the same results.
$(NATIVE_STAMP): $(STAMP) $(NATIVE_INPUT)
	@echo "compiling what takes most of the processor time ..."
	@$(BIN)/python deploy/build_native.py || echo "it could not be compiled: the program runs its sources"
	@touch $@

$(MODEL)/.trained: $(STAMP) $(TRAINING_INPUT) | $(NATIVE_STAMP)
	@echo "training the model ..."
	@$(BIN)/faultline train
	@touch $@

install: $(NATIVE_STAMP) $(MODEL)/.trained ## create .venv with .venv/bin/faultline and a trained model
	@echo "installed: $(BIN)/faultline"

demo: install ## simulate four weeks of job completions and show them at http://127.0.0.1:8080
	@$(BIN)/python -m service.demo --port $(DEMO_PORT)

test: $(DEV_STAMP) $(MODEL)/.trained ## run the whole test suite; tests whose parts are missing on this machine are skipped with the reason
	@$(BIN)/python -m pytest -q -n $(WORKERS) $(BY_FILE) $(ALL_TESTS) $(PYTEST_ARGS)

# Pytest compiles tests in a way of its own: once here, instead of by all workers at the same time.
compile-tests: $(DEV_STAMP) ## compile the tests once, before several workers run them
	@$(BIN)/python -m pytest -q --collect-only $(ALL_TESTS) >/dev/null

test-deps: ## install system packages for the tests (Debian or Ubuntu, as root)
	@bash tests/labs/install-system-deps

check: $(DEV_STAMP) ## lint and the quick unit tests at the same time, without servers and without the trained model (two minutes)
	@$(MAKE) --no-print-directory -j 2 lint quick-tests

quick-tests: $(DEV_STAMP) ## the unit tests of `make check` alone
	@$(BIN)/python -m pytest -q -n auto $(BY_FILE) $(UNIT_TESTS) -m "not lab and not slow" $(PYTEST_ARGS)

coverage: $(DEV_STAMP) ## run the tests that need no server and report the branches they miss
	@$(BIN)/python -m pytest -q -n auto $(BY_FILE) $(UNIT_TESTS) -m "not lab" --cov --cov-report=term-missing $(PYTEST_ARGS)

lint: $(DEV_STAMP) ## ruff, mypy --strict, import rules
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

bench: $(DEV_STAMP) $(NATIVE_STAMP) $(MODEL)/.trained ## measure speed and memory on a real broker and PostgreSQL
	@$(BIN)/python -m tests.bench $(ARGS)

bench-pages: $(DEV_STAMP) $(MODEL)/.trained ## measure every page and API call over 1 million failures in SQLite and 3 million in PostgreSQL (an hour)
	@$(BIN)/python -m tests.bench.page $(ARGS)

simulate: $(STAMP) ## measure the mitigation policy in a simulated fleet with known causes (20 seeds; 5 with every parameter ±50 %)
	@$(BIN)/python -m tests.simulations.policy.__main__ $(ARGS)

fuzz: $(DEV_STAMP) $(MODEL)/.trained ## send mutated records through the consumer (ARGS="--records 200000 --seed 1 --minutes 60")
	@$(BIN)/python -m tests.fuzz $(ARGS)

chaos: $(DEV_STAMP) $(MODEL)/.trained ## 100 random faults on a real broker, PostgreSQL and worker (ARGS="--faults 100 --seed 1"; as root also partitions)
	@$(BIN)/python -m tests.chaos $(ARGS)

soak: $(DEV_STAMP) $(MODEL)/.trained ## process 10,000 events while workers, broker and database are killed
	@$(BIN)/python -m tests.flows.soak

faultlab-check: $(DEV_STAMP) ## run twenty fault-lab programs again and compare with the captured logs
	@$(BIN)/python -m tests.faultlab check

screenshots: $(DEV_STAMP) ## take the screenshots of the documents from a running demo (ARGS="http://127.0.0.1:8080 docs/screens")
	@$(BIN)/python -m tests.labs.screenshots $(ARGS)

suspicion: $(DEV_STAMP) ## measure how well rankings of nodes find the bad nodes of a simulated fleet (20 seeds)
	@$(BIN)/python -m tests.simulations.suspicion

lock: $(DEV_STAMP) ## write the lock files from pyproject.toml (ARGS=--upgrade takes newer versions)
	@$(COMPILE_LOCK) $(foreach extra,$(RUNTIME_EXTRAS),--extra $(extra)) --output-file deploy/requirements.lock $(ARGS)
	@$(COMPILE_LOCK) --group native --extra postgres --extra pdf --constraint deploy/requirements.lock --output-file requirements.lock $(ARGS)
	@$(COMPILE_LOCK) --extra dev --constraint deploy/requirements.lock --constraint requirements.lock --output-file requirements-dev.lock $(ARGS)

vendor: ## copy Bootstrap, htmx and uPlot from npm to service/web/static/vendor, in the versions of deploy/frontend/package-lock.json
	@npm --prefix deploy/frontend ci --silent
	@npm --prefix deploy/frontend run --silent vendor

audit: $(DEV_STAMP) ## check the locked dependencies for known vulnerabilities (needs the network)
	@$(BIN)/python deploy/audit_dependencies.py --uv $(BIN)/uv deploy/requirements.lock

release: $(DEV_STAMP) $(MODEL)/.trained ## build the wheel with the trained model, the sdist and the SBOM into dist/
	@$(BIN)/python deploy/build_release.py --model $(MODEL) --output dist

clean: ## remove build and test artefacts
	@rm -rf build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis var
