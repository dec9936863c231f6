# The commands of this repository; `make` alone lists them.
export PATH := $(HOME)/.cargo/bin:$(PATH)

.PHONY: help setup build demo test accuracy bench-sim interop

help:
	@echo "make demo      build, then measure a path whose truth is known, with real packets"
	@echo "make test      format, lints, docs, all tests, conformance, lab tests"
	@echo "make accuracy  errors of the methods over many runs (ARGS=... are passed on)"
	@echo "make bench-sim what a simulated second costs, beside ns-2 and ns-3 where installed (ARGS=... are passed on)"
	@echo "make interop   against other people's STAMP programs (needs the package registries)"
	@echo "make build     target/release/lastmile"
	@echo "make setup     what the others need; they call it themselves"

setup:
	@scripts/setup.sh

build: setup
	cargo build --release --locked

demo: build
	target/release/lastmile demo

test: setup
	@scripts/test.sh

accuracy: build
	target/release/lastmile accuracy $(ARGS)

bench-sim: build
	target/release/lastmile bench-sim $(ARGS)

interop: setup
	interop/run.sh
