// SPDX-License-Identifier: Apache-2.0
//
// The counter of counter.c in C++ (include/ringhold.hpp): it answers each request with how many it has
// had, and takes its count along when it moves.
//
//     c++ -std=c++17 -shared -fPIC -Iinclude examples/counter.cpp -o counter.so
//     ringhold node --actor ./counter.so
#include <ringhold.hpp>

#include <string>

namespace {

struct Counter {
    long count = 0;

    rh_result activate(ringhold::Turn &, const ringhold::Bytes *state)
    {
        count = state == nullptr ? 0 : std::stol(std::string(*state));
        return RH_OK;
    }

    void message(ringhold::Turn &turn, const ringhold::Message &) { turn.reply(++count); }

    std::string save(ringhold::Turn &) { return std::to_string(count); }

    static constexpr bool brief = true; // its callbacks take microseconds
};

} // namespace

RINGHOLD_ACTOR(Counter, "counter")
