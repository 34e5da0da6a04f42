# Everything a person or CI does with this repository. `make help` lists it.

PYTHON ?= python3
VENV ?= .venv
# Installed before everything else, in the version that the tests were run with. Which build comes, for the CPU or
# for CUDA (several gigabytes), is up to pip's index: see https://pytorch.org/get-started.
TORCH ?= torch==2.13.0
ENV ?= PongNoFrameskip-v4
STEPS ?=
ARGS ?=

BIN := $(VENV)/bin
READY := $(VENV)/.ready
EXTRAS := atari,bench,box2d,mujoco,test,zoo

# One torch thread a process: the parity tests compare bit by bit, sums over several threads are not
# reproducible, and two test workers on two cores would only take turns with more.
test test-slow check conformance: export OMP_NUM_THREADS := 1
# No window is ever needed here, and a machine without a display has none to give.
test test-slow check conformance: export MPLBACKEND := Agg
test test-slow check conformance: export SDL_VIDEODRIVER := dummy

PYTEST := $(BIN)/python -m pytest -n 2

.PHONY: help install train test test-slow check lint conformance format clean
.DEFAULT_GOAL := help

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(firstword $(MAKEFILE_LIST)) | sed -E 's/:[^#]*## /\t/' | expand -t 16

install: $(READY) ## create .venv with the package (editable) and what all other targets need

$(READY): setup.cfg pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install "$(TORCH)"
	$(BIN)/python -m pip install -e ".[$(EXTRAS)]"
	@touch $@

train: $(READY) ## train an Atari game with a picture at the end (ENV=..., STEPS=...)
	$(BIN)/python -m benchmarks train --env "$(ENV)" $(if $(STEPS),--steps "$(STEPS)")

test: $(READY) ## run the tests, except the slow ones
	$(PYTEST)

test-slow: $(READY) ## run the slow tests only
	$(PYTEST) -m slow

lint: $(READY) ## style, types and import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict
	$(BIN)/lint-imports

check: lint test ## everything a change must pass

conformance: $(READY) ## run Stable-Baselines3's own PPO tests against this PPO (ARGS=--stock: against its own)
	$(BIN)/python -m tests.conformance $(ARGS)

format: $(READY) ## format the code and sort its imports
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

clean: ## remove what builds and tools left behind (not .venv)
	rm -rf build dist *.egg-info .conformance .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -not -path "./$(VENV)/*" -prune -exec rm -rf {} +
