#!/usr/bin/env python3
"""What `make install` leaves is enough for a game server in C++, linked with the shared library and with the static one."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import main

SERVER = """
#include <cstdio>
#include <ringhold.h>

static void on_ready(void *, uint64_t, const char *) {}

/* Names that the library uses inside: they are the game's own here. */
extern "C" int buffer_put(int n) { return n + 1; }
extern "C" void log_write() {}

int main()
{
    struct rh_node_options options = {};
    options.abi = RH_ABI;
    options.size = sizeof options;
    options.name = "no good name";
    options.ready = on_ready;
    const struct rh_value v = rh_text("hello");
    std::printf("%s %d %d\\n", static_cast<const char *>(v.bytes.data), buffer_put(1), rh_node_run(&options));
    return 0;
}
"""
CLIENT = """
#include <cstdio>
#include <ringhold_client.h>

/* Names that the library uses inside: they are the game's own here. */
extern "C" void log_put() {}
extern "C" int hear(int n) { return n + 1; }

int main()
{
    struct rhc_options options = {};
    options.abi = RHC_ABI;
    options.size = sizeof options;
    struct rhc_tcp *t = rhc_tcp_new("127.0.0.1:1", &options, nullptr, nullptr);
    std::printf("%d %s %d\\n", t != nullptr, rhc_status_name(RHC_MOVING), hear(1));
    rhc_tcp_free(t);
    return 0;
}
"""
TOOLS = ("ringhold-conform", "ringhold-load", "ringhold-demo", "ringhold-console", "ringhold-trial")
STORES = ("store_redis.so", "store_postgres.so")
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")


def run(*words, env=None):
    done = subprocess.run(words, capture_output=True, text=True, timeout=250, env={**os.environ, **(env or {})})
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout


def tool(*words):
    done = subprocess.run(words, capture_output=True, text=True, timeout=250, check=True)
    return done.stdout


def mistakes_are_hard_to_use(binary):
    """What the Makefile's own flags leave in what is shipped, whoever builds it."""
    folder = os.path.dirname(os.path.abspath(binary))
    if re.search("address|thread|undefined", os.path.basename(folder)):
        print("# a sanitizer's build has other means")
        return
    x86 = os.uname().machine == "x86_64"
    for name in ("ringhold", *TOOLS, "ringhold-history", "libringhold.so.0", "libringhold-client.so.0"):
        path = os.path.join(folder, name)
        shown = tool("readelf", "-hlWd", path)
        is_program = "lib" not in name
        assert re.search(r"Type: +DYN", shown) and ("PIE" in shown) == is_program, f"{name} lies at one address"
        assert re.search(r"GNU_STACK.* RW +0x", shown), f"{name}: its stack may be run"
        assert "GNU_RELRO" in shown and "BIND_NOW" in shown, f"{name}: its tables can be written"
        # By name: where a function of libc is called, and which.
        called = set(re.findall(r"UND (\w+)", tool("readelf", "-W", "--dyn-syms", path)))
        assert "__stack_chk_fail" in called, f"{name} has no canaries"
        code = tool("objdump", "-d", "--no-show-raw-insn", path)
        if name != "libringhold-client.so.0":  # what it copies has sizes that the compiler has checked
            assert "__memcpy_chk" in called and "__snprintf_chk" in called, f"{name} has no checked copies"
        if x86:
            entry = {"libringhold.so.0": "rh_reply", "libringhold-client.so.0": "rhc_ask"}.get(name, "main")
            assert re.search(rf"<{entry}>:\n +[0-9a-f]+:\s+endbr64", code), f"{name}: {entry} is no marked target"
        if x86 and name in ("ringhold", "libringhold.so.0"):
            assert re.search(r"or[ql]? +\$0x0,(0x[0-9a-f]+)?\(%rsp", code), f"{name} steps over guard pages"


def the_library_exports_its_interface(binary):
    """What packaging/libringhold.map lists, with the release that brought it; tools/abi compares that with the header."""
    folder = os.path.dirname(os.path.abspath(binary))
    with open(os.path.join(ROOT, "packaging", "libringhold.map"), encoding="utf-8") as file:
        listed = set(re.findall(r"^ +(rh_\w+);", file.read(), re.M))
    shown = tool("nm", "-D", "--defined-only", os.path.join(folder, "libringhold.so.0"))
    exported = dict(re.findall(r"^[0-9a-f]+ T (\w+)@@(\S+)$", shown, re.M))
    assert set(exported) == listed, set(exported) ^ listed
    assert len(shown.splitlines()) == len(listed) + len(set(exported.values())), shown  # and the names of the releases


def nothing_of_tests_is_in_it(binary):
    """No injection point, planted bug or test's actor: where their code would be, no name of it is."""
    folder = os.path.dirname(os.path.abspath(binary))
    if re.search("inject|mutants", os.path.basename(folder)):
        return  # builds that are for these
    for name in ("ringhold", *TOOLS, "libringhold.so.0", "libringhold-client.so.0"):
        path = os.path.join(folder, name)
        for symbol in re.findall(r" [tT] (\w+)$", tool("nm", path), re.M):
            assert not re.search(r"^(inject|mutant|planted)_|_crash_at$|plant_stray|^sim_", symbol), f"{name} has {symbol}()"
        with open(path, "rb") as file:
            assert not re.search(b"RINGHOLD_(INJECT|MUTANT)", file.read()), f"{name} can be told to die or to err"
    assert "ledger" not in tool("nm", binary), "the demo's actor is in ringhold"


def cplusplus_links_with_what_is_installed(binary):
    if os.path.basename(os.path.dirname(os.path.abspath(binary))) != "gcc":
        return  # a sanitizer's library needs its flags
    with tempfile.TemporaryDirectory(prefix="ringhold-install-") as folder:
        environment = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
        done = subprocess.run(
            ["make", "-C", ROOT, "install", f"DESTDIR={folder}", "PREFIX=/usr/local"],
            capture_output=True, text=True, timeout=250, env=environment,
        )
        assert done.returncode == 0, (done.stdout, done.stderr)
        man = os.path.join(folder, "usr/local/share/man")
        assert not shutil.which("scdoc") or os.path.exists(os.path.join(man, "man1", "ringhold-node.1")), done.stdout
        examples = os.path.join(os.path.dirname(os.path.abspath(binary)), "examples")
        tools_are_found(os.path.join(folder, "usr/local"), [s for s in STORES if os.path.exists(os.path.join(examples, s))])
        lib = os.path.join(folder, "usr/local/lib")
        config = {
            "PKG_CONFIG_PATH": os.path.join(lib, "pkgconfig"),
            "PKG_CONFIG_SYSROOT_DIR": folder,
        }
        links(folder, lib, config, "ringhold", SERVER, "hello 2 1\n")
        links(folder, lib, config, "ringhold-client", CLIENT, "1 MOVING 2\n")
        a_test_of_actors_links(folder, config)


def a_test_of_actors_links(folder, config):
    """The example, by the line at its head."""
    flags = run("pkg-config", "--cflags", "--libs", "ringhold-test", env=config).split()
    sources = [os.path.join(ROOT, "examples", name) for name in ("gifts_test.c", "gifts.c")]
    program = os.path.join(folder, "gifts_test")
    run("gcc", "-Wall", "-Wextra", "-Werror", *sources, "-o", program, *flags)
    assert run(program) == "ok\n"


def tools_are_found(prefix, built):
    """The commands that are programs of their own, the demo's actor, the stores that were built, and the way back from the demo to the daemons."""
    program, programs = os.path.join(prefix, "bin/ringhold"), os.path.join(prefix, "libexec/ringhold")
    assert set(os.listdir(programs)) == {*TOOLS, "ledger.so", *built}, os.listdir(programs)
    for store in built:
        stores_are_found(program, store.replace(".so", ""))
    assert "hello" in run(program, "conform", "--list")
    assert " PASS\n" in run(program, "demo", "--seconds", "10", "--ids", "200", "--rate", "500")
    os.remove(os.path.join(programs, "ringhold-load"))
    for command in ("bench", "bot"):
        done = subprocess.run([program, command, "--help"], capture_output=True, text=True, timeout=20)
        assert done.returncode == 1 and "ringhold-load" in done.stderr and "ringhold-tools" in done.stderr, done.stderr
    os.remove(program)
    done = subprocess.run([os.path.join(programs, "ringhold-demo"), "demo"], capture_output=True, text=True, timeout=20)
    assert done.returncode == 1 and "no program `ringhold`" in done.stderr, done.stderr


def stores_are_found(program, name):
    """By its name alone; there is no server at that port."""
    where = {"store_redis": "127.0.0.1:1,guard", "store_postgres": "host=127.0.0.1 port=1,guard"}[name]
    with tempfile.TemporaryDirectory() as data:
        words = [program, "node", "--name", "n1", "--join", "127.0.0.1:1", "--data", data, "--actor", f"{name}={where}"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and f"{name}: " in done.stderr and "refused" in done.stderr, done.stderr


def links(folder, lib, config, library, text, says):
    source, program = os.path.join(folder, "game.cc"), os.path.join(folder, "game")
    with open(source, "w") as f:
        f.write(text)
    for how in ("shared", "static"):
        words = ["pkg-config", "--cflags", "--libs", library]
        words += ["--static"] if how == "static" else []
        flags = run(*words, env=config).split()
        if how == "static":
            flags = [os.path.join(lib, f"lib{library}.a") if f == f"-l{library}" else f for f in flags]
        run("g++", "-std=c++11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", source, "-o", program, *flags)
        out = run(program, env={"LD_LIBRARY_PATH": lib})
        assert out == says, (how, out)
        loads = f"lib{library}.so.0" in run("readelf", "-d", program)
        assert loads == (how == "shared"), how


main([mistakes_are_hard_to_use, nothing_of_tests_is_in_it, the_library_exports_its_interface, cplusplus_links_with_what_is_installed])
