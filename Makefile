# `make help` lists the targets. Lint, test and demo share the dev profile, so that a fresh clone builds once.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
CARGO ?= cargo

export LASTCALL_SIM_SEEDS ?= 2000
TARGET := $(abspath $(or $(CARGO_TARGET_DIR),target))
# What the demo builds: the command alone; CI sets what the tests have built already.
DEMO_SCOPE ?= -p lastcall-cli

.PHONY: help demo test prove lint bench bench-ledger bench-kafka bench-mirror score fuzz fmt clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' Makefile

demo: ## three tools over fourteen simulated days, verdicts and a report in target/demo
	@start=$$SECONDS; $(CARGO) build $(DEMO_SCOPE); echo "built in $$((SECONDS - start)) s"
	"$(TARGET)/debug/lastcall" demo --out target/demo

test: ## every test; LASTCALL_SIM_SEEDS simulated crashes
	@start=$$SECONDS; log=$$(mktemp); trap 'rm -f "$$log"' EXIT; \
	$(CARGO) build --workspace --all-targets; \
	LASTCALL_BIN="$(TARGET)/debug/lastcall" $(CARGO) test --workspace --no-fail-fast 2>&1 | tee "$$log"; \
	awk -v s=$$((SECONDS - start)) '/^test result:/ {p += $$4; f += $$6; i += $$8} \
	  END {printf "tests: %d passed, %d failed, %d ignored in %d s (LASTCALL_SIM_SEEDS=%s)\n", p, f, i, s, ENVIRON["LASTCALL_SIM_SEEDS"]}' "$$log"

prove: ## the same in release with 100,000 simulated crashes, 200 in a folder, 20 over a bucket; both builds say the same
	$(CARGO) build --workspace --all-targets --release
	$(CARGO) build -p lastcall-cli
	LASTCALL_BIN_DEBUG="$(TARGET)/debug/lastcall" LASTCALL_BIN_RELEASE="$(TARGET)/release/lastcall" \
	LASTCALL_BIN="$(TARGET)/release/lastcall" LASTCALL_SIM_SEEDS=100000 LASTCALL_DISK_SEEDS=200 LASTCALL_S3_SEEDS=20 \
	  LASTCALL_PROVE=1 \
	  $(CARGO) test --workspace --release -- --nocapture

lint: ## format, clippy, one arrow, no dangerous features, licences
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	.ci/guards

bench: ## the pipeline beside its peers; figures in target/figures
	$(CARGO) build --release -p lastcall-cli -p lastcall-benches
	$(CARGO) run --release -p lastcall-benches --bin bench

bench-ledger: ## what reading a ledger costs as it grows; figures in target/figures/ledger.json
	$(CARGO) build --release -p lastcall-benches --bin ledger
	"$(TARGET)/release/ledger"

bench-kafka: ## lastcall-record on a real broker beside its peers; figures in target/figures/kafka.json
	$(CARGO) build --release -p lastcall-cli -p lastcall-services -p lastcall-benches
	"$(TARGET)/release/kafka"

bench-mirror: ## lastcall-mirror before an HTTP candidate beside a plain load generator; figures in target/figures/mirror.json
	$(CARGO) build --release -p lastcall-cli -p lastcall-services -p lastcall-benches --bin lastcall --bin lastcall-mirror --bin mirror
	"$(TARGET)/release/mirror"

score: ## what the diff reaches on real and constructed pairs; figures in target/figures/diff.json
	$(CARGO) build --release -p lastcall-benches --bin score
	"$(TARGET)/release/score"

fuzz: ## containment of random pairs against another validator for LASTCALL_FUZZ_SECONDS (600)
	$(CARGO) build --release -p lastcall-benches --bin fuzz
	"$(TARGET)/release/fuzz"

fmt: ## format the sources
	$(CARGO) fmt --all

clean: ## remove target/
	$(CARGO) clean
