# `make train` needs Python 3.11, 3.12 or 3.13 and nothing else: all that it uses is installed in .venv. So does `make test`,
# but tests that start programs of Debian, such as haproxy and Slurm, are skipped where these are missing, with a reason.

PYTHON ?= python3.11
VENV ?= .venv
BIN := $(VENV)/bin
# PyTorch for the benchmarks, as an argument of pip: a requirement, or the file of a CPU build.
TORCH ?= torch
CORES := $(shell getconf _NPROCESSORS_ONLN)
# How many tests that often wait run at a time: three for two cores.
WAITING := $(shell expr \( 3 \* $(CORES) + 1 \) / 2)
SOURCES_OF_INSTALL := pyproject.toml setup.py $(wildcard requirements/*.txt) $(shell find protos -name '*.proto')
# The lock files of what users run.
SHIPPED := run.txt $(patsubst requirements/%,%,$(wildcard requirements/images/*.txt))
# What is installed is what the lock files name, and the package itself without anything else.
LOCKED := $(BIN)/python -m pip install --quiet --require-hashes --only-binary :all: -r
ALONE := $(BIN)/python -m pip install --quiet --no-deps --build-constraint requirements/build.txt --editable

.PHONY: help install install-test install-benchmarks train test test-all unit integration learning containers fuzz fuzz-all docs diagrams check format lock audit licences sbom clean

help: ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "make %-18s %s\n", $$1, $$2}'

install: $(VENV)/.installed ## create .venv with the servers, the environments and TensorBoard

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(BIN)/python $(SOURCES_OF_INSTALL)
	$(LOCKED) requirements/pip.txt
	$(LOCKED) requirements/run.txt
	$(ALONE) .
	$(BIN)/python -m pip check --quiet
	@touch $@

install-test: $(VENV)/.installed-test

$(VENV)/.installed-test: $(VENV)/.installed
	$(LOCKED) requirements/test.txt
	$(BIN)/python -m pip check --quiet
	@touch $@

install-benchmarks: install ## add what trainings are compared with, and their environments; TORCH=FILE for a CPU build
	$(BIN)/python -m pip install --quiet '$(TORCH)'
	$(BIN)/python -m pip install --quiet --editable '.[benchmarks]'

$(VENV)/.installed-fuzz: $(VENV)/.installed-test
	$(LOCKED) requirements/fuzz.txt
	@touch $@

fuzz: $(VENV)/.installed-fuzz ## give TARGET bytes of all kinds for SECONDS (60); tests/fuzz/targets.py has the targets
	$(BIN)/python tests/fuzz/program.py $(TARGET) --seconds $(or $(SECONDS),60)

fuzz-all: $(VENV)/.installed-fuzz
	for target in $$(PYTHONPATH=tests $(BIN)/python -c 'from fuzz.targets import TARGETS; print(*TARGETS)'); do \
		$(MAKE) fuzz TARGET=$$target SECONDS=$(or $(SECONDS),10) || exit 1; \
	done

train: install ## train CartPole-v1 until its goal is reached
	$(BIN)/relaax-train Procfiles/cartpole.Procfile

# The areas of tests/areas.toml whose tests run besides: names, all or none.
AREAS ?= none

test: unit learning integration ## run the tests that each change asks for

test-all: ## run all tests: images, clusters, the wheel, benchmarks, the site, and the fuzzer for a moment, too
	$(MAKE) test AREAS=all
	$(MAKE) fuzz-all

# Each of its processes imports all tests: those of other folders are left out, and what is compiled is kept, also where
# the environment says that Python writes none. Libraries were compiled when they were installed.
unit: export PYTHONDONTWRITEBYTECODE :=
unit: export PYTHONPYCACHEPREFIX :=
unit: install-test ## run the fast tests alone, on all cores
	$(BIN)/python -m pytest -n $(WAITING) --dist worksteal --areas '$(AREAS)' -m 'not integration and not learning' tests/unit

integration: install-test ## run the tests with real processes alone, on all cores
	$(BIN)/python -m pytest -n $(WAITING) --dist loadfile --no-loadscope-reorder --areas '$(AREAS)' -m integration

learning: install-test ## run the small trainings alone, on all cores; what they reach is shown at the end
	$(BIN)/python -m pytest -n $(CORES) --dist worksteal --areas '$(AREAS)' -m learning -v -rP

containers: install-test ## build the images of deploy/containers and environments/, and run them; sizes are shown at the end
	$(BIN)/python -m pytest -v -rP tests/integration/test_images.py tests/integration/test_guarded_images.py

docs: install-test ## make a site of the documentation, build/site/index.html
	rm -rf build/docs && mkdir -p build/docs
	git ls-files -z '*.md' docs benchmarks config environments examples/experiments | xargs -0 cp --parents -t build/docs
	$(BIN)/zensical build --strict

diagrams: ## draw docs/images/*.svg of docs/diagrams/*.dot anew (needs Graphviz)
	docs/diagrams/draw

check: install-test ## format check, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	for program in environments/*/main docs/diagrams/draw; do $(BIN)/mypy $$program || exit 1; done

format: install-test ## format the code and mend what ruff can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lock: install-test ## write requirements/ anew of pyproject.toml; UPGRADE=yes takes the newest versions
	$(BIN)/python requirements/lock.py $(if $(UPGRADE),--upgrade)

# Its own exit status is in what make says of an error: 1 for vulnerabilities, 3 where no database answers.
audit: install-test ## ask a database about vulnerabilities in all that the lock files name; AUDIT='--service pypi'
	$(BIN)/python requirements/audit.py $(AUDIT)

licences: install-test ## write docs/licences.md anew
	$(BIN)/python requirements/licences.py

sbom: install-test ## list what is installed to run, and in each image, in build/sbom (CycloneDX)
	mkdir -p build/sbom
	for lock in $(SHIPPED); do \
		$(BIN)/cyclonedx-py requirements requirements/$$lock --pyproject pyproject.toml --validate \
			--output-reproducible --output-file build/sbom/$$(basename $$lock .txt).cdx.json || exit 1; \
	done

clean: ## remove what was built (not the trainings)
	rm -rf $(VENV) build dist *.egg-info
	find . -name '*_pb2*.py*' -delete -o -name __pycache__ -prune -exec rm -rf {} +
