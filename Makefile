# `make demo` and `make test` are all a newcomer needs; `make help` lists the rest.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(BIN)/uv
COUNT = $$(grep -c == $(1))
# uv trusts whom this machine trusts, if it has a store of certificates (or SSL_CERT_FILE names one): proxies may look into TLS.
ifneq ($(SSL_CERT_FILE)$(wildcard /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt),)
export UV_SYSTEM_CERTS ?= true
endif
SYNC = $(UV) pip install --quiet --compile-bytecode --python $(BIN)/python --require-hashes --no-deps -r

.PHONY: help setup demo test engines elsewhere soak chaos check bench serve guide reference lock system site-base test-cache box site clean

help: ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 10

$(VENV)/.uv: scripts/venv
	@PYTHON=$(PYTHON) scripts/venv $(VENV)
	@touch $@

$(VENV)/.run: locks/run.txt pyproject.toml | $(VENV)/.uv
	@echo "setup: downloading, installing and compiling $(call COUNT,locks/run.txt) packages that Sublet needs to run …"
	@$(SYNC) locks/run.txt
	@echo "setup: installing and compiling Sublet itself …"
	@$(UV) pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m compileall -q src  # the first command is as fast as the second
	@touch $@

$(VENV)/.all: locks/all.txt $(VENV)/.run
	@echo "setup: downloading, installing and compiling what its tests and notebooks need: $(call COUNT,locks/all.txt) packages in all …"
	@$(SYNC) locks/all.txt
	@touch $@

setup: $(VENV)/.all ## make .venv with everything; .venv/bin/sublet is the command

system: ## as root on Debian: install the programs that the tests use
	@scripts/system-packages

demo: $(VENV)/.run ## ask, see the offers, accept, run, see the result (under a minute)
	@scripts/demo

test: ## all tests but the slowest, on real components (15 minutes at most, with the set-up)
	@$(MAKE) --no-print-directory --jobs=2 test-cache site-base
	@scripts/test

# Two halves of the set-up that don't need each other: Python's packages, and Debian's with the base of the sites.
# pytest compiles each test file when it first collects it: once for all workers, not once for each.
test-cache: setup
	@env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest -q -p no:cacheprovider --collect-only tests >/dev/null 2>&1 || :

site-base: system
	@testbed/site box >/dev/null || echo "note: no newer Slurm, Apptainer and HTCondor here; their tests are skipped"

engines: setup site-base ## tests with large third-party servers (Rucio, JupyterHub; installed once, a minute), slow tests on real sites, type checks
	@$(BIN)/python -m testbed.kubernetes.build || echo "note: Kubernetes could not be built here; its tests say why"
	@scripts/test engines

elsewhere: setup system ## as root: tests as on other machines (no tun, no cgroups, slow disk, …): make elsewhere VARIANT=no-tun (WHOLE=yes: all tests)
	@scripts/elsewhere $(or $(VARIANT),all) $(if $(WHOLE),--whole)

soak: setup site-base ## the few tests that take minutes, and a longer chaos run
	@$(BIN)/python -m pytest -q -m soak tests
	@HYPOTHESIS_PROFILE=searching $(BIN)/python -m pytest -q tests/unit tests/api/test_schemathesis.py
	@$(BIN)/python -m tests.chaos --minutes $(or $(MINUTES),15) $(if $(SEED),--seed $(SEED))

chaos: setup system ## inject faults while clients work, for three minutes: make chaos SEED=7 MINUTES=1
	@$(BIN)/python -m tests.chaos --minutes $(or $(MINUTES),3) $(if $(SEED),--seed $(SEED))

check: setup ## lint, types, layers
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

bench: setup ## benchmarks, as ratios to peers
	@$(BIN)/python -m benchmarks

serve: $(VENV)/.run ## run a service on this machine, in the foreground
	@$(BIN)/sublet serve

guide: setup site-base ## run a guide and compare what it shows: make guide NAME=first-run
	@$(BIN)/python -m pytest -q tests/docs --guide "$(NAME)"

reference: setup ## generate the reference pages from the code
	@$(BIN)/python -m tests.docs.reference

lock: $(VENV)/.uv ## update the lock of dependencies, a week behind the newest releases
	@scripts/lock

box: system ## as root: install newer Slurm, Apptainer and HTCondor for sites (minutes, once)
	@testbed/site box

site: system ## as root: start a small Slurm site to play with, and print how to log in
	@testbed/site status $(or $(NAME),playground) 2>/dev/null || testbed/site up $(or $(NAME),playground)

clean: ## remove what make made
	@rm -rf $(VENV) build dist
