// SPDX-License-Identifier: Apache-2.0
//
// A durable actor by include/ringhold.hpp that does what it is asked, for smoke_cpp.py: each function of the
// wrapper once. It is built by the test.
#include <ringhold.hpp>

#include <stdexcept>
#include <string>

namespace {

using ringhold::Answer;
using ringhold::Bytes;
using ringhold::Message;
using ringhold::Milliseconds;
using ringhold::Turn;
using ringhold::Value;

struct Player {
    std::string memory; // goes along when it moves
    int ticks = 0;
    ringhold::Later asked;

    static constexpr bool durable = true;
    static constexpr std::uint32_t sessions = RH_SESSIONS_KICK_OLD;

    static int start(const rh_kind_info &info, void **shared)
    {
        *shared = new std::string(info.argument);
        return RH_OK;
    }
    static void stop(void *shared) { delete static_cast<std::string *>(shared); }

    rh_result activate(Turn &, const Bytes *state)
    {
        memory = state == nullptr ? "afresh" : std::string(*state);
        return RH_OK;
    }
    std::string save(Turn &) { return memory; }

    rh_result session(Turn &turn, const rh_session &event)
    {
        return event.type == RH_SESSION_LOST ? RH_OK : turn.push("welcome");
    }

    void alarm(Turn &turn, const rh_alarm &alarm)
    {
        turn.put("rang", ringhold::view(alarm.payload));
    }

    void message(Turn &turn, const Message &m)
    {
        const std::string text(m.payload());
        const auto space = text.find(' ');
        const std::string verb = text.substr(0, space);
        const std::string rest = space == std::string::npos ? "" : text.substr(space + 1);

        if (verb == "remember") {
            turn.reply(std::exchange(memory, rest));
        } else if (verb == "put") {
            turn.put("item", rest);
            turn.reply(nullptr);
        } else if (verb == "erase") {
            turn.reply(turn.erase("item") == RH_OK ? 1 : 0);
        } else if (verb == "all") {
            std::string all;
            turn.each_value([&](Bytes key, Bytes value) { all.append(key).append("=").append(value).append(" "); });
            turn.reply(all);
        } else if (verb == "get") {
            turn.reply(Value(turn.get(rest).value_or("nothing")));
        } else if (verb == "who") {
            turn.reply(std::string(turn.id()) + " " + *turn.shared<std::string>() + " " +
                       std::to_string(turn.incarnation().fence == turn.fence()));
        } else if (verb == "ask") {
            ask(turn, rest);
        } else if (verb == "give") {
            turn.put("given", rest);
            turn.send_once(0, rest, "put gift");
            turn.reply(1);
        } else if (verb == "tick") {
            turn.every(Milliseconds(10), [this](Turn &) { ticks++; });
            asked = turn.defer();
            turn.in(Milliseconds(50), [](Turn &) {});
            wait(turn);
        } else if (verb == "alarm") {
            turn.reply(int{turn.set_alarm("a", std::chrono::system_clock::now(), Milliseconds(0), rest)});
        } else if (verb == "push") {
            turn.reply(int{turn.push(rest)});
        } else if (verb == "drop") {
            const ringhold::Later nobody = turn.defer();
        } else if (verb == "post") {
            asked = turn.defer();
            turn.life().post([this](Turn &) { asked.reply("posted"); });
        } else if (verb == "throw") {
            throw std::runtime_error("it broke\nhere");
        } else {
            turn.error("ERR what?");
        }
    }

private:
    // It answers when it has heard five ticks: a timer of the life is heard only between messages, one of the message within.
    void wait(Turn &turn)
    {
        rh_after(turn.get(), 10, [](rh_actor *actor, void *instance, void *) {
            Turn now(actor);
            auto *me = static_cast<Player *>(instance);
            me->ticks++;
            if (me->ticks < 5) {
                me->wait(now);
            } else {
                me->asked.reply(me->ticks);
            }
        }, nullptr);
    }

    void ask(Turn &turn, const std::string &whom)
    {
        asked = turn.defer();
        // What it holds can only be moved, and is deleted when it was called.
        auto mine = std::make_unique<std::string>("he says ");
        turn.call(0, whom, "who", Milliseconds(5000), [this, mine = std::move(mine)](Turn &, const Answer &answer) {
            asked.reply(answer ? *mine + std::string(answer.payload()) : std::string(answer.payload()));
        });
    }
};

} // namespace

RINGHOLD_ACTOR(Player, "player")
