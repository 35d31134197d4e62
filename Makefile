# Two commands do everything on a fresh machine: `make demo` and `make test`. `make help` lists the rest.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv/bin
STAY ?= 1
export PYTHONUNBUFFERED := 1
# Keep bytecode: the tests start hundreds of processes, and without it each would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE
export PYTHON

TAG ?= $(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
HISTORIES ?= 20000
N ?= 5

help: ## print this list
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

venv: ## make the virtual environment from the lock file
	@scripts/venv

demo: ## show how the real kube-scheduler follows the health pods; no root needed (STAY=0: exit at the end)
	$(if $(filter $(STAY),0 1),,$(error STAY=$(STAY) is not known: 0 exits at the end, 1 stays up for you to try))
	@scripts/venv run
	@$(VENV)/python -m tools.demo --stay $(STAY)

test: venv ## run the gate: lint and all four rings, at most 15 minutes; installs what it needs (root on Debian or Ubuntu)
	@$(VENV)/python -m tools.run gate

test-all: venv ## run every test in every form, for a release and each night (root); takes hours
	@$(VENV)/python -m tools.run whole

test-fast: venv ## run rings 0 and 1 of the gate (no Kubernetes, no root), about five minutes
	@$(VENV)/python -m tools.run fast

test-repeat: venv ## run the gate, or the tests in WHAT, N times to find flaky tests (N=5 WHAT=tests/plane LOAD=1)
	@$(VENV)/python -m tools.proof.repeat --times $(N) $(if $(LOAD),--load) $(WHAT)

test-power: venv ## mutation tests: plant 250 faults in a copy, one at a time, and report which tests catch them; takes hours, resumes (ARGS="--only policy --rings 0,1")
	@$(VENV)/python -m tools.power $(ARGS)

durations: ## show the time of the last run: steps, rings, causes, the slowest 40 tests
	@$(VENV)/python -m tools.proof.table

test-plane: venv ## run ring 2: the real control plane on loopback (no root)
	@$(VENV)/python -m tools.run plane

test-hosts: venv ## run ring 3: kubeadm clusters of three systemd hosts (root)
	@$(VENV)/python -m tools.run hosts

test-controls: venv ## run ring 3 with three control planes: real joins and upgrades by kubeadm (root)
	@$(VENV)/python -m tools.run controls

test-ipv6: venv ## run ring 3 with an IPv6-only cluster (root)
	@$(VENV)/python -m tools.run ipv6

test-network: venv ## run ring 3 with five hosts, breaking their pod network (root)
	@$(VENV)/python -m tools.run network

test-policy: venv ## run ring 3 with kube-router, which enforces the NetworkPolicies (root)
	@$(VENV)/python -m tools.run policy

test-kills: venv ## run ring 3 with Ansible killed after each task that changes one or three schedulers, and with a power loss (root)
	@$(VENV)/python -m tools.run kills

test-chart: venv ## run ring 3 with helm: every form of the chart, from install to a complete uninstall (root)
	@$(VENV)/python -m tools.run chart

differential: venv ## compare the agent with the kubelet's own packages on random histories (HISTORIES=n SEED=s)
	@$(VENV)/python -m tools.differential --histories $(HISTORIES) $(if $(SEED),--seed $(SEED))

lint: venv ## run ruff, mypy --strict, import contracts, ansible-lint
	@$(VENV)/python -m tools.run lint

format: venv ## format the code with ruff
	@$(VENV)/ruff format . && $(VENV)/ruff check --fix .

bench: venv ## measure the extender, print a table, write build/bench.json
	@$(VENV)/python -m tools.bench

bench-agent: venv ## measure the agent: memory, processor time, delay of probes; writes build/bench-agent.json
	@$(VENV)/python -m tools.bench.agent

bench-faults: venv ## measure the time from a real fault on a host of ring 3 until no pod lands there (root); writes build/bench-faults.json (ARGS="--only cni")
	@$(VENV)/python -m tools.bench.faults $(ARGS)

bench-deploying: venv ## measure the playbooks on the hosts of ring 3 and the downtime of kube-scheduler (root); writes build/bench-deploying.json (ARGS="--controls 3")
	@$(VENV)/python -m tools.bench.deploying $(ARGS)

bench-pods: venv ## measure one node with 1 to 200 pods, the agent and the real kubelet of ring 3 (root); writes build/bench-pods.json (ARGS="--sizes 1,10")
	@$(VENV)/python -m tools.bench.pods $(ARGS)

fleet: venv ## run 500 virtual nodes in mode kubelet and 4,500 with Lease and status only for ten minutes; writes build/fleet.json (ARGS="--full 20 --light 100 --minutes 0.5")
	@$(VENV)/python -m tools.fleet $(ARGS)

soak: venv ## run the load rows of docs/reliability.md (R17, R19, ...) for hours (ARGS="--only R19 --minutes 1")
	@$(VENV)/python -m tools.soak $(ARGS)

chaos: venv ## run the fault rows of docs/reliability.md (R03, R12, ...) (ARGS="--only R12 --minutes 1")
	@$(VENV)/python -m tools.chaos $(ARGS)

manifests: venv ## generate deploy/, the chart's README and schema, docs/checks.md, the rights of checks, and the tests named in docs/kubelet-parity.md
	@$(VENV)/python -m tests.charts.manifests
	@$(VENV)/python -m tests.agent.checks.document
	@$(VENV)/python -m tests.playbooks.node_rights
	@$(VENV)/python -m tests.architecture.parity

stubs: venv ## generate the messages of CRI, device plugins and the kubelet's PodsAPI from their api.proto
	@$(VENV)/python -m pip install --quiet --target build/protoc 'grpcio-tools==1.85.1'
	@PYTHONPATH=build/protoc $(VENV)/python -m grpc_tools.protoc -I. --python_out=. --pyi_out=. agent/cri/api.proto agent/kubelet/plugins/api.proto agent/podsapi/api.proto

collection: venv ## pack playbooks and roles as an Ansible collection under build/collection
	@$(VENV)/python -m tests.playbooks.collection

image: venv ## build the container image as an archive under build/ (ARCH="amd64 arm64", default: this machine's)
	@$(VENV)/python -m images.build --arch "$(ARCH)"

push: venv ## build the image for amd64 and arm64 and push both: REGISTRY=host/path (TAG=..., default: the version)
	$(if $(REGISTRY),,$(error REGISTRY is not set: make push REGISTRY=HOST/PATH, where you may write (skopeo login HOST)))
	@mkdir -p build && $(VENV)/python -m images.build --index build/readygate-index.tar
	@skopeo copy --quiet --all --preserve-digests --digestfile=build/digest $(PUSH_OPTIONS) oci-archive:build/readygate-index.tar docker://$(REGISTRY)/readygate:$(TAG)
	@echo "push: for your inventory: readygate_image: $(REGISTRY)/readygate:$(TAG)@$$(cat build/digest)"

lock-image: venv ## renew images/debian.lock from the newest packages of Debian's archive
	@$(VENV)/python -m images.debian

COMPILE := $(VENV)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header
lock: venv ## renew the lock files of Python packages from pyproject.toml
	@$(VENV)/python -m pip install --quiet 'uv>=0.9,<1'
	@$(COMPILE) --extra dev pyproject.toml --output-file requirements.lock
	@$(COMPILE) --extra demo --constraint requirements.lock pyproject.toml --output-file requirements-run.lock
	@$(COMPILE) --extra extender --extra grpc --constraint requirements.lock pyproject.toml --output-file images/requirements.lock
	@$(COMPILE) --group pyproject.toml:wheel --constraint requirements.lock --output-file images/requirements-wheel.lock

clean: ## stop the testbed, remove what was built
	@if [ -x $(VENV)/python ]; then $(VENV)/python -m tools.testbed down; fi
	@rm -rf build dist .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis
