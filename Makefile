# Everything a person needs: `make demo`, `make test`. Both do all set-up themselves.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
UV     := $(shell command -v uv 2>/dev/null || echo .tools/bin/uv)
PROTOS := $(sort $(wildcard protos/animalcat/v1/*.proto))
TESTFLAGS ?= -n auto
export ANIMALCAT_DATA ?= ../shared/data

.PHONY: help setup demo test lint types proto proto-check bench lock clean

help:
	@echo "make demo    set up and run the main job end to end"
	@echo "make test    set up and run the tests"
	@echo "make lint | types | proto | proto-check | bench | lock | clean"

setup: $(STAMP)

.tools/bin/uv:
	@$(PYTHON) -m pip --version >/dev/null 2>&1 || { echo "make: neither uv nor pip found; install one of them (python3 -m ensurepip, or https://docs.astral.sh/uv)" >&2; exit 1; }
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --target .tools "uv>=0.8"

# animalai declares Python >= 3.14 but is pure Python; below 3.14 it is installed past that declaration.
$(STAMP): requirements.lock requirements-animalai.lock pyproject.toml | $(filter .tools/bin/uv,$(UV))
	@test -x $(BIN)/python || $(UV) venv --quiet --python "$(PYTHON)" $(VENV)
	$(UV) pip install --quiet --python $(BIN)/python --require-hashes -r requirements.lock
	$(UV) pip install --quiet --python $(BIN)/python --python-version 3.14 --no-deps --require-hashes -r requirements-animalai.lock
	$(UV) pip install --quiet --python $(BIN)/python --no-deps --editable .
	@touch $@

demo: $(STAMP)
	$(BIN)/animalcat demo

test: $(STAMP)
	$(BIN)/python -m pytest $(TESTFLAGS)

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	cd protos && ../$(BIN)/buf lint

types: $(STAMP)
	$(BIN)/pyright

proto: $(STAMP)
	$(BIN)/python -m grpc_tools.protoc -I protos --python_out=. --grpc_python_out=. --mypy_out=quiet:. --mypy_grpc_out=quiet:. \
	  --plugin=protoc-gen-mypy=$(BIN)/protoc-gen-mypy --plugin=protoc-gen-mypy_grpc=$(BIN)/protoc-gen-mypy_grpc $(PROTOS)

# Fails when the committed generated code is not what the protos give.
proto-check: $(STAMP)
	@tmp=$$(mktemp -d) && trap 'rm -rf "$$tmp"' EXIT && cp -r animalcat/v1 "$$tmp/before" && $(MAKE) --no-print-directory proto && \
	  diff -r -x __pycache__ "$$tmp/before" animalcat/v1 && echo "protobuf code is up to date"

bench: $(STAMP)
	$(BIN)/animalcat bench $(BENCHFLAGS)

lock: | $(filter .tools/bin/uv,$(UV))
	$(UV) pip compile --quiet --universal --generate-hashes --no-emit-index-url --python-version 3.11 --extra dev pyproject.toml -o requirements.lock
	$(UV) pip compile --quiet --universal --generate-hashes --no-emit-index-url --python-version 3.11 --extra server --constraint requirements.lock pyproject.toml -o docker/service/requirements.lock
	printf 'animalai==6.2.0\nmlagents-envs-aai==1.0.0\n' | $(UV) pip compile --quiet --generate-hashes --no-emit-index-url --no-deps --python-version 3.14 - -o requirements-animalai.lock

clean:
	rm -rf $(VENV) .tools .pytest_cache .ruff_cache animalcat-demo
