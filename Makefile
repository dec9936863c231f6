# The commands of this repository; `make` alone lists them.
export PATH := $(HOME)/.cargo/bin:$(PATH)
# The commands below look for programs here, wherever the user's other builds go.
export CARGO_TARGET_DIR := $(CURDIR)/target

.PHONY: help setup build demo test accuracy paths league adapters rivals reproduce field field-linux twins bench-sim bench-ns ns2 interop cost \
	deb static installed shots strings

help:
	@echo "make demo      build, then measure paths of known truth and send video over a cell of Wi-Fi, with real packets (90 seconds; target/demo.html)"
	@echo "make test      format, lints, docs, all tests, conformance, lab tests"
	@echo "make accuracy  errors of the methods over many runs (ARGS=... are passed on)"
	@echo "make paths     wrong numbers on random paths, with and without a warning (ARGS=... are passed on; ten minutes)"
	@echo "make league    rate controllers and rivals over nine suites of paths: target/league.html (ARGS=... are passed on; half an hour)"
	@echo "make rivals    real video beside a browser's GoogCC and SCReAM v2 over nine paths of the lab: target/rivals/table.md (as root, Debian; resumable; ARGS=... are passed on; two and a half hours or more)"
	@echo "make adapters  tests of the adapters of the league's rivals (SCREAM_DIR=CHECKOUT for SCReAM's)"
	@echo "make reproduce the papers' tables, figures and claims again: target/reproduce-*.html (a quarter of an hour)"
	@echo "make field     measurements on paths of real kernels with known trouble (writes docs/validation.md; 15 minutes, as root)"
	@echo "make field-linux  the same behind Linux's own queues, fair ones too, in a guest (three quarters of an hour, as root, Debian)"
	@echo "make cost      the cost of an answer with lastmile and with iperf3, over a path of known truth (two minutes)"
	@echo "make twins     rate controllers in the lab against their twins in the simulator (an hour)"
	@echo "make ns2       TFRC beside ns-2 on the same paths, where ns-2 is installed (writes docs/validation.md; half an hour)"
	@echo "make bench-sim the cost of a simulated second, beside ns-2 and ns-3 where installed (ARGS=... are passed on)"
	@echo "make interop   against other people's STAMP, RTCP and iperf3, and as a guest of webrtc-rs (needs the package registries)"
	@echo "make strings   target/strings.txt: every help text and message, to read through"
	@echo "make build     target/release/lastmile"
	@echo "make shots     pictures of six pages at three widths and in print: target/shots (needs chromium and pdftoppm)"
	@echo "make deb       target/deb/lastmile.deb, with manual pages and completions (Debian; installs cargo-deb)"
	@echo "make static    target/static/lastmile, a program that needs no library"
	@echo "make installed both, and cargo install, tried on bare root file systems (as root, on Debian with debootstrap)"
	@echo "make setup     needs of the others (Rust and a C compiler, checked or installed); they call it themselves"
	@echo "make bench-ns  ns-2 and ns-3 for bench-sim and ns2: apt-get install ns2 libns3-dev libgsl-dev g++ pkg-config"

# Checks that Rust is new enough and there is a C compiler (installed by apt-get where it is missing), rustfmt and clippy.
setup:
	@scripts/setup.sh

build: setup
	cargo build --release --locked

# With a profile of their own, which takes minutes to build: docs/installing.md.
deb: setup
	scripts/deb.sh

static: setup
	scripts/static.sh

installed: deb static
	scripts/installed.sh

shots: build
	scripts/shots.sh

# With real video, which is no part of the default build.
demo: setup
	cargo build --release --locked -p lastmile-cli --features video
	target/release/lastmile demo --html target/demo.html

test: setup
	@scripts/test.sh

# Without ARGS: what the README claims. Leave the machine alone meanwhile; it takes about ten minutes.
accuracy: build
ifdef ARGS
	target/release/lastmile accuracy $(ARGS)
else
	target/release/lastmile accuracy --runs 1000 --trains 1,4
	target/release/lastmile accuracy --runs 300 --method capprobe --rate 10M,30M,100M,300M,1000M --cross idle,poisson
	target/release/lastmile accuracy -v --method dispersion,spruce,igi,ptr,topp,diettopp
	target/release/lastmile accuracy --runs 20 --scenario n,n-down,n-up,n-both --method wbest,capprobe
	target/release/lastmile accuracy --world lab --realtime --runs 30 --trains 1,4
	target/release/lastmile accuracy --world lab --realtime --runs 30 --rate 30M
	target/release/lastmile accuracy --world lab --realtime --runs 15 --method capprobe --rate 10M,30M,100M,300M,1000M --cross idle,poisson
endif

# A page, a table and the document, with the rivals that can be built here; ARGS="--brief" is a look.
league: setup
	@scripts/league.sh $(ARGS)

# Needs the package registries once. Leave the machine alone meanwhile; what has been measured is kept.
rivals: setup
	rivals/run.sh $(ARGS)

# Tests of rivals' adapters, SCReAM's where SCREAM_DIR names a checkout.
adapters: setup
	cargo test --locked -p lastmile-peers --features googcc,noq

# Without ARGS: the tables of docs/validation.md. Eight minutes on two cores that are left alone (980 s of CPU time).
paths: build
ifdef ARGS
	target/release/lastmile paths $(ARGS)
else
	target/release/lastmile paths
	target/release/lastmile paths --runs 0 --cells 300
	target/release/lastmile paths --runs 200 --method dispersion,spruce,igi,ptr,topp,diettopp
	target/release/lastmile paths --runs 200 --method pathload,pathchirp
	target/release/lastmile paths --runs 200 --marking --method ecnprobe
endif

# Leave the machine alone meanwhile.
reproduce: build
	target/release/lastmile reproduce ecnprobe --report target/reproduce-ecnprobe.html $(ARGS)
	target/release/lastmile reproduce lda --report target/reproduce-lda.html $(ARGS)
	target/release/lastmile reproduce tfrc-probe --report target/reproduce-tfrc-probe.html $(ARGS)
	target/release/lastmile reproduce vtp --report target/reproduce-vtp.html $(ARGS)
	target/release/lastmile reproduce wbest --report target/reproduce-wbest.html $(ARGS)

# Leaves nothing behind, whatever ends it: hosts are namespaces of its own threads, programs die with them.
# A kernel without a policer borrows that of a guest.
field: build
	@scripts/guest.sh >/dev/null || true
	LASTMILE_PROGRAM=$(CURDIR)/target/release/lastmile cargo test --locked -p lastmile-cli --test field --test lab -- \
		--ignored --nocapture --test-threads=1 field_

# Leaves nothing behind either: the guest is a program too.
field-linux:
	@if why=$$(scripts/guest.sh); then \
		$(MAKE) --no-print-directory build && \
		LASTMILE_PROGRAM=$(CURDIR)/target/release/lastmile cargo test --locked -p lastmile-cli --test field -- \
			--ignored --nocapture --test-threads=1 linux_; \
	else echo "field-linux: skipped: $$why"; fi

# Leave the machine alone meanwhile.
twins: setup
	cargo test --locked -p lastmile-cli --test lab -- --ignored --nocapture --test-threads=1 twins_

cost: setup
	cargo test --locked -p lastmile-cli --test lab -- --ignored --nocapture --test-threads=1 cost_

bench-sim: build
	target/release/lastmile bench-sim $(ARGS)

# As root: the simulators that bench-sim compares with, on Debian. It does without them where they are missing.
bench-ns:
	apt-get install -y ns2 libns3-dev libgsl-dev g++ pkg-config

# Debian: apt-get install ns2. It is called as a program; without it nothing is done.
ns2: setup
	cargo test --release --locked -p lastmile-sim --test ns2 -- --ignored --nocapture --test-threads=1

interop: setup
	interop/run.sh

# For reviews of wording.
strings: setup
	cargo build --locked -p lastmile-cli
	scripts/strings.sh target/debug/lastmile > target/strings.txt
	@wc target/strings.txt
