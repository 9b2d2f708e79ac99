# make train   creates the environment, trains LASER on Pong and evaluates it
# make test    creates the environment and runs all tests
#
# make vizdoom, make minigrid   add these games to the environment

PYTHON ?= python3.11
VENV := .venv
INSTALLED := $(VENV)/installed

.PHONY: train test format environment vizdoom minigrid
.DEFAULT_GOAL := test

train: $(INSTALLED)
	@$(VENV)/bin/python -m launch.train --config=configs/laser_atari.py --workdir=runs/pong

test: $(INSTALLED)
	@$(VENV)/bin/ruff format --check --quiet . || { echo "run 'make format'" >&2; exit 1; }
	@$(VENV)/bin/ruff check --quiet .
	@$(VENV)/bin/python -m pytest -q

format: $(INSTALLED)
	@$(VENV)/bin/ruff format .
	@$(VENV)/bin/ruff check --fix .

environment: $(INSTALLED)

vizdoom minigrid: $(INSTALLED)
	@$(VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps -r requirements-$@.txt

$(INSTALLED): requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null || \
	  { echo "Python 3.11 is needed (dm-reverb has no other wheels) and '$(PYTHON)' is not it: install python3.11 with its venv module, or name it with make PYTHON=..." >&2; exit 1; }
	@echo "creating the environment in $(VENV) (a minute or two, about 2 GB)"
	@$(PYTHON) -m venv $(VENV)
	@$(VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps -r requirements.lock
	@touch $@
