#!/usr/bin/env python3
"""Histories in the public format: of real processes, of the simulator, and of planted bugs.

    smoke_history.py BINARY       BINARY's folder has ringhold-history and sim/fleet_sim
"""
import os
import re
import subprocess
import sys
import tempfile

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import main

SEEDS = 25  # for a planted bug; which seed shows it is a matter of chance
# Not clocks, whose faults the judge has no excuse for, nor restore: histories don't tell that a state was put back.
PROFILES = ("mixed", "calm", "lease", "changes", "copies", "roles", "pauses", "sessions", "operator", "coordinators")


def run(*words):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
    return done.returncode, done.stdout.decode()


def judge(binary, path, *options):
    return run(os.path.join(os.path.dirname(binary), "ringhold-history"), *options, path)


def simulate(binary, path, seed, *options):
    simulator = os.path.join(os.path.dirname(binary), "sim", "fleet_sim")
    return run(simulator, "--seed", str(seed), "--history", path, "--quiet", *options)


def figure(text, name):
    return int(re.search(rf"\b{name} (\d+)", text).group(1))


def a_demo_is_judged_by_its_history(binary):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "history")
        code, said = run(binary, "demo", "--seconds", "10", "--ids", "200", "--rate", "500", "--history", path)
        assert code == 0, said
        code, text = judge(binary, path)
        assert code == 0, text
        sent = int(re.search(r"RESULT sent (\d+)", said).group(1))
        assert figure(text, "requests") == sent == figure(text, "runs") == figure(text, "OK"), (said, text)
        assert figure(text, "moved") > 0, text
        # The same history with one run written twice is not clean, nor is one with an answer lost.
        with open(path) as f:
            lines = f.readlines()
        ends = [i for i, line in enumerate(lines) if " EXEC_END " in line]
        begin = max(i for i in range(ends[9]) if lines[i].split()[3:] == lines[ends[9]].split()[3:])
        again = lines[ends[9]].split()[0] + " " + lines[begin].split(" ", 1)[1]
        worse = lines[: ends[9] + 1] + [again, lines[ends[9]]] + lines[ends[9] + 1 :]
        with open(path, "w") as f:
            f.writelines(worse)
        code, text = judge(binary, path)
        assert code == 1 and figure(text, "run-twice") == 1, text
        with open(path, "w") as f:
            f.writelines(line for i, line in enumerate(lines) if i not in (begin, ends[9]))
        code, text = judge(binary, path)
        assert code == 1 and figure(text, "lost") == 1, text


def seeds_of_each_profile_are_judged_by_their_histories(binary):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "history")
        for profile in PROFILES:
            runs = 0  # in one history of many crashes there may be few
            for seed in range(1, 5):
                code, text = simulate(binary, path, seed, "--profile", profile)
                assert code == 0, text
                code, text = judge(binary, path)
                assert code == 0 and figure(text, "runs") > 0, f"{profile}, seed {seed}: {text}"
                runs += figure(text, "runs")
            assert runs > 400, f"{profile}: {runs} runs"


def a_malformed_history_is_named(binary):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "history")
        with open(path, "w") as f:
            f.write("ringhold-history 1\n5 n1 STOP\n")
        code, text = judge(binary, path)
        assert code == 2 and f"{path}:2: a key is missing" in text, text
        code, text = judge(binary, os.path.join(folder, "none"))
        assert code == 2 and "can't read" in text, text


def caught(binary, mutant):
    """The rule that the separate judge finds broken in one of the seeds."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "history")
        for seed in range(1, SEEDS + 1):
            simulate(binary, path, seed, "--mutant", mutant)
            code, text = judge(binary, path, "--unfinished")
            assert code in (0, 1), text
            if code == 1:
                return text.split()[2].rstrip(":")
    raise AssertionError(f"{mutant} was not seen in {SEEDS} histories")


def planted(mutant, rules):
    def case(binary):
        assert caught(binary, mutant) in rules

    case.__name__ = f"the_judge_sees_{mutant}"
    return case


if os.environ.get("MUTANTS_PLANTED"):
    main([planted("M_NODRAIN", ["live-twice", "lost", "state"]), planted("M_NODEDUP", ["run-twice", "duplicated"])])
else:
    main([a_malformed_history_is_named, seeds_of_each_profile_are_judged_by_their_histories, a_demo_is_judged_by_its_history])
