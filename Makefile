# Every recipe is one command; `make` alone lists them.
PYTHON ?= python3
PACKAGE ?=
UPGRADE ?=
NEWER := import sys; sys.exit(sys.version_info < (3, 11))
CI_TOOLS = $(if $(shell $(PYTHON) -c '$(NEWER)' && echo yes),,$(error \
	$(PYTHON) is missing or older than Python 3.11: name a newer one, make PYTHON=python3.13 ...))$(PYTHON) -m ci_tools
.DEFAULT_GOAL := help
unexport CI_TOOLS
.PHONY: help ci-local test lint typecheck e2e e2e-programs lock roster-lock roster-check image-build \
	image-check clean

##@ Main
ci-local: ## Run the gate's own lane here (ENGINE=docker|podman|venv, ONLY="ids or files")
	@$(CI_TOOLS) ci-local
test: ## Run the tests of jax-gate itself (unit and integration)
	@$(CI_TOOLS) with test -- python -m pytest -q tests/unit tests/integration

##@ Checks
lint: ## Run every linter and mypy --strict
	@$(CI_TOOLS) with lint -- python -m ci_tools.devtools.lint
typecheck: ## Check the types of ci_tools and its tests
	@$(CI_TOOLS) with lint -- python -m mypy --strict ci_tools tests/unit tests/integration tests/e2e
e2e: e2e-programs ## Run the lanes for real: podman, a registry, act (installs Debian packages)
	@$(CI_TOOLS) with e2e -- python -m pytest -q tests/e2e
e2e-programs:
	@bash tests/e2e/provision.sh

##@ Lockfiles, roster, image
lock: ## Compile requirements/*.in to hashed locks (PACKAGE=jax upgrades one, UPGRADE=1 all)
	@$(CI_TOOLS) requirements compile $(PACKAGE:%=--package %) $(UPGRADE:%=--upgrade)
roster-lock: ## Collect the roster and write tests/roster/roster.lock
	@$(CI_TOOLS) roster lock
roster-check: ## Hold the roster lock against the test files
	@$(CI_TOOLS) roster check
image-build: ## Build the image here from the tree's inputs
	@$(CI_TOOLS) image build
image-check: ## Compare tree, image.lock and the image's own label
	@$(CI_TOOLS) image check

##@ Other
clean: ## Remove what jax-gate made below .ci-tools/
	@$(CI_TOOLS) clean
help: ## Print this help
	@awk -F ':.*## ' '/^##@ /{printf "\n%s\n", substr($$0, 5)} \
	/^[a-z0-9-]+:.*## /{printf "  %-14s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))
