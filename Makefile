# Needs Python 3.11 or newer, pip and make; everything else goes into .venv.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# One environment: what the package needs, and on top of it what developers need.
USABLE := $(VENV)/.usable
READY  := $(VENV)/.ready
UV     := build/uv/bin/uv
DEMO   := build/demo
REPORT := $(DEMO)/report.html
# What the demo is made from. Compiled files lie beside the sources and change on every run.
SOURCES := $(shell find src -type f -not -path '*/__pycache__/*')
PYTEST := -m pytest -n 2 --dist worksteal

# $(call pip_install,FOLDER): into the environment in FOLDER, by its own pip. Where Python could
# not give it one (%/bin/python below), the machine's pip does it.
pip_install = $$([ -e $(1)/bin/pip ] && echo $(1)/bin/python || echo $(PYTHON)) \
  -m pip --python $(1)/bin/python --disable-pip-version-check install --quiet
# Wheels alone: to build from sources, pip would fetch what no lock names.
LOCKED := --only-binary :all: --require-hashes --requirement

# Where this is set, every command would translate the whole package anew.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup demo test test-lowest test-newest promises lint docs bench update clean

help:
	@echo 'make demo         set up, simulate and protect a small state, print the path of the report'
	@echo 'make test         set up, run the whole suite (style, types, import direction, docs too)'
	@echo 'make setup        create $(VENV) with the package and what developers need'
	@echo 'make promises     2,000 random configurations of each mechanism against its promise'
	@echo 'make lint         style, types and import direction only'
	@echo 'make docs         build the documentation, print the path of its first page'
	@echo 'make bench        run every benchmark'
	@echo 'make update       renew the locks in requirements/, print what changed'
	@echo 'make test-lowest  the suite with the lowest versions that pyproject.toml allows'
	@echo 'make test-newest  the suite with the newest versions that pyproject.toml allows'
	@echo 'make clean        remove everything that can be made again'

setup: $(READY)

# Debian ships Python without ensurepip: the environment is then made without pip.
%/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "discreet needs Python 3.11 or newer, but '$(PYTHON)' is: $$($(PYTHON) --version 2>&1)." >&2; \
	  echo "Install one and name it: make setup PYTHON=python3.11" >&2; exit 1; }
	@echo 'Setting up $* (once; about a minute) ...'
	@$(PYTHON) -m venv $* >/dev/null 2>&1 || $(PYTHON) -m venv --clear --without-pip $*

$(USABLE): requirements/user.txt pyproject.toml | $(BIN)/python
	@$(call pip_install,$(VENV)) $(LOCKED) requirements/user.txt
	@$(call pip_install,$(VENV)) --no-deps --no-build-isolation --editable .
	@touch $@

$(READY): requirements/dev.txt $(USABLE)
	@$(call pip_install,$(VENV)) $(LOCKED) requirements/dev.txt
	@touch $@

demo: $(REPORT)
	@echo '$(CURDIR)/$(REPORT)'

$(REPORT): $(SOURCES) | $(USABLE)
	@rm -rf $(DEMO)
	@$(BIN)/discreet demo --out $(DEMO)
	@touch $@

test: setup
	@$(BIN)/python $(PYTEST)

# In environments of their own, new every time. NumPy's annotations differ from version to
# version, so types are checked with the locked and the newest versions only.
test-lowest: OLDEST_PYTHON := python3.11
test-lowest: RESOLUTION := --resolution lowest-direct
test-lowest: PYTEST += --deselect 'tests/house/test_style.py::test_checker_is_content[mypy-strict]'
test-newest: RESOLUTION := --resolution highest
test-lowest test-newest: $(UV)
	@$(UV) venv --quiet --clear --no-python-downloads --python $(or $(OLDEST_PYTHON),$(PYTHON)) build/$@
	@$(UV) pip install --quiet --python build/$@ $(RESOLUTION) \
	  --requirement pyproject.toml --extra dev --group build
	@$(UV) pip install --quiet --python build/$@ --no-deps --no-build-isolation --editable .
	@$(UV) pip list --python build/$@
	@build/$@/bin/python $(PYTEST)

# As many cases as CASES says; the suite has 200 of each mechanism. Prints what was used.
CASES ?= 2000
promises: setup
	@DISCREET_CASES=$(CASES) $(BIN)/python $(PYTEST) -rP tests/neighbours

update: $(UV)
	@build/uv/bin/python scripts/lock.py $(UV)

$(UV): requirements/uv.txt | build/uv/bin/python
	@$(call pip_install,build/uv) $(LOCKED) requirements/uv.txt
	@touch $@

lint: setup
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

docs: setup
	@$(BIN)/python -m sphinx -W --keep-going -n -E -q -b html docs build/docs
	@echo '$(CURDIR)/build/docs/index.html'

bench: setup
	@set -e; for script in benchmarks/*.py; do \
	  [ -e "$$script" ] || continue; echo "== $$script"; $(BIN)/python "$$script"; done

clean:
	rm -rf $(VENV) build docs/generated .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -type d -name __pycache__ -prune -exec rm -rf {} +
