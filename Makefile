# Everything runs in .venv, which is set up once from the lock: no activation, and no network afterwards.
PYTHON3 ?= python3
PYTHON := .venv/bin/python
SPECDEC := $(PYTHON) -m specdec_lib
ARGS ?=

export HF_HUB_OFFLINE ?= 1
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: help figures full refresh test test-ui check lab table measured bench lossless ladder setup distil
.DEFAULT_GOAL := help

help: ## show this
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' Makefile

figures: .venv/.stamp ## run every notebook that changed and make its figures (ARGS="--only 00 --set seed=1" passes options on)
	$(SPECDEC) reproduce $(ARGS)

full: .venv/.stamp ## the same at full size: notebooks/full/NN.yml
	$(SPECDEC) reproduce --profile full $(ARGS)

refresh: .venv/.stamp ## run every notebook and store its outputs in the notebook
	$(SPECDEC) reproduce --refresh $(ARGS)

test: check ## check, all tests, all notebooks; leaves the working tree as it was
	@figures=$$(mktemp -d) && trap 'rm -rf "$$figures"' EXIT && SPECDEC_FIGURES="$$figures" $(PYTHON) -m pytest -n auto --maxprocesses 4 --dist loadfile $(ARGS)

test-ui: .venv/.ui ## every notebook and explorer in JupyterLab in headless Chromium, screenshots in figures/runs/ui (needs Chromium: apt install chromium)
	SPECDEC_UI=1 $(PYTHON) -m pytest tests/ui $(ARGS)

check: .venv/.stamp ## lint and formatting
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .

lab: .venv/.stamp ## open the notebooks in JupyterLab
	$(PYTHON) -m jupyterlab --ServerApp.root_dir=. --LabApp.default_url=/lab/tree/notebooks/00_one_round.ipynb $(ARGS)

table: .venv/.stamp ## write the README's table
	$(SPECDEC) measure table $(ARGS)

measured: .venv/.stamp ## the measurements behind notebooks 02 to 04, in data/measured (about three hours)
	$(SPECDEC) measure acceptance
	$(SPECDEC) measure staged
	$(SPECDEC) measure growth
	$(SPECDEC) measure cascades
	$(SPECDEC) measure walltime

bench: .venv/.stamp ## speed against what a user would pick instead, in data/measured; twelve quiet minutes (SMOKE=1: two, nothing kept)
	$(SPECDEC) bench $(if $(SMOKE),--smoke) $(ARGS)

setup: .venv/.stamp ## prepare the SmolLM2 target model, once: downloads 100 MB, takes 700 MB in data/cache
	$(SPECDEC) setup $(ARGS)

distil: setup ## let the target write text for its drafts to learn from, in data/text; hours, and it goes on where it stopped
	$(SPECDEC) distil write $(ARGS)

lossless: .venv/.stamp ## the long proof that no setting changes the output
	$(PYTHON) tests/lossless.py $(ARGS)

ladder: .venv/.stamp ## train the embedded models again
	$(SPECDEC) ladder make $(ARGS)
	$(SPECDEC) ladder pair $(ARGS)

.venv/.stamp: requirements.lock pyproject.toml
	@$(PYTHON3) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' || \
		{ echo "Python 3.11 to 3.13 is needed, $(PYTHON3) is $$($(PYTHON3) --version 2>&1); try: make PYTHON3=python3.12" >&2; exit 1; }
	@$(PYTHON3) -c 'import ensurepip, venv' 2>/dev/null || \
		{ echo "$(PYTHON3) lacks venv; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@echo "Setting up .venv from requirements.lock, once; this takes a minute or two."
	$(PYTHON3) -m venv .venv
	$(PYTHON) -m pip install --quiet -r requirements.lock
	$(PYTHON) -m pip install --quiet --no-deps -e .
	@settings=.venv/share/jupyter/lab/settings && mkdir -p $$settings && \
		echo '{"@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": false}}' > $$settings/overrides.json
	@touch $@

.venv/.ui: .venv/.stamp
	$(PYTHON) -m pip install --quiet -c requirements.lock -e '.[ui]'
	@touch $@
