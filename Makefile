# make train   creates the environment, trains LASER on Pong and evaluates it
# make test    creates the environment, checks format, lint and types, and runs the tests
# make test-long   runs what takes minutes more: runs and sweeps whose parts fail one after another
#
# make docs    builds the site in site/ from README.md, docs/ and the docstrings; a dead link fails
#
# make vizdoom, make minigrid, make control   add these suites to the environment
# make box2d                                  adds the physics of gymnasium's LunarLander-v3
# make envpool                                adds EnvPool, whose vector environments step themselves
# make onnx                                   adds what launch.export --format=onnx needs
# make tune                                   adds Optuna and what Ray Tune needs
# make gpu                                    adds the CUDA libraries that TensorFlow needs
# make test-extras                            adds all of these but gpu and tests them

PYTHON ?= python3.11
VENV := .venv
INSTALLED := $(VENV)/installed

DOCS_VENV := .venv-docs
DOCS_INSTALLED := $(DOCS_VENV)/installed

.PHONY: train test docs format environment vizdoom minigrid control box2d envpool onnx tune gpu test-long test-extras
.DEFAULT_GOAL := test

train: $(INSTALLED)
	@$(VENV)/bin/python -m launch.train --config=configs/laser.py:pong --workdir=runs/pong

test: $(INSTALLED)
	@$(VENV)/bin/ruff format --check --quiet . || { echo "run 'make format'" >&2; exit 1; }
	@$(VENV)/bin/ruff check --quiet .
	@$(VENV)/bin/mypy --no-error-summary
	@# Three processes for two cores, because many tests wait. The order is that of testing/conftest.py:
	@# xdist would start files of many tests first, not long ones.
	@$(VENV)/bin/python -m pytest -q --numprocesses=3 --dist=loadfile --no-loadscope-reorder

docs: $(DOCS_INSTALLED)
	@# Not --quiet, with which mkdocs counts no warnings: a dead link would pass.
	@NO_MKDOCS_2_WARNING=1 $(DOCS_VENV)/bin/mkdocs build
	@echo "site/index.html; with search: python -m http.server -d site"

test-long: $(INSTALLED)
	@$(VENV)/bin/python -m pytest -q -m long testing testing/long/*_long.py

test-extras: vizdoom minigrid control box2d envpool onnx tune
	@$(VENV)/bin/python -m pytest -q testing/extras/*_extra.py

format: $(INSTALLED)
	@$(VENV)/bin/ruff format .
	@$(VENV)/bin/ruff check --fix .

environment: $(INSTALLED)

vizdoom minigrid control box2d envpool onnx tune: $(INSTALLED)
	@$(VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps -r requirements-$@.txt

gpu: $(INSTALLED)
	@$(VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps -r requirements-gpu.lock

$(INSTALLED): requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null || \
	  { echo "Python 3.11 is needed, because dm-reverb has no other wheels. Install python3.11 with its venv module, or use make PYTHON=..." >&2; exit 1; }
	@echo "creating the environment in $(VENV) (a minute or two, 2.6 GB)"
	@$(PYTHON) -m venv $(VENV)
	@$(VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps -r requirements.lock
	@touch $@

# A separate environment, so that the site's packages change no version of requirements.lock.
$(DOCS_INSTALLED): requirements-docs.txt
	@$(PYTHON) -m venv $(DOCS_VENV)
	@$(DOCS_VENV)/bin/pip install --quiet --disable-pip-version-check -r requirements-docs.txt
	@touch $@
