# `make train` and `make test` need Python 3.11 (or later) and nothing else: all they use is installed in .venv.

PYTHON ?= python3.11
VENV ?= .venv
BIN := $(VENV)/bin
# PyTorch for the benchmarks, as an argument of pip: a requirement, or the file of a CPU build.
TORCH ?= torch
CORES := $(shell getconf _NPROCESSORS_ONLN)
SOURCES_OF_INSTALL := pyproject.toml setup.py $(shell find protos -name '*.proto')

.PHONY: help install install-test install-benchmarks train test unit integration learning check format clean

help: ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "make %-18s %s\n", $$1, $$2}'

install: $(VENV)/.installed ## create .venv with the servers, the environments and TensorBoard

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.installed: $(BIN)/python $(SOURCES_OF_INSTALL)
	$(BIN)/python -m pip install --quiet --editable '.[environments]'
	@touch $@

install-test: $(VENV)/.installed-test

$(VENV)/.installed-test: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	@touch $@

install-benchmarks: install ## add what trainings are compared with, and their environments; TORCH=FILE for a CPU build
	$(BIN)/python -m pip install --quiet '$(TORCH)'
	$(BIN)/python -m pip install --quiet --editable '.[benchmarks]'

train: install ## train CartPole-v1 until its goal is reached
	$(BIN)/relaax-train Procfiles/cartpole.Procfile

test: unit integration learning ## run all tests

unit: install-test ## run the fast tests alone, on all cores
	$(BIN)/python -m pytest -n $(CORES) --dist worksteal -m 'not integration and not learning'

integration: install-test ## run the tests with real processes alone, on all cores: three for two, since they often wait
	$(BIN)/python -m pytest -n $(shell expr \( 3 \* $(CORES) + 1 \) / 2) --dist loadfile --no-loadscope-reorder -m integration

learning: install-test ## run the small trainings alone, on all cores; what they reach is shown at the end
	$(BIN)/python -m pytest -n $(CORES) --dist loadfile -m learning -v -rP

check: install-test ## format check, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	for program in environments/*/main; do $(BIN)/mypy $$program || exit 1; done

format: install-test ## format the code and mend what ruff can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean: ## remove what was built (not the trainings)
	rm -rf $(VENV) build dist *.egg-info
	find . -name '*_pb2*.py*' -delete -o -name __pycache__ -prune -exec rm -rf {} +
