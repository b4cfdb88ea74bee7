# SPDX-License-Identifier: Apache-2.0
# The front door.  Meson and Ninja do the work; `make help` lists the doors.

BUILD        ?= build
PREFIX       ?= /usr/local
SERVICE      ?= false
FUZZ_SECONDS ?= 60
DRILL_RUNS   ?= 10000
DRILL_KILLS  ?= 1000
SOAK         ?= 100000
DRILL_JOBS   ?= 10000
# Where an installed brig looks for esbuild.
TOOLS         = $(DESTDIR)$(PREFIX)/lib/brig
MESON        := meson
NINJA        := ninja

.DEFAULT_GOAL := all
.PHONY: all demo console python js deb image test test-deb test-docker test-podman test-kubernetes test-v2 test-session-attacks drill-warm drill-kills drill-serve drill-queue demo-cluster soak bench lint format asan fuzz docs install uninstall clean help

all: ## build/brig (the default)
	@tools/bootstrap --check build
	@tools/build $(BUILD)

demo: ## install what is missing, build, run a few programs in cells
	@tools/bootstrap build demo
	@tools/build $(BUILD)
	@tools/demo $(BUILD)/brig

console: ## build/brig with the console of `brig serve` in it
	@tools/bootstrap build web
	@tools/build $(BUILD)

python: ## build/python: the Python package as a wheel with brig in it, and as a source archive
	@tools/bootstrap build python
	@tools/build $(BUILD)
	@tools/build-python $(BUILD)

js: ## the JavaScript package: build/js/brig-VERSION.tgz
	@tools/bootstrap js
	@clients/js/pack $(BUILD)

test: ## install what is missing, build, run every test suite
	@tools/bootstrap build demo runtimes test engines python web console queue
	@tools/build $(BUILD)
	@tests/run --build $(BUILD)

test-session-attacks: ## every attack from inside sessions, another session beside each
	@tools/bootstrap build demo runtimes test
	@tools/build $(BUILD)
	@BRIG=$(BUILD)/brig BRIG_ATTACKS_IN=session tests/attacks/run.py --jobs 2
	@BRIG=$(BUILD)/brig BRIG_ATTACKS_IN=context tests/attacks/run.py --jobs 2

test-deb: ## the Debian packages: built, looked at by lintian, installed, upgraded and purged in a copy of this system, served under systemd in an emulated machine
	@tools/bootstrap build demo web test deb
	@tools/build $(BUILD)
	@tests/deb/run $(BUILD)

test-docker: ## everything that a container could change, with Docker
	@tools/bootstrap build demo runtimes test engines
	@tools/build $(BUILD)
	@tests/docker/run docker --all

test-podman: ## the scenarios of containers with Podman instead of Docker
	@tools/bootstrap build demo runtimes test engines podman
	@tools/build $(BUILD)
	@tests/docker/run podman

test-kubernetes: ## pods as cells and deploy/kubernetes on a real cluster, whose programs are built from source once (15 to 25 minutes)
	@tools/bootstrap build demo test engines kubernetes
	@tools/build $(BUILD)
	@BRIG=$(BUILD)/brig tests/kubernetes/real.py --build

test-v2: ## the scenario and attack suites on a pure cgroup v2 kernel (needs qemu)
	@tools/bootstrap build demo runtimes test
	@tools/build $(BUILD)
	@tests/v2/run

drill-warm: ## DRILL_RUNS (10000) runs in warm cells of one handle: nothing grows
	@tools/bootstrap build demo
	@tools/build $(BUILD)
	@$(BUILD)/tests/leak/warm $(DRILL_RUNS) 20

drill-kills: ## DRILL_KILLS (1000) kill -9 on everything that serves warm cells: nothing is left, no result lies
	@tools/bootstrap build demo
	@tools/build $(BUILD)
	@BRIG_TEST_KILLS=$(DRILL_KILLS) tests/warm/kills.py

drill-serve: ## DRILL_KILLS (1000) kill -9 on the processes of the service: nothing accepted is lost track of
	@tools/bootstrap build demo
	@tools/build $(BUILD)
	@BRIG_TEST_KILLS=$(DRILL_KILLS) BRIG=$(BUILD)/brig tests/serve/run.py --case drill.kill_at_random

drill-queue: ## DRILL_JOBS (10000) jobs on three brokers and three workers, kill -9 and cut links at random: each has one result or is lost by id
	@tools/bootstrap build demo queue
	@tools/build $(BUILD)
	@BRIG_TEST_QUEUE_JOBS=$(DRILL_JOBS) BRIG=$(BUILD)/brig tests/queue/run.py --case drill.at_random

demo-cluster: ## three brokers, three workers, a batch with a live table; one node is killed in the middle, and nothing is lost
	@tools/bootstrap build demo queue
	@tools/build $(BUILD)
	@BRIG=$(BUILD)/brig tools/demo-cluster

soak: ## SOAK (100000) programs through one server: no error, and nothing grows
	@tools/bootstrap build demo
	@tools/build $(BUILD)
	@BRIG_TEST_SOAK=$(SOAK) BRIG=$(BUILD)/brig tests/serve/run.py --case drill.soak

bench: ## measure; compare with bubblewrap, crun, runc and docker where present
	@tools/bootstrap build demo bench
	@tools/build $(BUILD)
	@bench/run

lint: ## clang-format, cppcheck, clang-tidy, layers, function lengths
	@tools/bootstrap build lint
	@tools/build $(BUILD)
	@tools/lint $(BUILD)

format: ## let clang-format rewrite the C files
	@tools/bootstrap lint
	@tools/lint --fix

asan: ## unit tests and scenarios with AddressSanitizer and UBSan
	@tools/bootstrap build demo runtimes test
	@tools/build build-asan
	@tests/run --build $(BUILD) --only sanitizers

fuzz: ## each fuzzer for FUZZ_SECONDS (60) seconds
	@tools/bootstrap build test
	@tests/fuzz/run $(FUZZ_SECONDS)

docs: ## refresh the parts of docs/ that are generated from the tables
	@tools/gen-docs
	@tools/gen-openapi

deb: ## build/deb/*.deb: the Debian packages brig, libbrig0 and libbrig-dev
	@tools/bootstrap build deb
	@tools/build-deb $(BUILD)/deb

image: ## brig:VERSION, a container image of brig, made of this host's packages
	@tools/bootstrap build demo
	@tools/build $(BUILD)
	@tools/build-image --build $(BUILD)

install: all ## install below DESTDIR and PREFIX (/usr/local); SERVICE=true: with units of systemd
	@$(MESON) configure $(BUILD) -Dprefix=$(PREFIX) -Dservice=$(SERVICE) -Dsystemdsystemunitdir=$(PREFIX)/lib/systemd/system
	@$(NINJA) -C $(BUILD) >/dev/null
	DESTDIR=$(DESTDIR) $(MESON) install -C $(BUILD) --no-rebuild
	@if [ -d node_modules/@esbuild ]; then mkdir -p $(TOOLS)/node_modules && cp -r node_modules/@esbuild $(TOOLS)/node_modules/; fi

uninstall: ## remove what the last `make install` of this build installed
	@rm -rf $(TOOLS)/node_modules; rmdir $(TOOLS) 2>/dev/null || true
	@while read -r path; do \
		if [ -d "$$path" ] && [ ! -L "$$path" ]; then rmdir "$$path" 2>/dev/null || true; \
		else case $$path in '#'*) ;; *) rm -fv "$$path" ;; esac; fi; \
	done <$(BUILD)/meson-logs/install-log.txt

clean: ## remove the build folders
	rm -rf $(BUILD) build-asan build-fault build-fuzz

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' Makefile
