# Two commands for users, `make demo` and `make test`; the rest is for those who change the program.
# Each does its own set-up (.ci/setup: a blink when nothing changed). ARGS=... is handed on.

PYTHON_ENV := .venv/bin
CHECKS := "ruff format --check --output-format concise ." "ruff check ." \
          "mypy $(wildcard gateway grafana tests benchmarks)" "lint-imports --no-logo"

.DEFAULT_GOAL := help
# Tests start hundreds of processes; without cached bytecode each would compile the whole program again.
unexport PYTHONDONTWRITEBYTECODE
.PHONY: help setup clients demo test check format cases fuzz fuzz-guided soak chaos rollout bench engine-test engine-smoke

help:           ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## /  make \1\t/p' Makefile | expand -t 22

setup:          ## the environment ./.venv
	@bash .ci/setup

clients: setup  ## other people's client libraries in ./.clients, for tests/clients
	@bash .ci/clients

demo: setup     ## gateway, two simulated engines, real photographs; ARGS=--once ends by itself
	@$(PYTHON_ENV)/vlm-gateway demo $(ARGS)

test: clients   ## all unit and end-to-end tests
	@$(PYTHON_ENV)/python -m pytest --numprocesses auto --dist loadfile $(ARGS)

check: setup    ## format, lint, types, layers
	@status=0; for tool in $(CHECKS); do \
	    echo "$${tool%% *}"; eval "$(PYTHON_ENV)/$$tool" || status=1; \
	done; exit $$status

format: setup   ## rewrite what can be rewritten
	$(PYTHON_ENV)/ruff format .
	$(PYTHON_ENV)/ruff check --fix .

cases: setup    ## the shared cases against a real gateway
	@.ci/cases $(or $(ARGS),tests/cases)

fuzz: setup     ## damaged files of every format through real workers; ARGS="100000 --seed 2"
	@$(PYTHON_ENV)/python -m tests.fuzz $(ARGS)

chaos: setup    ## each part killed, frozen, cut off and starved in turn, in real processes; ARGS="--short --json"
	@$(PYTHON_ENV)/python -m tests.chaos $(ARGS)

fuzz-guided: setup ## ARGS="TARGET --runs 200000": one reader of foreign bytes, with atheris; ARGS=list tells which
	@$(PYTHON_ENV)/python -m pip install -q --group fuzz
	@$(PYTHON_ENV)/python -m tests.fuzz.guided $(ARGS)

soak: setup     ## mixed traffic for half an hour: does anything grow? ARGS="--minutes 3 --json"
	@$(PYTHON_ENV)/python -m tests.soak $(ARGS)

rollout: setup  ## gateways replaced and killed under load behind HAProxy and Envoy; ARGS="--requests 5000"
	@$(PYTHON_ENV)/python -m tests.rollout $(ARGS)

bench: setup    ## ratios against native pipelines and a bare relay; ARGS="image --json"
	@$(PYTHON_ENV)/python -m benchmarks $(ARGS)

engine-test: setup  ## against real vLLM on CPU, in an environment of its own
	@bash tests/engine/run $(ARGS)

engine-smoke: setup ## a part of it that takes a few minutes
	@bash tests/engine/run --smoke $(ARGS)

.PHONY: image-test lock sbom audit

image-test:     ## the container image's steps and what it starts, without Docker; ARGS=--debootstrap
	@bash .ci/image $(ARGS)

lock:           ## docker/lock anew; ARGS=PACKAGE for one alone
	@docker/lock/renew $(ARGS)

sbom:           ## what images are made of, as CycloneDX: dist/sbom.cdx.json
	@docker/supply sbom

audit:          ## known vulnerabilities of it, where the advisories can be reached
	@docker/supply audit
