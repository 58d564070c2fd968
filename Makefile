# Needs Python 3.11 or newer, pip and make; everything else goes into .venv.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.ready
DEMO   := build/demo
REPORT := $(DEMO)/report.html
# What the demo is made from. Compiled files lie beside the sources and change on every run.
SOURCES := $(shell find src -type f -not -path '*/__pycache__/*')
PIP    := $(BIN)/python -m pip --disable-pip-version-check

# Where this is set, every command would translate the whole package anew.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup demo test lint docs bench clean

help:
	@echo 'make demo   set up, simulate and protect a small state, print the path of the report'
	@echo 'make test   set up, run the whole suite (style, types, import direction, docs too)'
	@echo 'make setup  create $(VENV) with the package and what developers need'
	@echo 'make lint   style, types and import direction only'
	@echo 'make docs   build the documentation, print the path of its first page'
	@echo 'make bench  run every benchmark'
	@echo 'make clean  remove everything that can be made again'

setup: $(STAMP)

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "discreet needs Python 3.11 or newer, but '$(PYTHON)' is: $$($(PYTHON) --version 2>&1)." >&2; \
	  echo "Install one and name it: make setup PYTHON=python3.11" >&2; exit 1; }
	@echo 'Setting up $(VENV) (once; about a minute) ...'
	@# Debian ships Python without ensurepip: then the machine's own pip fills the environment.
	@$(PYTHON) -m venv $(VENV) >/dev/null 2>&1 || { \
	  $(PYTHON) -m venv --clear --without-pip $(VENV) && \
	  $(PYTHON) -m pip --python $(BIN)/python install --quiet pip; }
	@$(PIP) install --quiet --editable '.[dev]'
	@touch $@

demo: $(REPORT)
	@echo '$(CURDIR)/$(REPORT)'

$(REPORT): $(SOURCES) | $(STAMP)
	@rm -rf $(DEMO)
	@$(BIN)/discreet demo --out $(DEMO)
	@touch $@

test: setup
	@$(BIN)/python -m pytest -n 2 --dist worksteal

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
