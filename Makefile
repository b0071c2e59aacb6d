# make             build ringhold, libringhold, tests        make demo     set up, build, run the demo fleet
# make check       set up, build, run every test             make sim      SEEDS=200 fleets in the simulator
# make lint        format, tidy, cppcheck, layers            make bench    ratios against peers
# make mutants     planted bugs that the simulator must find make e2e      tests on real processes
# make raft-sim    SEEDS=1000 libraft in virtual time        make fuzz     libFuzzer on each decoder
# make install     DESTDIR= PREFIX=/usr/local                make clean
#
# make SAN=address,undefined check     make CC=clang     make WERROR=1     make DEPS=skip check
# Each variant (SAN, COVER, INJECT, CC) builds into a folder of its own, so none spoils another.
# A new .c file needs no edit here.

CC     = gcc
CFLAGS = -O2 -g
PREFIX = /usr/local
SEEDS  =

VERSION := $(shell cat VERSION)

warnings := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wcast-qual \
            -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition -Wundef -Wvla \
            -Wdouble-promotion -Wformat=2 -Wswitch-enum -Wwrite-strings \
            $(if $(findstring clang,$(CC)),-Wno-cast-qual) # in protobuf-c's macros; gcc knows whose they are
defines  := -D_POSIX_C_SOURCE=200809L -DRINGHOLD_VERSION='"$(VERSION)"' $(if $(INJECT),-DRINGHOLD_INJECT=1)
cflags   := -std=c11 $(defines) -iquote . -isystem build/proto -Iinclude -MMD -MP -fPIC -fno-omit-frame-pointer \
            $(warnings) $(if $(WERROR),-Werror) $(if $(COVER),--coverage) \
            $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all) $(CFLAGS)
libs     := -lraft -luv -lsqlite3 -lnng -lprotobuf-c -linih -lpthread -ldl -lm

empty :=
comma := ,
out   := $(subst $(comma),-,build/$(CC)$(if $(SAN),-$(SAN))$(if $(COVER),-cover)$(if $(INJECT),-inject))

protos  := $(wildcard wire/*.proto)
pb      := $(protos:%.proto=build/proto/%.pb-c.c)
folders := base wire ring txn storage raft node gateway sim cli
sources := $(filter-out cli/main.c %_sim.c,$(wildcard $(folders:%=%/*.c)))
objects := $(sources:%.c=$(out)/%.o) $(protos:%.proto=$(out)/%.pb-c.o)
tests   := $(patsubst %.c,$(out)/%,$(wildcard tests/*_test.c))
sims    := $(patsubst %.c,$(out)/%,$(wildcard sim/*_sim.c))
benches := $(patsubst %.c,$(out)/%,$(wildcard bench/*_bench.c))
plugins := $(patsubst %.c,$(out)/%.so,$(wildcard examples/*.c))
binary  := $(out)/ringhold
library := $(out)/libringhold.a

all: $(binary) $(library) $(plugins) $(tests) $(sims)

$(pb:%.c=%.h): %.h: %.c
build/proto/%.pb-c.c: %.proto
	@mkdir -p build/proto
	protoc-c --c_out=build/proto $<

$(out)/wire/%.pb-c.o: build/proto/wire/%.pb-c.c Makefile
	@mkdir -p $(@D)
	$(CC) $(cflags) -w -c $< -o $@

$(out)/%.o: %.c Makefile VERSION | $(pb)
	@mkdir -p $(@D)
	$(CC) $(cflags) -c $< -o $@

$(out)/all.a: $(objects)
	@rm -f $@
	$(AR) rcs $@ $^

# What a game server links to host actors: everything but the command line.
$(library): $(filter-out $(out)/cli/% $(out)/sim/%,$(objects))
	@rm -f $@
	$(AR) rcs $@ $^

$(binary): $(out)/cli/main.o $(out)/all.a
	$(CC) $(cflags) -rdynamic $(LDFLAGS) $^ $(libs) -o $@

$(plugins): $(out)/%.so: $(out)/%.o
	$(CC) $(cflags) -shared $(LDFLAGS) $^ -o $@

$(tests): %: %.o $(out)/all.a
	$(CC) $(cflags) $(LDFLAGS) $^ -lcmocka $(libs) -o $@

$(sims): %: %.o $(out)/all.a
	$(CC) $(cflags) $(LDFLAGS) $^ $(libs) -o $@

$(benches): %: %.o $(out)/all.a
	$(CC) $(cflags) $(LDFLAGS) $^ -lhashkit -lmemcached $(libs) -o $@

setup:
	@DEPS=$(DEPS) tools/setup

clean:
	rm -rf build

.PHONY: all setup clean
.SECONDARY:
-include $(objects:.o=.d) $(tests:=.d) $(sims:=.d) $(benches:=.d) $(out)/cli/main.d
