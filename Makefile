# Two commands do everything on a fresh machine: `make demo` and `make test`. `make help` lists the rest.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv/bin
STAY ?= 1
export PYTHONUNBUFFERED := 1
# Compiled modules are kept: hundreds of processes start, and each would compile everything again.
unexport PYTHONDONTWRITEBYTECODE
export PYTHON

HISTORIES ?= 20000
N ?= 5
.PHONY: help venv demo test test-all test-fast test-repeat test-power durations differential lint format test-plane test-hosts test-controls test-ipv6 test-network test-policy test-kills test-chart bench bench-agent bench-faults bench-deploying soak chaos manifests stubs collection image push lock lock-image clean

help: ## this list
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

venv: ## the virtual environment from the lock file
	@scripts/venv

demo: ## watch the real kube-scheduler obey the health pods; no root needed (STAY=0: play and end)
	$(if $(filter $(STAY),0 1),,$(error STAY=$(STAY) is not known: 0 plays and ends, 1 stays up for you to try))
	@scripts/venv run
	@$(VENV)/python -m tools.demo --stay $(STAY)

test: venv ## the gate: lint, all four rings, at most 15 minutes; sets up this machine (root on Debian or Ubuntu)
	@$(VENV)/python -m tools.run gate

test-all: venv ## the whole proof: every ring and form, for a release and each night (root), hours
	@$(VENV)/python -m tools.run whole

test-fast: venv ## rings 0 and 1 of the gate (no Kubernetes, no root), about five minutes
	@$(VENV)/python -m tools.run fast

test-repeat: venv ## the gate N times, or the tests of WHAT: no failure hides (N=5 WHAT=tests/plane LOAD=1)
	@$(VENV)/python -m tools.proof.repeat --times $(N) $(if $(LOAD),--load) $(WHAT)

test-power: venv ## plant 250 faults in a copy, one at a time, and report which tests catch them; hours, resumes (ARGS="--only policy --rings 0,1")
	@$(VENV)/python -m tools.power $(ARGS)

durations: ## where the time of the last run went: steps, rings, causes, the slowest 40 tests
	@$(VENV)/python -m tools.proof.table

test-plane: venv ## ring 2: the real control plane on loopback (no root)
	@$(VENV)/python -m tools.run plane

test-hosts: venv ## ring 3: kubeadm clusters of three systemd hosts (root)
	@$(VENV)/python -m tools.run hosts

test-controls: venv ## ring 3 with three control planes: real joins and upgrades by kubeadm (root)
	@$(VENV)/python -m tools.run controls

test-ipv6: venv ## ring 3 with a cluster that speaks IPv6 alone (root)
	@$(VENV)/python -m tools.run ipv6

test-network: venv ## ring 3 with five hosts whose pod network is broken in turn (root)
	@$(VENV)/python -m tools.run network

test-policy: venv ## ring 3 with kube-router, which enforces the NetworkPolicies (root)
	@$(VENV)/python -m tools.run policy

test-kills: venv ## ring 3: Ansible killed after each task of the scheduler's change, of one and of three; a host without power (root)
	@$(VENV)/python -m tools.run kills

test-chart: venv ## ring 3: every form of the chart by helm, from install to a cluster without a trace of it (root)
	@$(VENV)/python -m tools.run chart

differential: venv ## the agent beside the kubelet's own packages, on random histories (HISTORIES=n SEED=s)
	@$(VENV)/python -m tools.differential --histories $(HISTORIES) $(if $(SEED),--seed $(SEED))

lint: venv ## ruff, mypy --strict, import contracts, ansible-lint
	@$(VENV)/python -m tools.run lint

format: venv ## let ruff format the code
	@$(VENV)/ruff format . && $(VENV)/ruff check --fix .

bench: venv ## measure and print a table, save build/bench.json
	@$(VENV)/python -m tools.bench

bench-agent: venv ## the same for the agent: memory, processor time, how late it starts probes; build/bench-agent.json
	@$(VENV)/python -m tools.bench.agent

bench-faults: venv ## real faults on the hosts of ring 3: how soon no pod lands there (root); build/bench-faults.json (ARGS="--only cni")
	@$(VENV)/python -m tools.bench.faults $(ARGS)

bench-deploying: venv ## how long the playbooks take on the hosts of ring 3, and kube-scheduler is away (root); build/bench-deploying.json (ARGS="--controls 3")
	@$(VENV)/python -m tools.bench.deploying $(ARGS)

soak: venv ## hours of load in rows: R17, R19, ... of docs/reliability.md (ARGS="--only R19 --minutes 1")
	@$(VENV)/python -m tools.soak $(ARGS)

chaos: venv ## faults in rows: R03, R12, ... of docs/reliability.md (ARGS="--only R12 --minutes 1")
	@$(VENV)/python -m tools.chaos $(ARGS)

manifests: venv ## deploy/, the chart's README and schema, from charts/readygate; docs/checks.md and what checks need, from the checks; which tests hold docs/kubelet-parity.md
	@$(VENV)/python -m tests.charts.manifests
	@$(VENV)/python -m tests.agent.checks.document
	@$(VENV)/python -m tests.playbooks.node_rights
	@$(VENV)/python -m tests.architecture.parity

stubs: venv ## the messages of the container runtime interface, of plugins and of the kubelet's pods, from their api.proto
	@$(VENV)/python -m pip install --quiet --target build/protoc 'grpcio-tools==1.85.1'
	@PYTHONPATH=build/protoc $(VENV)/python -m grpc_tools.protoc -I. --python_out=. --pyi_out=. agent/cri/api.proto agent/plugins/api.proto agent/podsapi/api.proto

collection: venv ## playbooks and roles as an Ansible collection, an archive under build/collection
	@$(VENV)/python -m tests.playbooks.collection

image: venv ## the container image as an archive under build/ (ARCH="amd64 arm64": for these, default: this machine's)
	@$(VENV)/python -m images.build --arch "$(ARCH)"

push: venv ## the image for amd64 and arm64 into a registry: REGISTRY=host/path (TAG=..., default: the version)
	@$(VENV)/python -m images.push --registry "$(REGISTRY)" $(if $(TAG),--tag "$(TAG)") --options="$(PUSH_OPTIONS)"

lock-image: venv ## renew images/debian.lock, the Debian packages of the image, from what the archive has now
	@$(VENV)/python -m images.debian

COMPILE := $(VENV)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header
lock: venv ## renew the lock files from pyproject.toml: of all tools, of the demo's part, of the image and its build
	@$(VENV)/python -m pip install --quiet 'uv>=0.9,<1'
	@$(COMPILE) --extra dev pyproject.toml --output-file requirements.lock
	@$(COMPILE) --extra demo --constraint requirements.lock pyproject.toml --output-file requirements-run.lock
	@$(COMPILE) --extra extender --extra grpc --constraint requirements.lock pyproject.toml --output-file images/requirements.lock
	@$(COMPILE) --group pyproject.toml:wheel --constraint requirements.lock --output-file images/requirements-wheel.lock

clean: ## end what the testbed runs here, remove what was built
	@if [ -x $(VENV)/python ]; then $(VENV)/python -m tools.testbed down; fi
	@rm -rf build dist .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis
