# Everything a contributor or an operator types. `make help` lists it; `make run` and `make test` do their own set-up.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV := .venv
BIN := $(VENV)/bin
PYTHON := $(BIN)/python
PIP := $(PYTHON) -m pip --disable-pip-version-check --quiet
ARGS ?=

# A stamp is younger than what it was made from: repeated runs install nothing.
VENV_STAMP := $(VENV)/.stamp-venv
RUN_STAMP := $(VENV)/.stamp-run
DEV_STAMP := $(VENV)/.stamp-dev
NODE_STAMP := tests/node/node_modules/.stamp

.PHONY: help
help: ## List the commands
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: install
install: $(RUN_STAMP) ## Install Recado into .venv

.PHONY: run
run: $(RUN_STAMP) ## Serve the API on 127.0.0.1:8080 (ARGS="--listen HOST:PORT --data-dir DIR")
	@exec $(BIN)/recado serve $(ARGS)

.PHONY: test
test: $(DEV_STAMP) test-tools ## Run the tests, under ten minutes (ARGS="tests/domain -k pacing")
	tools/run-tests $(PYTHON) usual $(ARGS)

.PHONY: test-long
test-long: $(DEV_STAMP) test-tools ## Run the long suite: every example, many kills under load, long soaks
	tools/run-tests $(PYTHON) long $(ARGS)

.PHONY: check
check: $(DEV_STAMP) ## Check format, lint, types and the layers' import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

.PHONY: fix
fix: $(DEV_STAMP) ## Format, and fix what the linter can fix
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: bench
bench: $(DEV_STAMP) bench-tools ## Measure everything beside its bound and print the ratios
	$(PYTHON) -m bench $(ARGS)

.PHONY: docs
docs: $(DEV_STAMP) ## Write the generated parts of docs/ again
	$(PYTHON) -m recado.config.reference docs/configuration.md
	$(PYTHON) docs/generate_states.py

.PHONY: screenshots
screenshots: $(DEV_STAMP) ## Take the pictures of docs/images again, from a service of their own; two minutes
	@tools/system-packages chromium:chromium
	$(PYTHON) -m tests.acceptance.console.screenshots docs/images

.PHONY: lock
lock: $(DEV_STAMP) ## Pin constraints.txt to what is installed now
	$(PIP) freeze --exclude-editable > constraints.txt

.PHONY: clean
clean: ## Remove the virtual environment and caches; data folders stay
	rm -rf $(VENV) tests/node/node_modules .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

# Set-up -----------------------------------------------------------------------------------------------------------

# Made anew, and not over what is there: its interpreter would stay the one before.
$(VENV_STAMP): tools/find-python
	@python=$$(tools/find-python) && echo "Making $(VENV) with $$($$python --version), $$python" && "$$python" -m venv --clear $(VENV)
	@touch $@

$(RUN_STAMP): $(VENV_STAMP) pyproject.toml constraints.txt
	@echo "Installing Recado into $(VENV)"
	@$(PIP) install --constraint constraints.txt --editable .
	@touch $@

$(DEV_STAMP): $(RUN_STAMP)
	@echo "Installing the tools of tests and checks into $(VENV)"
	@$(PIP) install --constraint constraints.txt --editable ".[dev]"
	@touch $@

# What tests and benches need beside Python: installed when root, named when not.
.PHONY: test-tools bench-tools
test-tools:
	@tools/system-packages chromium:chromium node:nodejs npm:npm pg_lsclusters:postgresql cc:gcc \
		/usr/share/perl5/Net/SMPP.pm:libnet-smpp-perl \
		promtool:prometheus /usr/sbin/nginx:nginx caddy:caddy systemd-analyze:systemd
	@if command -v npm > /dev/null; then $(MAKE) --no-print-directory $(NODE_STAMP); fi

bench-tools:
	@tools/system-packages wrk:wrk node:nodejs npm:npm
	@if command -v npm > /dev/null; then $(MAKE) --no-print-directory $(NODE_STAMP); fi

$(NODE_STAMP): tests/node/package.json tests/node/package-lock.json
	@echo "Installing the Node.js tools of the tests into tests/node"
	@cd tests/node && npm ci --no-audit --no-fund --loglevel=error
	@touch $@
