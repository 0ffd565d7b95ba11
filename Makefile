# GNU make. `make help` lists the targets.

PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
STAMP := $(VENV)/.installed
BENCH_STAMP := $(VENV)/.installed-bench
DOCS_STAMP := $(VENV)/.installed-docs

# Where the data that may not be redistributed lies. Empty (the loader downloads it) where there is no such folder.
ORTHONMF_DATA ?= $(abspath $(wildcard ../shared/data))
export ORTHONMF_DATA

.PHONY: help setup browser demo test test-full recipes lint docs bench dist check-dist clean
.DEFAULT_GOAL := help

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' Makefile

setup: $(STAMP) ## create .venv with the package (editable) and everything the tests need

# The build of torch that tests take; empty is none, and its tests are skipped (CI asks for them). On a machine without a GPU: a CPU build,
# which comes without Triton; its interpreter runs the kernels there.
TORCH ?=

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(if $(TORCH),$(PY) -m pip install --quiet '$(TORCH)' 'triton; sys_platform == "linux"')
	$(PY) -m pip install --quiet --editable '.[test]'
	touch $@

$(BENCH_STAMP): $(STAMP)
	$(PY) -m pip install --quiet --editable '.[bench]'
	touch $@

# The browser in which the report is tested; `make test CHROMIUM=/path/to/chromium` takes another.
CHROMIUM ?= /usr/bin/chromium
export CHROMIUM
SUDO := $(if $(filter 0,$(shell id -u)),,sudo)

browser: ## install Chromium from Debian's packages, for the tests of the report
	@if [ -x $(CHROMIUM) ]; then echo "$(CHROMIUM) is there."; \
	elif command -v apt-get > /dev/null; then $(SUDO) apt-get update -q && $(SUDO) apt-get install -qy --no-install-recommends chromium; \
	else echo "No apt-get here: install Chromium by other means and run make test CHROMIUM=/path/to/chromium" >&2; exit 1; fi

$(DOCS_STAMP): $(STAMP)
	$(PY) -m pip install --quiet --editable '.[docs]'
	touch $@

demo: $(STAMP) ## run the demonstration; its files go to demo-output
	$(PY) -m orthonmf.experiments.demo --out demo-output

test: $(STAMP) ## run the tests
	$(PY) -m pytest -n 2 --dist worksteal -m "not long"

test-full: $(STAMP) ## run the tests with their long versions (about an hour on two cores)
	$(PY) -m pytest -n 2 --dist worksteal

# BERTopic asks for torch: `make recipes TORCH=...` names another build than the newest, for example one without a GPU.
RECIPES := .venv-recipes

$(RECIPES)/.installed: pyproject.toml
	$(PYTHON) -m venv $(RECIPES)
	$(RECIPES)/bin/python -m pip install --quiet '$(or $(TORCH),torch)'
	$(RECIPES)/bin/python -m pip install --quiet --editable '.[recipes]'
	touch $@

recipes: $(RECIPES)/.installed ## run the recipes of the documentation with scanpy, BERTopic and hyperspy, in an environment of their own
	$(RECIPES)/bin/python -m pytest recipes -s

lint: $(STAMP) ## ruff (rules and format) and mypy
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy

bench: $(BENCH_STAMP) ## compare with other libraries, as ratios within one run
	$(PY) -m benchmarks

dist: $(STAMP) ## build the wheel and the source archive into dist
	rm -rf dist
	$(PY) -m build

check-dist: dist ## try what was built in new environments, with the core dependencies alone and with extras
	$(PY) scripts/check_dist.py dist

docs: $(DOCS_STAMP) ## build the documentation into docs/_build/html; a warning is an error
	$(PY) -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "Open docs/_build/html/index.html"

clean: ## remove .venv and everything that was generated
	rm -rf $(VENV) demo-output build dist docs/_build docs/api docs/auto_examples .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
