# Every target sets up what it needs: an own virtual environment in .venv, once, from Python alone.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
WORKERS ?= auto

.PHONY: setup test check lint types layers format bench demo docs clean

setup: $(READY)

$(READY): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	touch $@

test: $(READY)
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(ARGS)

# `make -k check` goes on after a failure and reports all that is wrong.
check: lint types layers

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/pyright

layers: $(READY)
	$(BIN)/lint-imports

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY)
	$(BIN)/python -m benchmarks $(ARGS)

demo: $(READY)
	$(BIN)/python examples/train_gpt.py $(ARGS)

# The pages of the reference that are written from the code.
docs: $(READY)
	$(BIN)/python -m fxarray.tools.coverage_table
	$(BIN)/python -m fxarray.tools.error_pages

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis
