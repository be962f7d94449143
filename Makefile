# Every target does its own set-up: the virtual environment, the pinned dependencies, Debian packages if root and missing.
PY := .venv/bin/python
JOBS ?= 2
.PHONY: demo test test-slow lint format bench setup clean lock

setup:
	@bash scripts/setup.sh

demo: setup
	@$(PY) -I scripts/demo.py

test: setup
	@bash scripts/run-tests.sh -m "not slow" -n $(JOBS) --dist loadgroup

test-slow: setup
	@bash scripts/run-tests.sh -m slow

lint: setup
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/mypy
	.venv/bin/lint-imports --no-cache

format: setup
	.venv/bin/ruff format .
	.venv/bin/ruff check --fix -q . || true

bench: setup
	$(PY) -m bench

lock: setup
	bash scripts/lock.sh

clean:
	rm -rf .venv .demo .mypy_cache .ruff_cache .pytest_cache .hypothesis
