# `make help` lists the targets: the text behind ## on each one's line.
#
# make SAN=address,undefined check     make CC=clang     make WERROR=1     make V=1     make DEPS=skip check
# make LTO=1: compiled as one: a seventh fewer instructions a request, and half a minute to link (docs/decisions/035).
# `make deb` and `make bench` do so. make LTO=1 smoke: the smoke tests on that build alone.
# Each variant (LTO, SAN, COVER, INJECT, NEXT, MUTANTS, CC) builds into a folder of its own, so none spoils another.
# A new .c file needs no edit here.

CC     = gcc
OBJCOPY = objcopy
CFLAGS = $(if $(SAN),-O1,-O2) -g
PREFIX = /usr/local
LIBDIR = $(PREFIX)/lib
UNITDIR = $(PREFIX)/lib/systemd/system
SEEDS  =

VERSION := $(shell cat VERSION)

# nng and other libraries are not instrumented: SAN=thread must not judge them.
export TSAN_OPTIONS = suppressions=$(CURDIR)/tests/tsan.supp

# Tests leave nothing in the tree: no __pycache__ beside the Python ones.
export PYTHONDONTWRITEBYTECODE = 1

# One short line a step; V=1 shows the commands.
Q   := $(if $(V),,@)
say  = $(if $(V),@:,@printf '  %-4s %s\n' $(1) $@)

comma := ,
# What gcc else does with a struct of 65 bytes to 8 KiB, `rep stos`, takes an x86 longer to begin than to do.
moves := vector_loop:512:noalign$(comma)libcall:-1:noalign
plain-moves = $(if $(findstring clang,$(CC)),,$(if $(x86),-mmemset-strategy=$(moves) -mmemcpy-strategy=$(moves)))

# What makes a mistake of ours harder to use: canaries, checked copies (which want an optimizer), guard pages that no frame steps
# over, branches that land where they may; and tables that are bound and read-only before anything runs. A sanitizer sees more of
# what the checked copies do. HARDEN= leaves it all out.
x86 := $(findstring x86_64,$(shell $(CC) -dumpmachine))
HARDEN := $(if $(SAN),,1)
harden := $(if $(HARDEN),-fstack-protector-strong -fstack-clash-protection $(if $(x86),-fcf-protection) \
          $(if $(filter -O1 -O2 -O3 -Os,$(CFLAGS)),-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3))
linking = $(if $(HARDEN),-Wl$(comma)-z$(comma)relro$(comma)-z$(comma)now) $(LDFLAGS)
program = $(if $(HARDEN),-pie) $(linking)

warnings := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wcast-qual \
            -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition -Wundef -Wvla \
            -Wdouble-promotion -Wformat=2 -Wswitch-enum -Wwrite-strings \
            $(if $(findstring clang,$(CC)),-Wno-cast-qual) # in protobuf-c's macros; gcc knows whose they are
defines  := -D_POSIX_C_SOURCE=200809L -DRINGHOLD_VERSION='"$(VERSION)$(if $(NEXT),+next)"' $(if $(INJECT),-DRINGHOLD_INJECT=1) $(if $(NEXT),-DRINGHOLD_NEXT=1) $(if $(MUTANTS),-DRINGHOLD_MUTANTS=1)
cflags   := -std=c11 $(defines) -iquote . -isystem build/proto -Iinclude -MD -MP -fPIC -fvisibility=hidden -fno-omit-frame-pointer \
            $(warnings) $(if $(WERROR),-Werror) $(if $(COVER),--coverage) \
            $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all) $(if $(LTO),-flto=auto $(plain-moves)) $(CFLAGS) $(harden)
# With LTO=1 an object is no code yet: gcc makes some of it where ld alone would.
partly   := $(if $(LTO),$(CC) $(CFLAGS) $(harden) $(plain-moves) -fPIC -flto=auto -flinker-output=nolto-rel -nostdlib -r,$(LD) -r)
archive  := $(if $(LTO),gcc-ar,$(AR))
libs     := -lmicrohttpd -lwslay -lssl -lcrypto -lraft -luv -lsqlite3 -lnng -lprotobuf-c -linih -llua5.4 -lpthread -ldl -lm

empty :=
out   := $(subst $(comma),-,build/$(CC)$(if $(SAN),-$(SAN))$(if $(COVER),-cover)$(if $(INJECT),-inject)$(if $(NEXT),-next)$(if $(MUTANTS),-mutants)$(if $(LTO),-lto))

protos  := $(wildcard wire/*.proto)
pb      := $(protos:%.proto=build/proto/%.pb-c.c)
folders := base wire link ring txn storage raft stream route node gateway coordinator daemon client lua hosted sim cli conform load demo console trial
sources := $(filter-out %/main.c %_sim.c sim/history/check.c,$(shell find $(folders) -name '*.c' | sort))
objects := $(sources:%.c=$(out)/%.o) $(protos:%.proto=$(out)/%.pb-c.o)
tests   := $(patsubst %.c,$(out)/%,$(shell find tests examples -name '*_test.c' | sort))
sims    := $(patsubst %.c,$(out)/%,$(wildcard sim/*_sim.c))
benches := $(patsubst %.c,$(out)/%,$(wildcard bench/*_bench.c bench/*_uv.c))
games   := examples/embedded.c examples/matchmaker.c # servers of their own
players := examples/player.c   # clients
trials  := $(wildcard examples/*_test.c) # of actors, without a fleet
plugins := $(patsubst %.c,$(out)/%.so,$(filter-out $(games) $(players) $(trials),$(wildcard examples/*.c examples/purse/*.c tests/plugins/*.c)))
embedded := $(games:%.c=$(out)/%)
playing := $(players:%.c=$(out)/%)
binary  := $(out)/ringhold
checker := $(out)/ringhold-history
# Programs of their own, that `ringhold conform|bench|bot|demo|cli|test` finds beside itself or in libexec/ringhold; and the demo's actor.
beside  := $(addprefix $(out)/,ringhold-conform ringhold-load ringhold-demo ringhold-console ringhold-trial ledger.so)
# Actors that `--actor store_redis=…` finds where they are installed.
stores  := $(addprefix $(out)/examples/,store_postgres.so store_redis.so)
library := $(out)/libringhold.a
shared  := $(out)/libringhold.so.0
pkg     := $(out)/ringhold.pc
kit     := $(addprefix $(out)/,libringhold-test.a ringhold-test.pc)
client  := $(addprefix $(out)/,libringhold-client.a libringhold-client.so.0 ringhold-client.pc)
manual  := $(patsubst docs/man/%.scd,$(out)/man/%,$(wildcard docs/man/*.scd))
ship    := $(binary) $(beside) $(stores) $(checker) $(library) $(shared) $(pkg) $(kit) $(client) $(if $(shell command -v scdoc),$(manual),skip/manual)

all: $(ship) $(plugins) $(embedded) $(playing) $(tests) $(sims) ## build ringhold, its libraries, plugins, tests

skip/manual:
	@echo '  SKIP manual pages: they need scdoc (apt-get install scdoc)'

$(pb:%.c=%.h): %.h: %.c
build/proto/%.pb-c.c: %.proto
	@mkdir -p build/proto
	$(call say,PB)
	$(Q)protoc-c --c_out=build/proto $<

# Comes with it: what includes it is built anew in the same run.
build/proto/%.pb-c.h: build/proto/%.pb-c.c ;

$(out)/wire/%.pb-c.o: build/proto/wire/%.pb-c.c Makefile | $(pb)
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(cflags) -w -c $< -o $@

$(out)/%.o: %.c Makefile VERSION | $(pb)
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(cflags) -c $< -o $@

$(out)/all.a: $(objects)
	@rm -f $@
	$(call say,AR)
	$(Q)$(archive) rcs $@ $^

# What a game server links to host actors: what its API needs of all this, and no other name is seen,
# so that a list_remove() of the game is no clash.
api      := $(shell sed -n 's/^RH_API .*[ *]\(rh_[a-z_]*\)(.*)*/\1/p' include/ringhold.h)
lib_libs := -lssl -lcrypto -luv -lsqlite3 -lnng -lprotobuf-c -lpthread -ldl -lm
$(out)/libringhold.o: $(out)/all.a include/ringhold.h
	$(call say,LD)
	$(Q)$(partly) $(api:%=-u %) $< -o $@
	$(Q)$(OBJCOPY) --localize-hidden $@

$(library): $(out)/libringhold.o
	@rm -f $@
	$(call say,AR)
	$(Q)$(archive) rcs $@ $^

# A name of the map that is in no object is an error.
exports := packaging/libringhold.map
$(shared): $(out)/libringhold.o $(exports)
	$(call say,LD)
	$(Q)$(CC) $(cflags) -shared -Wl,-soname,libringhold.so.0 -Wl,--version-script=$(exports) -Wl,--no-undefined-version $(if $(SAN),,-Wl$(comma)--no-undefined) $(linking) $< $(lib_libs) -o $@

# What a test of actors links instead: the same, and its world (include/ringhold_test.h).
kit_api := $(shell sed -n 's/^RH_API .*[ *]\(rh_test_[a-z_]*\)(.*)*/\1/p' include/ringhold_test.h)
$(out)/libringhold-test.o: $(out)/all.a include/ringhold.h include/ringhold_test.h
	$(call say,LD)
	$(Q)$(partly) $(api:%=-u %) $(kit_api:%=-u %) $< -o $@
	$(Q)$(OBJCOPY) --localize-hidden $@

$(out)/libringhold-test.a: $(out)/libringhold-test.o
	@rm -f $@
	$(call say,AR)
	$(Q)$(archive) rcs $@ $^

$(trials:%.c=$(out)/%): $(out)/%_test: $(out)/%_test.o $(out)/%.o $(out)/libringhold-test.a
	$(call say,LD)
	$(Q)$(CC) $(cflags) $(program) $^ $(lib_libs) -o $@

# What a game's client links: the C library is all it needs.
client_objects := $(patsubst %.c,$(out)/%.o,$(wildcard client/*.c))
$(out)/libringhold-client.o: $(client_objects)
	$(call say,LD)
	$(Q)$(partly) $^ -o $@
	$(Q)$(OBJCOPY) --localize-hidden $@

$(out)/libringhold-client.a: $(out)/libringhold-client.o
	@rm -f $@
	$(call say,AR)
	$(Q)$(archive) rcs $@ $^

$(out)/libringhold-client.so.0: $(out)/libringhold-client.o
	$(call say,LD)
	$(Q)$(CC) $(cflags) -shared -Wl,-soname,libringhold-client.so.0 $(if $(SAN),,-Wl$(comma)--no-undefined) $(linking) $^ -o $@

$(out)/ringhold-client.pc: packaging/ringhold-client.pc.in Makefile VERSION
	@mkdir -p $(@D)
	$(Q)sed -e 's,@PREFIX@,$(PREFIX),' -e 's,@VERSION@,$(VERSION),' $< >$@

$(playing): %: %.o $(out)/libringhold-client.a
	$(call say,LD)
	$(Q)$(CC) $(cflags) $(program) $^ -o $@

$(pkg) $(out)/ringhold-test.pc: $(out)/%.pc: packaging/%.pc.in Makefile VERSION
	@mkdir -p $(@D)
	$(Q)sed -e 's,@PREFIX@,$(PREFIX),' -e 's,@VERSION@,$(VERSION),' -e 's,@LIBS@,$(lib_libs),' $< >$@

$(out)/daemon/web_assets.o: $(wildcard daemon/web/*)
$(out)/daemon/web_assets.o: cflags += $(if $(LTO),-fno-lto) # its names come from the assembler

# What the program and its headers say of themselves is on their pages word by word.
$(out)/man/%: docs/man/%.scd tools/manual packaging/ringhold.ini $(wildcard include/*.h) $(binary)
	@mkdir -p $(@D)
	$(call say,MAN)
	$(Q)tools/manual $(binary) $< >$@.scd
	$(Q)scdoc <$@.scd >$@

# All of the API, as plugins may call what nothing here does.
$(binary): $(out)/cli/main.o $(out)/all.a | $(beside)
	$(call say,LD)
	$(Q)$(CC) $(cflags) -rdynamic $(api:%=-Wl$(comma)-u$(comma)%) $(program) $^ $(libs) -o $@

$(filter-out %.so,$(beside)): $(out)/ringhold-%: $(out)/%/main.o $(out)/all.a
	$(call say,LD)
	$(Q)$(CC) $(cflags) $(program) $^ $(libs) -o $@

$(out)/ringhold-console: libs += -ledit -lhiredis

$(out)/ledger.so: $(patsubst %,$(out)/%.o,demo/ledger demo/ballast demo/journal $(addprefix base/,assert bytes clock crc err history log mem plain))
	$(call say,LD)
	$(Q)$(CC) $(cflags) -shared $(linking) $^ -o $@

$(embedded): %: %.o $(library)
	$(call say,LD)
	$(Q)$(CC) $(cflags) $(program) $^ $(lib_libs) -o $@

$(checker): $(out)/sim/history/check.o $(out)/all.a
	$(call say,LD)
	$(Q)$(CC) $(cflags) $(program) $^ $(libs) -o $@

$(plugins): $(out)/%.so: $(out)/%.o
	$(call say,LD)
	$(Q)$(CC) $(cflags) -shared $(linking) $^ $(plugin_libs) -o $@
$(out)/examples/store_sqlite.so $(out)/examples/trade.so: plugin_libs := -lsqlite3
$(out)/examples/store_postgres.so: plugin_libs := -lpq -lpthread
$(out)/examples/store_redis.so: plugin_libs := -lhiredis -lpthread
$(out)/examples/store_postgres.so $(out)/examples/store_redis.so: $(patsubst %,$(out)/examples/stores/%.o,guard jobs stored)

$(filter-out $(trials:%.c=$(out)/%),$(tests)): %: %.o $(out)/all.a
	$(call say,LD)
	$(Q)$(CC) $(cflags) -rdynamic $(program) $^ -lcmocka $(libs) -o $@

$(sims): %: %.o $(out)/all.a
	$(call say,LD)
	$(Q)$(CC) $(cflags) $(program) $^ $(libs) -o $@

$(benches): %: %.o $(out)/all.a
	$(call say,LD)
	$(Q)$(CC) $(cflags) $(program) $^ $(rival_libs) $(libs) -o $@

$(out)/bench/ring_bench: $(out)/bench/rivals.o
$(out)/bench/ring_bench: rival_libs := -lhashkit -lmemcached

# Set-up is a step of its own: what make reads next may not exist before it. What it then builds
# uses all cores, unless you said -j yourself.
submake = $(MAKE) --no-print-directory $(if $(findstring -j,$(MAKEFLAGS)),,-j$(shell nproc))

# As many at a time as there are cores, JOBS=1 for one after another.
run-tests = JOBS=$(or $(JOBS),$(shell nproc)) tools/run-tests

setup-%:
	@DEPS=$(DEPS) tools/setup $(subst -, ,$*)

help: ## this list
	@sed -n 's/^\([a-z][a-z0-9-]*\):.* ## \(.*\)/\1|\2/p' $(firstword $(MAKEFILE_LIST)) | \
	    while IFS='|' read -r target text; do printf '  make %-14s %s\n' "$$target" "$$text"; done
	@sed -n '2,/^$$/s/^# \{0,1\}//p' $(firstword $(MAKEFILE_LIST))

# For people who work on it: three coordinators, three nodes and a gateway that stay, in build/fleet (FLEET=).
FLEET = build/fleet
fleet: setup-build-check ## a local fleet that stays until Ctrl-C or make fleet-stop, all in FLEET=build/fleet
	+@$(submake) $(binary)
	@tools/fleet start $(binary) $(FLEET)
fleet-stop: ## end it
	@tools/fleet stop $(FLEET)

demo: setup-build ## set up, build, run the demo fleet (DEMO=--seconds 20)
	+@$(submake) $(binary)
	@$(binary) demo $(DEMO)

check: setup-build-check ## set up, build, run unit tests, stories, 200 simulated fleets, smoke tests on real processes
	+@$(submake) all
	@$(MAKE) --no-print-directory run-check

# A sanitizer judges what is done to memory, which differs little from seed to seed: fewer are enough.
# What packages, pages and libraries in other languages hold is no matter of memory; nor is what mostly waits: for a restart, for moves, for systemd.
waiting := arena cpp docs fleets gdb history host_node host_python hosts install manual next packaging placement redis_clients remembered rolling_restart samples screens systemd waits walk zones
smoke := $(filter-out $(if $(SAN),$(waiting:%=\%/smoke_%.py)),$(wildcard tests/e2e/smoke/smoke_*.py))
fuzzers := $(patsubst %.c,$(out)/%,$(notdir $(wildcard tests/fuzz/*_fuzz.c)))
seeds_of = $(wildcard tests/fuzz/seeds/$(patsubst %_fuzz,%,$(notdir $(1)))_*)
run-check: all $(fuzzers)
	@TEST_TIMEOUT=$(or $(TEST_TIMEOUT),$(if $(SAN),2400,1200)) $(run-tests) $(tests) $(foreach f,$(fuzzers),"$(f) --replay $(call seeds_of,$(f))") \
	    "$(out)/sim/fleet_sim --seeds $(or $(SEEDS),$(if $(SAN),50,200))" $(smoke:%="% $(binary)")

# Of check, what runs the program itself: on a build that the unit tests are not made for.
smoke: setup-build-check ## the smoke tests alone; LTO=1 smoke: on the build that is shipped
	+@$(submake) run-smoke
run-smoke: $(ship) $(plugins) $(embedded) $(playing) $(out)/sim/fleet_sim
	@$(run-tests) $(smoke:%="% $(binary)")

sim: $(sims) ## fleets in the simulator (SEEDS=200); a failing seed prints itself
	$(out)/sim/fleet_sim --seeds $(or $(SEEDS),200)

# What tests faults has the injection points and the planted bugs, which do nothing unless asked to. What ships has neither.
faulty := INJECT=1 MUTANTS=1
mutants: export MUTANTS_PLANTED = 1
mutants: ## planted bugs of the protocol: each must be found
	+@$(submake) $(faulty) run-mutants
planted := $(filter %/access_test %/actor_store_test %/alarms_test %/client_bind_test %/client_http_test %/coordinator_story_test %/coordinator_test %/drift_test %/fence_test %/finder_test %/host_story_test %/hosted_test %/judge_test %/lease_test %/node_threads_test %/operate_test %/outbox_test %/remote_store_test %/replica_test %/ring_hosts_test %/roles_test %/router_story_test %/router_stream_test %/router_test %/runtime_alarms_test %/runtime_durable_test %/runtime_keep_test %/runtime_sends_test %/session_walk_test %/share_test %/store_tools_test %/streams_test %/suspect_test %/waits_test,$(tests))
run-mutants: $(out)/sim/fleet_sim $(checker) $(planted)
	@SHOW=1 TEST_TIMEOUT=1200 $(run-tests) "$(out)/sim/fleet_sim --mutants" $(planted:%="% --mutants") "tests/e2e/smoke/smoke_history.py $(binary)"

raft-sim: $(sims) ## libraft under our I/O in virtual time (SEEDS=1000): all guard rules, then each one off
	$(out)/sim/raft_sim --guards --seeds $(or $(SEEDS),1000)

# About ten minutes of two cores; DEEP=1 more of one, and 8 GB. MODEL= names sets or runs.
model: setup-model ## spin on the protocol's models (DEEP=1, MODEL=NAME); ten minutes
	@DEEP=$(DEEP) tools/model $(MODEL)

e2e: setup-build-check-e2e ## faults on real processes (KILLS=6); ten minutes
	+@$(submake) NEXT=1 $(out)-next/ringhold
	+@$(submake) $(faulty) run-e2e
# The longest first, and as two. LEASE= is the lease in the tests of players who trade: with 1 s, a node that gets no CPU for a
# second ends itself. TEST_TIMEOUT: the judge of histories may take 10 minutes for a key, and as long again to draw it.
kills  := tests/e2e/fault/fault_kills.py
faults := $(filter-out $(kills),$(wildcard tests/e2e/fault/*.py))
run-e2e: $(binary) $(plugins)
	@SHOW=1 KILLS=$(or $(KILLS),6) LEASE=$(or $(LEASE),2s) TEST_TIMEOUT=2400 $(run-tests) \
	    "$(kills) $(binary) coordinators" "$(kills) $(binary) nodes" $(faults:%="% $(binary)")

# ThreadSanitizer: the tests of what has threads, and 60 s of load with restarts (SECONDS=).
races: setup-build-check ## ThreadSanitizer on what has threads, and under load (SECONDS=60)
	+@$(submake) SAN=thread run-races
threaded := $(filter %/gateway_process_test $(patsubst %.c,$(out)/%,$(wildcard tests/link/link_*test.c tests/node/node_*_test.c tests/node/runtime_*test.c)),$(tests))
run-races: $(binary) $(threaded) $(plugins) $(embedded)
	@SHOW=1 TEST_TIMEOUT=1200 tools/run-tests $(threaded) "tests/e2e/smoke/smoke_embedded.py $(binary)" "tests/e2e/campaign/race_load.py $(binary)"

# How long ids wait for the take-over of a killed node: KILLS=30 at each of LEASES=3,2 seconds. MINUTES=60: that none is
# fenced without a cause for so long.
failover: setup-build-check ## KILLS=30 nodes: how long until their ids answer again (LEASES=3,2; MINUTES=)
	+@$(submake) $(binary)
	@KILLS=$(or $(KILLS),30) tests/e2e/fault/fault_failover.py $(binary)

# What 16 clients saw for so long while the fleet was hurt, judged key by key by porcupine; SEED= draws the faults.
linearizable: setup-build-check-e2e ## what clients saw under faults (MINUTES=5, SEED=), judged by porcupine
	+@$(submake) $(faulty) run-linearizable
run-linearizable: $(binary)
	@MINUTES=$(or $(MINUTES),5) tests/e2e/fault/fault_linearizable.py $(binary)

# RUNS= short ones of gifts among accounts of their own while all there is of a fleet is killed, on each of STORES= in turn.
# porcupine judges each account, and must refuse what planted bugs do. SEED= draws loads and deaths.
porcupine: setup-build-check-e2e ## RUNS=200 histories of durable accounts under kill -9, judged by porcupine; 40 minutes
	+@$(submake) $(faulty) run-porcupine
run-porcupine: $(binary) $(plugins)
	@RUNS=$(or $(RUNS),200) STORES="$(or $(STORES),Sqlite Postgres Redis)" tests/e2e/fault/fault_gifts_judged.py $(binary)

# Players: 10,000 that drop the line and resume (BOTS=, SECONDS=); and what would harm them: a login storm (STORM=
# attempts), one that does not read among FAST= others, SILENT= that say nothing, who sends a byte a second, garbage,
# and one token that wants all (tests/e2e/campaign/campaign_greedy.py BINARY: that one alone).
bots: setup-build-check ## players who drop the line and resume (BOTS=10000, SECONDS=); four minutes
	+@$(submake) $(binary) $(plugins)
	@tests/e2e/campaign/campaign_bots.py $(binary)
client-bots: setup-build-check ## players by the client libraries through a rolling restart (BOTS=10000); five minutes
	+@$(submake) $(binary) $(plugins)
	@tests/e2e/campaign/campaign_client_bots.py $(binary)
balance: setup-build-check ## a Zipf load on four nodes is shared out by --balance load; a minute or three; MINUTES=10 goes on to see that nothing moves to and fro
	+@$(submake) $(binary)
	@tests/e2e/campaign/campaign_balance.py $(binary) $(if $(MINUTES),--minutes $(MINUTES))
alarms: setup-build-check ## ALARMS=20000 alarms of sleeping actors come due in one minute, and a node is killed in the middle
	+@$(submake) $(binary) $(plugins)
	@tests/e2e/campaign/campaign_alarms.py $(binary)
trades: setup-build-check-e2e ## MINUTES=10 of gifts among 10,000 players on each store (STORES="Sqlite Postgres Redis", SEED=), while everything is killed
	+@$(submake) $(binary) $(plugins)
	@for store in $(or $(STORES),Sqlite Postgres Redis); do echo "# $$store"; STORE=$$store MINUTES=$(or $(MINUTES),10) tests/e2e/fault/fault_gifts.py $(binary) || exit 1; done
# The same game in C, Lua, Go, Python and TypeScript (LANGUAGES= only these), each for so long, under faults that SEED= draws.
hosted-games: setup-build-check-e2e-games ## one game in five languages, MINUTES=2 each, while hosts and nodes are killed, join, drain
	+@$(submake) $(binary) $(plugins)
	@MINUTES=$(or $(MINUTES),2) LANGUAGES="$(LANGUAGES)" tests/e2e/fault/fault_hosted_games.py $(binary)
storm: setup-build-check-bench ## a login storm (STORM=50000), slow readers, strangers, the greedy; eight minutes
	+@$(submake) $(binary) $(plugins) $(out)/bench/accept_uv
	@for c in storm slow_reader strangers greedy; do tests/e2e/campaign/campaign_$$c.py $(binary) || exit 1; done

# Redis clients from npm, PyPI, Go's proxy, Maven, crates.io and Debian, as far as their toolchains are here (CLIENTS= only
# these). WRITE=1 writes the tables of docs/redis-clients.md.
redis-clients: setup-build-check ## Redis clients from their registries on a fleet: what is stored against what was answered; ten minutes
	+@$(submake) $(binary)
	@tests/e2e/campaign/campaign_redis_clients.py $(binary)

# Real browsers, and clients from npm: what they need of that is in build/browser, as are the screenshots.
browser: setup-build-check-browser ## the pages in Chromium, JavaScript clients over WebSockets; takes from npm
	@command -v npm >/dev/null || DEPS=$(DEPS) tools/setup npm
	+@$(submake) $(binary) $(plugins)
	@mkdir -p build/browser && cp tests/browser/package.json build/browser && \
	    npm install --silent --no-audit --no-fund --prefix build/browser
	@SHOW=1 TEST_TIMEOUT=600 tools/run-tests $(patsubst %,"% $(binary)",$(wildcard tests/browser/*.py))

drain-page: setup-build-check ## write docs/drain.md from a real terminal
	+@$(submake) $(binary)
	@tests/e2e/smoke/show_drain.py $(binary)

screens-page: setup-build-check ## write docs/screens.md by the commands of a real fleet
	+@$(submake) $(binary)
	@tests/e2e/smoke/show_screens.py $(binary)

site: setup-build-check-site ## the documentation as a site in build/site, with the manual and the decisions; its links are checked
	+@$(submake) $(manual)
	@tools/site $(out)/man build/site

# Each alert of packaging/prometheus, in a real Prometheus; one needs a fault that is planted.
alerts: setup-build-check-alerts ## each alert fires in a real Prometheus
	+@$(submake) $(faulty) run-alerts
run-alerts: $(binary) $(plugins)
	@tests/e2e/campaign/campaign_alerts.py $(binary)

# Of what is shipped, which is compiled as one.
bench: setup-build-check-bench ## ratios against peers, a quarter of an hour; bench-NAME: one part; writes docs/benchmarks.md
	+@$(submake) LTO=1 run-bench
run-bench: $(binary) $(benches) $(plugins)
	@bench/all $(out) $(PART)
# Go's modules and Maven's come by the network.
bench-peers: setup-build-check-bench-peers ## Pekko and protoactor-go at the same work, twenty minutes; ROUNDS=1: eight
	+@$(submake) LTO=1 run-bench-peers
run-bench-peers: $(binary)
	@bench/all $(out) peers
bench-%: setup-build-check-bench
	+@$(submake) LTO=1 run-bench PART="$*"

# LIBFUZZER=1 needs clang's runtime (libclang-rt-14-dev); without it a driver of our own mutates seeds.
fuzz: setup-build-check ## any bytes to every decoder (SECONDS=20 each, RUNS=, LIBFUZZER=1)
	@$(MAKE) --no-print-directory run-fuzz $(if $(LIBFUZZER),CC=clang SAN=address$(comma)undefined$(comma)fuzzer-no-link,SAN=address$(comma)undefined)
# What was freed is kept for less long than by default, so that it stays in the cache: four times as many inputs.
run-fuzz: $(fuzzers)
	@export ASAN_OPTIONS=$${ASAN_OPTIONS:-quarantine_size_mb=16}; for f in $(fuzzers); do name=$$(basename $$f); seeds=$$(ls tests/fuzz/seeds/$${name%_fuzz}_* 2>/dev/null); \
	    echo "== $$name"; if test -n "$(LIBFUZZER)"; then mkdir -p $$f.corpus; cp $$seeds $$f.corpus 2>/dev/null; \
	    $$f $(if $(RUNS),-runs=$(RUNS),-max_total_time=$(or $(SECONDS),20)) -verbosity=0 -print_final_stats=1 $$f.corpus || exit 1; \
	    else $$f $(if $(RUNS),--runs=$(RUNS),$(or $(SECONDS),20)) $$seeds || exit 1; fi; done
$(out)/%_fuzz: tests/fuzz/%_fuzz.c $(if $(LIBFUZZER),,tests/fuzz/drive.c) $(out)/all.a
	$(call say,LD)
	$(Q)$(CC) $(subst fuzzer-no-link,fuzzer,$(cflags)) $^ $(libs) -o $@

code := $(shell find $(folders) bench examples include tests -name '*.[ch]' 2>/dev/null)
# Each .c file is checked by itself, and again only when it or what it includes has changed: build/lint has a stamp for each,
# with its dependencies. One file a clang-tidy: given several, version 14 takes va_start() in the second for none. Nearly all of its
# time is clang-analyzer's, which follows the paths of a function: 25000 steps here, where most functions end, and 4000 in tests,
# whose functions are long and few of whose faults are for the analyzer to find; DEEP=1 as many as it goes by itself (225000),
# which takes six times as long. cppcheck would go through a file once for each macro that any
# header asks for: it goes once, and once more through a file that names a macro of ours.
lint-out := build/lint$(if $(DEEP),-deep)
linted   := $(patsubst %.c,$(lint-out)/%.ok,$(filter %.c,$(code)))
clang    := -std=c11 -D_POSIX_C_SOURCE=200809L -DRINGHOLD_VERSION=\"$(VERSION)\" -iquote . -isystem build/proto -Iinclude
steps     = $(if $(DEEP),,-Xclang -analyzer-config -Xclang max-nodes=$(if $(filter tests/%,$<),4000,25000))
variants := RINGHOLD_INJECT RINGHOLD_MUTANTS RINGHOLD_NEXT
cppcheck := cppcheck --quiet --std=c11 --enable=warning,portability,performance --error-exitcode=1 --inline-suppr \
            --suppressions-list=tools/cppcheck.txt -I. -U__SANITIZE_ADDRESS__ -U__has_feature
$(lint-out)/%.ok: %.c .clang-tidy tools/cppcheck.txt Makefile $(protos) | $(pb)
	@mkdir -p $(@D)
	$(call say,LINT)
	$(Q)clang-tidy --quiet $< -- $(clang) $(steps) 2>/dev/null
	$(Q)$(cppcheck) $(variants:%=-U%) $<
	$(Q)if grep -qE '$(subst $(empty) ,|,$(variants))' $<; then $(cppcheck) $(variants:%=-D%) $<; fi
	$(Q)$(CC) $(clang) -MM -MP -MT $@ -MF $@.d $<
	@touch $@
run-tidy: $(linted)

lint: setup-build-check-lint ## format, clang-tidy, cppcheck, shellcheck, the checks of tools/; DEEP=1: each path to its end
	@$(MAKE) --no-print-directory run-lint
run-lint: $(pb)
	@echo '  LINT clang-format'
	$(Q)printf '%s\n' $(code) | xargs -P $$(nproc) -n 100 clang-format --dry-run --Werror
	+$(Q)$(submake) -k run-tidy
	@echo '  LINT shellcheck, yamllint, layers, states, parts, tags, abi, citations, words'
	$(Q)shellcheck tools/setup tools/abi tools/layers tools/states tools/parts tools/tags tools/model tools/manual .ci/run packaging/completion/ringhold.bash packaging/kubernetes/secrets packaging/debian/ringhold.p*
	$(Q)yamllint --strict -d '{extends: relaxed, rules: {line-length: {max: 130}}}' packaging/kubernetes packaging/prometheus docs/openapi.yaml
	$(Q)./tools/layers
	$(Q)./tools/states
	$(Q)./tools/parts
	$(Q)./tools/tags
	$(Q)./tools/abi
	$(Q)./tools/citations
	$(Q)./tools/words

ship: $(ship)

install: $(ship) ## into PREFIX=/usr/local, below DESTDIR=
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(LIBDIR)/pkgconfig $(DESTDIR)$(PREFIX)/include
	install -m 755 $(binary) $(checker) $(DESTDIR)$(PREFIX)/bin
	install -D -m 755 -t $(DESTDIR)$(PREFIX)/libexec/ringhold $(filter-out %.so,$(beside))
	install -m 644 $(filter %.so,$(beside)) $(stores) $(DESTDIR)$(PREFIX)/libexec/ringhold
	for name in ringhold ringhold-client; do \
	    install -m 644 $(out)/lib$$name.a $(out)/lib$$name.so.0 $(DESTDIR)$(LIBDIR) && \
	    ln -sf lib$$name.so.0 $(DESTDIR)$(LIBDIR)/lib$$name.so && \
	    sed -e 's,^prefix=.*,prefix=$(PREFIX),' -e 's,^libdir=.*,libdir=$(LIBDIR:$(PREFIX)/%=$${prefix}/%),' \
	        $(out)/$$name.pc >$(DESTDIR)$(LIBDIR)/pkgconfig/$$name.pc || exit 1; done
	install -m 644 $(out)/libringhold-test.a $(DESTDIR)$(LIBDIR)
	sed -e 's,^prefix=.*,prefix=$(PREFIX),' -e 's,^libdir=.*,libdir=$(LIBDIR:$(PREFIX)/%=$${prefix}/%),' \
	    $(out)/ringhold-test.pc >$(DESTDIR)$(LIBDIR)/pkgconfig/ringhold-test.pc
	install -m 644 include/ringhold.h include/ringhold.hpp include/ringhold_test.h include/ringhold_client.h $(DESTDIR)$(PREFIX)/include
	for page in $(filter $(manual),$(ship)); do \
	    install -D -m 644 $$page $(DESTDIR)$(PREFIX)/share/man/man$${page##*.}/$${page##*/} || exit 1; done
	install -d $(DESTDIR)$(UNITDIR) $(DESTDIR)$(PREFIX)/share/doc/ringhold
	for unit in coordinator node gateway; do sed 's,/usr/bin/,$(PREFIX)/bin/,' packaging/systemd/ringhold-$$unit.service \
	    >$(DESTDIR)$(UNITDIR)/ringhold-$$unit.service || exit 1; done
	for what in sysusers tmpfiles; do install -D -m 644 packaging/systemd/ringhold.$$what \
	    $(DESTDIR)$(PREFIX)/lib/$$what.d/ringhold.conf || exit 1; done
	install -m 644 packaging/ringhold.ini packaging/prometheus/ringhold.rules.yml packaging/grafana/ringhold.json docs/openapi.yaml $(DESTDIR)$(PREFIX)/share/doc/ringhold
	install -D -m 644 packaging/completion/ringhold.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/ringhold

# What is committed, and the same bytes each time.
name := ringhold-$(VERSION)
dist: ## what is committed, as build/ringhold-VERSION.tar.xz
	@git rev-parse --verify -q HEAD >/dev/null || { echo 'dist: packs what git has committed, and this is no checkout' >&2; exit 1; }
	@git diff --quiet HEAD || echo 'dist: packs what is committed; what you have changed since is not in it' >&2
	@mkdir -p build
	git -c tar.umask=0022 archive --format=tar --prefix=$(name)/ HEAD | xz -T1 >build/$(name).new && mv build/$(name).new build/$(name).tar.xz

# Debian packages of that, in build/deb. dpkg-buildpackage wants debian/ at the top: it has it in a copy.
deb: setup-build-check-deb ## Debian packages, in build/deb
	@$(MAKE) --no-print-directory run-deb
run-deb: dist
	rm -rf build/deb && mkdir -p build/deb
	cp build/$(name).tar.xz build/deb/ringhold_$(VERSION).orig.tar.xz
	tar -C build/deb -xf build/$(name).tar.xz
	cp -r build/deb/$(name)/packaging/debian build/deb/$(name)/debian
	cd build/deb/$(name)/debian && sed -e 's/@VERSION@/$(VERSION)/' -e "s/@DATE@/$$(git log -1 --format=%cD)/" changelog.in >changelog && rm changelog.in
	cd build/deb/$(name) && env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL dpkg-buildpackage -us -uc >../build.log 2>&1 || { tail -30 ../build.log; exit 1; }
	lintian --fail-on error build/deb/ringhold_$(VERSION)-1_*.changes
	@rm -rf build/deb/$(name); ls build/deb/*.deb

# In a Debian made for it with debootstrap, as root: install, run a fleet, build against it, purge.
packages: deb ## deb, then a fresh Debian installs and runs them; as root, five minutes
	@tests/e2e/campaign/campaign_packages.py build/deb

clean: ## remove build/
	rm -rf build

.PHONY: all help balance fleet fleet-stop demo check run-check smoke run-smoke sim mutants run-mutants raft-sim model e2e run-e2e races run-races failover linearizable run-linearizable porcupine run-porcupine trades hosted-games browser storm bots client-bots redis-clients alerts drain-page bench bench-peers run-bench-peers run-bench screens-page site \
        fuzz run-fuzz lint run-lint run-tidy ship install dist deb run-deb packages clean
.SECONDARY:
-include $(if $(filter run-tidy build/lint%,$(MAKECMDGOALS)),$(linted:=.d)) $(objects:.o=.d) $(tests:=.d) $(sims:=.d) $(benches:=.d) $(out)/bench/rivals.d $(plugins:.so=.d) $(wildcard $(out)/examples/stores/*.d) $(playing:=.d) $(embedded:=.d) $(wildcard $(out)/*/main.d) $(out)/sim/history/check.d
