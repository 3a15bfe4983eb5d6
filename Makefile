# Both commands do everything from a fresh clone: virtual environment, install, run.
#   make test        lint, types, import directions, tests (under 12 minutes on two cores)
#   make demo        the quick tour: train a small character model on Python's own library
#   make test-slow   the exhaustive checks
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: test demo test-slow lint clean
.DEFAULT_GOAL := test

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: lint
	$(BIN)/python -m pytest -n 2 -m 'not slow'

test-slow: $(INSTALLED)
	$(BIN)/python -m pytest -m slow

demo: $(INSTALLED)
	$(BIN)/elman demo

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
