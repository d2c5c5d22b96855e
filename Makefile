# The menu: `make` lists it. Each entry makes its own environment in .venv; nothing needs to be installed first.
PYTHON ?= python3
JOBS ?= 2
ENV := .venv
BIN := $(ENV)/bin
PYTEST := $(BIN)/python -m pytest

# A file is run by one process, so that what it makes once is made once; the longest come first (`tests/conftest.py`).
# `make test-all` shuffles.
BY_FILE := -p no:randomly --dist loadfile --no-loadscope-reorder
QUICK := HYPOTHESIS_PROFILE=quick $(PYTEST) -n $(JOBS) $(BY_FILE) -m "not slow"
# Tests that need no kernel of the package.
EARLY := $(wildcard $(addprefix tests/,datasets jit/test_jit.py show test_house.py test_naive*.py))

define CHECK_STYLE
$(BIN)/ruff check .
$(BIN)/ruff format --check .
$(BIN)/lint-imports
endef

.DEFAULT_GOAL := help
.PHONY: help study test test-all test-nojit test-peers test-bounds browser lint format type check docs bench fuzz clean
.PHONY: compiled checked

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

study: $(ENV)/core.stamp ## forests and boosting on the embedded housing table, by number of trees
	$(BIN)/spinney study

test: ## style, layers, types, and the tests without the slow ones
	@$(MAKE) --no-print-directory --jobs=2 compiled checked
	$(QUICK) $(EARLY:%=--ignore=%)

# Compiling every kernel takes two processes two to four minutes where none is on disk, and each process that needs one that
# is not there compiles it for itself: so they compile beside what needs none, and the other tests begin when they are done.
compiled: $(ENV)/core.stamp
	@$(BIN)/spinney warmup > $(ENV)/warmup.log 2>&1 || { cat $(ENV)/warmup.log; exit 1; }

checked: $(ENV)/dev.stamp
	$(CHECK_STYLE)
	$(BIN)/mypy
	$(QUICK) $(EARLY)

test-all: $(ENV)/dev.stamp ## every test, with more examples
	$(PYTEST) -n $(JOBS)

# Here every line of a kernel is one that coverage and a debugger see. What would prove nothing more about kernels is left
# out by the marker `compiled`, with its reason: scikit-learn's checks, tables of thousands of rows, what is about speed,
# pages and studies. Five examples of each hypothesis test, and 5 seconds of the processor for each test.
test-nojit: $(ENV)/dev.stamp ## the tests with interpreted kernels, and what they cover (an hour)
	$(BIN)/coverage erase
	NUMBA_DISABLE_JIT=1 $(BIN)/coverage run -m pytest -n $(JOBS) -m "not slow"
	$(BIN)/coverage combine --quiet
	@echo "the kernels alone:"
	$(BIN)/coverage report --include="src/spinney/kernels/*" --fail-under=0
	@echo "all of src/, which has a floor:"
	$(BIN)/coverage report

test-peers: $(ENV)/dev.stamp ## scikit-learn's own tests with our classes in the place of its own
	$(PYTEST) -n $(JOBS) -p no:randomly tests/peers

test-bounds: $(ENV)/dev.stamp ## the tests with every array index checked
	NUMBA_BOUNDSCHECK=1 HYPOTHESIS_PROFILE=quick $(PYTEST) -n $(JOBS) -m "not slow"

browser: $(ENV)/dev.stamp ## open reports in Chromium (it, node and npm must be there)
	$(PYTEST) tests/browser

lint: $(ENV)/dev.stamp ## style, and the layers
	$(CHECK_STYLE)

format: $(ENV)/dev.stamp ## let ruff format and mend what it can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

type: $(ENV)/dev.stamp ## types
	$(BIN)/mypy

check: test ## all that a change must pass

docs: $(ENV)/docs.stamp ## these pages as a site: docs/_build/index.html
	$(BIN)/sphinx-build -q -W --keep-going docs docs/_build

bench: $(ENV)/bench.stamp ## speed against scikit-learn, as ratios in one run
	$(BIN)/python -m benchmarks

fuzz: $(ENV)/dev.stamp ## damage a million model files: none may crash, hang or fill the memory (hours)
	$(BIN)/python -m fuzz --n 1000000 --workers $(JOBS)

clean: ## remove what the menu has made
	rm -rf $(ENV) .coverage .coverage.* .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis dist docs/_build docs/api
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

$(ENV)/core.stamp: pyproject.toml
	$(PYTHON) -m venv $(ENV)
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(ENV)/dev.stamp: $(ENV)/core.stamp
	$(BIN)/python -m pip install --quiet --editable ".[test,lint]"
	touch $@

$(ENV)/bench.stamp: $(ENV)/core.stamp
	$(BIN)/python -m pip install --quiet --editable ".[bench]"
	touch $@

$(ENV)/docs.stamp: $(ENV)/core.stamp
	$(BIN)/python -m pip install --quiet --editable ".[docs]"
	touch $@
