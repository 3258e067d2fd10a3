# Everything runs in .venv, which is set up once from the lock: no activation, and no network afterwards.
PYTHON3 ?= python3
PYTHON := .venv/bin/python
SPECDEC := $(PYTHON) -m specdec_lib
TARGET := $(or $(SPECDEC_CACHE),data/cache)/smollm2/source.json
ARGS ?=

export HF_HUB_OFFLINE ?= 1
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: help figures full refresh test test-ui check compiled prepared compiled-fast lab table measured bench lossless faults setup distil
.DEFAULT_GOAL := help

help: ## show this
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' Makefile

figures: $(TARGET) ## run every notebook that changed and make its figures (ARGS="--only 00 --set seed=1" passes options on)
	$(SPECDEC) reproduce $(ARGS)

full: $(TARGET) ## the same at full size: notebooks/full/NN.yml
	$(SPECDEC) reproduce --profile full $(ARGS)

refresh: $(TARGET) ## run every notebook and store its outputs in the notebook
	$(SPECDEC) reproduce --refresh $(ARGS)

test: $(TARGET) ## check, all tests, all notebooks; leaves the working tree as it was
	@$(MAKE) --no-print-directory -j2 check compiled
	@figures=$$(mktemp -d) && trap 'rm -rf "$$figures"' EXIT && SPECDEC_FIGURES="$$figures" SPECDEC_REQUIRE_TARGET=1 $(PYTHON) -m pytest -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder $(ARGS)

test-ui: .venv/.ui $(TARGET) ## every notebook and explorer in JupyterLab in headless Chromium, screenshots in figures/runs/ui (needs Chromium: apt install chromium)
	SPECDEC_UI=1 $(PYTHON) -m pytest tests/ui $(ARGS)

check: .venv/.stamp ## lint, formatting and types; how long and how dense the code is
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m basedpyright --pythonpath $(PYTHON)
	@$(PYTHON) tests/size.py

compiled: .venv/.stamp
	@$(PYTHON) tests/compiling.py

lab: $(TARGET) ## open the notebooks in JupyterLab
	$(PYTHON) -m jupyterlab $(if $(filter 0,$(shell id -u)),--allow-root) --ServerApp.root_dir=. --LabApp.default_url=/lab/tree/notebooks/00_one_round.ipynb $(ARGS)

table: $(TARGET) ## write the README's table
	$(SPECDEC) measure table $(ARGS)

measured: $(TARGET) ## the measurements behind the notebooks, in data/measured (hours)
	$(SPECDEC) measure texts
	$(SPECDEC) measure table
	$(SPECDEC) measure acceptance
	$(SPECDEC) measure staged
	$(SPECDEC) measure growth
	$(SPECDEC) measure passes
	$(SPECDEC) measure cascades
	$(SPECDEC) measure walltime
	$(SPECDEC) measure latency
	$(SPECDEC) measure ideas
	$(SPECDEC) measure rivals
	$(SPECDEC) measure verifiers
	$(SPECDEC) measure guesses
	$(SPECDEC) measure temperatures
	$(SPECDEC) measure learning
	$(SPECDEC) measure regret

bench: $(TARGET) ## speed against what a user would pick instead, in data/measured; hours, and goes on where it was stopped; fewer with ARGS="--limit 5 5 2 --others 2 --settings 6 --threads 1" (SMOKE=1: minutes, nothing kept)
	$(SPECDEC) bench $(if $(SMOKE),--smoke) $(ARGS)
	$(SPECDEC) bench --edition int8 $(if $(SMOKE),--smoke) $(ARGS)

setup: $(TARGET) ## prepare the SmolLM2 target model and compile the fast runtime, once: downloads 100 MB, takes 540 MB in data/cache; the other commands do it too

distil: $(TARGET) ## let the target write text for its drafts to learn from, in data/text; hours, and it goes on where it stopped
	$(SPECDEC) distil write $(ARGS)

lossless: $(TARGET) ## the long proof that no setting changes the output
	$(PYTHON) tests/lossless.py $(ARGS)

faults: .venv/.stamp ## small runs of long work meet every fault and are run again (minutes)
	$(PYTHON) tests/faults.py

.venv/.stamp: requirements.lock pyproject.toml
	@$(PYTHON3) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' || \
		{ echo "Python 3.11 to 3.13 is needed, $(PYTHON3) is $$($(PYTHON3) --version 2>&1); try: make PYTHON3=python3.12" >&2; exit 1; }
	@$(PYTHON3) -c 'import ensurepip, venv' 2>/dev/null || \
		{ echo "$(PYTHON3) lacks venv; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@echo "Setting up .venv from requirements.lock, once; this takes a minute or two."
	$(PYTHON3) -m venv .venv
	@$(MAKE) --no-print-directory -j2 .venv/half-0 .venv/half-1
	$(PYTHON) -m pip install --quiet --no-compile --no-deps --no-build-isolation -e .
	@$(PYTHON) -m pip check >/dev/null || $(PYTHON) -m pip install --quiet -r requirements.lock  # what other systems need besides
	@$(PYTHON) -m compileall -q -j 0 -x '/(tests?|testing|_vendor[a-z]*|_inductor)/|/transformers/models/' .venv/lib >/dev/null || true  # on all cores, where pip takes one; what hardly ever runs stays out, and what some packages ship that compiles nowhere
	@settings=.venv/share/jupyter/lab/settings && mkdir -p $$settings && \
		echo '{"@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": false}}' > $$settings/overrides.json
	@touch $@

.venv/half-%: requirements.lock
	@awk 'NR % 2 == $*' $< > $@.txt
	$(PYTHON) -m pip install --quiet --no-compile --no-deps -r $@.txt
	@touch $@

$(TARGET): | .venv/.stamp
	@echo "Preparing the target model and compiling the fast runtime, once; this takes a minute or two."
	@$(MAKE) --no-print-directory -j2 prepared compiled-fast

prepared: .venv/.stamp
	$(SPECDEC) setup
	-@$(PYTHON) tests/compiling.py int8

compiled-fast: .venv/.stamp
	-@$(PYTHON) tests/compiling.py fast

.venv/.ui: .venv/.stamp
	$(PYTHON) -m pip install --quiet -c requirements.lock -e '.[ui]'
	@touch $@
