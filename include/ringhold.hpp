// SPDX-License-Identifier: Apache-2.0
//
// Actors in C++17: ringhold.h as a class of yours, and nothing that is not in ringhold.h, which says
// what each function does, its limits and its results. This header needs no library of its own.
//
//     #include <ringhold.hpp>
//
//     struct Counter {
//         long count = 0;
//         void message(ringhold::Turn &turn, const ringhold::Message &) { turn.reply(++count); }
//     };
//     RINGHOLD_ACTOR(Counter, "counter")
//
//     c++ -std=c++17 -shared -fPIC -Iinclude counter.cpp -o counter.so
//     ringhold node --actor ./counter.so …
//
// An actor is an object of a class T, made by its default constructor and deleted when its life here is
// over. T has `message`, and whatever of this it needs:
//
//     rh_result activate(Turn &, const Bytes *state)  state: what save() returned at the old owner; nullptr:
//                                                     a fresh start. RH_OK, or RH_FAILED, or a deferred one
//     std::string save(Turn &)                        what goes along when it moves; without it, nothing does
//     void resumed(Turn &)                            a move was called off, and it goes on
//     void ended(rh_why)                              before it is deleted
//     void timer(Turn &, std::uint64_t timer)         of Turn::start(); every() and in() need none
//     void alarm(Turn &, const rh_alarm &)            of Turn::set_alarm(), in a durable kind
//     rh_result session(Turn &, const rh_session &)   a client came, or has gone: RH_OK, or RH_FAILED: refused
//     rh_result flush(Turn &, rh_why)                 save what is not saved; compare fence() there
//     static std::string upgrade(std::uint32_t version, Bytes state)  of another state_version
//     static int start(const rh_kind_info &, void **shared), static void stop(void *shared)
//     static constexpr …                              durable, brief, ahead, remember, sessions, sessions_max,
//                                                     resume_ms, mailbox, idle_ms, flush_ms, state_max, memory,
//                                                     state_version, state_version_least, state_version_most
//
// Exceptions: one that leaves a callback ends the actor as rh_fail() does, with its text: the request is
// answered with that error, and the next one starts the actor afresh. From upgrade and activate the actor
// could not be made. The header also compiles with -fno-exceptions. Nothing here throws but what the
// standard library throws for want of memory.
//
// Threads: as in ringhold.h. A Turn is used in its callback alone; Later and Life from any thread.
#ifndef RINGHOLD_HPP
#define RINGHOLD_HPP

#include <ringhold.h>

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace ringhold {

using Bytes = std::string_view; // borrowed, as the C function's rh_bytes
using Milliseconds = std::chrono::milliseconds;

inline rh_bytes raw(Bytes b) noexcept { return {b.data(), b.size()}; }
inline Bytes view(const rh_bytes &b) noexcept { return {static_cast<const char *>(b.data), b.size}; }

// An answer: bytes, a number, nothing, or an error in the form of rh_error(): "CODE text".
class Value {
public:
    Value(Bytes bytes) noexcept : value_(rh_bytes_value(bytes.data(), bytes.size())) {}
    Value(const char *text) noexcept : Value(Bytes(text)) {}
    Value(const std::string &bytes) noexcept : Value(Bytes(bytes)) {}
    Value(std::nullptr_t) noexcept : value_(rh_nil()) {}
    template <class N, class = std::enable_if_t<std::is_integral_v<N>>>
    Value(N number) noexcept : value_(rh_integer(static_cast<std::int64_t>(number)))
    {
    }
    static Value text(const char *simple) noexcept { return Value(rh_text(simple)); }
    static Value error(const char *text) noexcept { return Value(rh_error(text)); }
    const rh_value &get() const noexcept { return value_; }

private:
    explicit Value(const rh_value &value) noexcept : value_(value) {}
    rh_value value_;
};

// A request.
class Message {
public:
    explicit Message(const rh_message &m) noexcept : m_(m) {}
    Bytes payload() const noexcept { return view(m_.payload); }
    std::size_t size() const noexcept { return m_.argument_count; } // words of a command; 0: it is a payload
    Bytes operator[](std::size_t word) const noexcept { return view(m_.argument[word]); }
    bool wants_reply() const noexcept { return (m_.flags & RH_NO_REPLY) == 0; }
    bool is_idempotent() const noexcept { return (m_.flags & RH_IDEMPOTENT) != 0; }
    std::uint16_t from_kind() const noexcept { return m_.from_kind; }
    Bytes from() const noexcept { return view(m_.from); } // id of the actor that sent it; empty: a client

private:
    const rh_message &m_;
};

// How a call ended. Borrowed until the function that gets it returns.
class Answer {
public:
    explicit Answer(const rh_answer &a) noexcept : a_(a) {}
    explicit operator bool() const noexcept { return a_.status == RH_OK; }
    rh_result status() const noexcept { return static_cast<rh_result>(a_.status); }
    bool may_have_run() const noexcept
    {
        return a_.status == RH_OK || a_.status == RH_FAILED || a_.status == RH_UNKNOWN || a_.status == RH_TIMEOUT;
    }
    Bytes payload() const noexcept { return view(a_.payload); } // the answer, or what the status means

private:
    const rh_answer &a_;
};

// A callback that is deferred: finish it, from any thread. One that is dropped is finished with an error, so that the actor never
// waits for ever.
class Later {
public:
    Later() noexcept = default;
    explicit Later(rh_token token) noexcept : token_(token), open_(true) {}
    Later(Later &&other) noexcept : token_(other.token_), open_(std::exchange(other.open_, false)) {}
    Later &operator=(Later &&other) noexcept
    {
        std::swap(token_, other.token_);
        std::swap(open_, other.open_);
        return *this;
    }
    Later(const Later &) = delete;
    Later &operator=(const Later &) = delete;
    ~Later()
    {
        if (open_ && rh_reply_later(token_, rh_error("DROPPED nobody answered")) == RH_INVALID) {
            (void)rh_done(token_, RH_FAILED);
        }
    }
    // Of a message.
    rh_result reply(const Value &value) noexcept
    {
        open_ = false;
        return static_cast<rh_result>(rh_reply_later(token_, value.get()));
    }
    // Of any other callback.
    rh_result done(rh_result result = RH_OK) noexcept
    {
        open_ = false;
        return static_cast<rh_result>(rh_done(token_, result));
    }

private:
    rh_token token_{};
    bool open_ = false;
};

class Turn;

namespace detail {

// Run `body`, and tell `failed` what it threw.
template <class Body, class Failed> auto guarded(Body &&body, Failed &&failed) -> decltype(body())
{
#if defined(__cpp_exceptions)
    try {
        return body();
    } catch (const std::exception &e) {
        return failed(e.what());
    } catch (...) {
        return failed("an exception of no known class");
    }
#else
    (void)failed;
    return body();
#endif
}

// "ERR text", without what an error's line can't have.
inline std::string error_line(const char *what)
{
    std::string line = "ERR ";
    for (const char *c = what; *c != '\0' && line.size() < 200; c++) {
        line += static_cast<unsigned char>(*c) < ' ' ? ' ' : *c;
    }
    return line;
}

inline void fail(rh_actor *actor, const char *what) { (void)rh_fail(actor, error_line(what).c_str()); }

} // namespace detail

// Names a life of an actor: any thread may have something done on its worker.
class Life {
public:
    explicit Life(rh_token token) noexcept : token_(token) {}
    // Have f(Turn &) run on the actor's worker, between messages or as a part of what is deferred. RH_GONE: that life is over. If it
    // ends later, f is never run, and what it holds stays allocated until the process ends: post little to actors that end.
    template <class F> rh_result post(F &&f) const;

private:
    rh_token token_;
};

// What a callback may do. Results are those of the C functions.
class Turn {
public:
    explicit Turn(rh_actor *actor) noexcept : actor_(actor) {}
    Turn(const Turn &) = delete;
    Turn &operator=(const Turn &) = delete;
    rh_actor *get() const noexcept { return actor_; } // for functions of ringhold.h that are not here

    Bytes id() const noexcept { return view(rh_id(actor_)); }
    std::uint64_t fence() const noexcept { return rh_fence(actor_); }
    struct ::rh_incarnation incarnation() const noexcept { return ::rh_incarnation(actor_); }
    template <class T> T *shared() const noexcept { return static_cast<T *>(rh_shared(actor_)); }
    Life life() const noexcept { return Life(rh_life(actor_)); }

    rh_result reply(const Value &value) noexcept { return result(rh_reply(actor_, value.get())); }
    rh_result error(const char *text) noexcept { return reply(Value::error(text)); }
    [[nodiscard]] Later defer() noexcept { return Later(rh_defer(actor_)); }
    rh_result passivate() noexcept { return result(rh_passivate(actor_)); }
    rh_result fail(const char *text) noexcept { return result(rh_fail(actor_, text)); }

    // Call an actor; then(Turn &, const Answer &) gets its answer. What `then` holds is deleted, whatever happens.
    template <class F>
    rh_result call(std::uint16_t kind, Bytes id, Bytes payload, Milliseconds timeout, F &&then, bool idempotent = false)
    {
        using Then = std::decay_t<F>;
        auto *owned = new Then(std::forward<F>(then));
        return result(rh_call_owned(
            actor_, kind, raw(id), raw(payload), static_cast<std::uint32_t>(timeout.count()), idempotent ? RH_IDEMPOTENT : 0,
            [](rh_actor *actor, void *, const rh_answer *answer, void *argument) {
                detail::guarded(
                    [&] {
                        Turn turn(actor);
                        (*static_cast<Then *>(argument))(turn, Answer(*answer));
                    },
                    [&](const char *what) { detail::fail(actor, what); });
            },
            owned, [](void *argument) { delete static_cast<Then *>(argument); }));
    }
    rh_result send(std::uint16_t kind, Bytes id, Bytes payload) noexcept
    {
        return result(rh_send(actor_, kind, raw(id), raw(payload)));
    }
    rh_result send_once(std::uint16_t kind, Bytes id, Bytes payload) noexcept
    {
        return result(rh_send_once(actor_, kind, raw(id), raw(payload)));
    }

    rh_result push(Bytes payload) noexcept { return result(rh_push(actor_, raw(payload))); }
    rh_result push_one(std::uint64_t session, Bytes payload) noexcept
    {
        return result(rh_push_one(actor_, session, raw(payload)));
    }
    rh_result kick(std::uint32_t code, const char *text) noexcept { return result(rh_kick(actor_, code, text)); }
    rh_result rebind(std::uint16_t kind, Bytes id) noexcept { return result(rh_rebind(actor_, kind, raw(id))); }

    // f(Turn &) once after a time, or each time; 0: it could not be started. A move ends them, as it ends all timers.
    template <class F> std::uint64_t in(Milliseconds after, F &&f) { return timer_call(after, Milliseconds(0), std::forward<F>(f)); }
    template <class F> std::uint64_t every(Milliseconds each, F &&f) { return timer_call(each, each, std::forward<F>(f)); }
    // For T::timer(), which gets the number that this returns.
    std::uint64_t start(Milliseconds after, Milliseconds each = Milliseconds(0)) noexcept
    {
        return rh_timer_start(actor_, ms(after), ms(each), nullptr);
    }
    rh_result stop(std::uint64_t timer) noexcept { return result(rh_timer_stop(actor_, timer)); }

    // Of a durable kind: its values. What is got is borrowed until the callback returns or the values change.
    std::optional<Bytes> get(Bytes key) const noexcept
    {
        rh_bytes value;
        if (rh_state_get(actor_, raw(key), &value) != RH_OK) {
            return std::nullopt;
        }
        return view(value);
    }
    rh_result put(Bytes key, Bytes value) noexcept { return result(rh_state_put(actor_, raw(key), raw(value))); }
    rh_result erase(Bytes key) noexcept { return result(rh_state_delete(actor_, raw(key))); }
    rh_result undo() noexcept { return result(rh_state_undo(actor_)); }
    // f(Bytes key, Bytes value) of each, in the order of the keys; f changes no values.
    template <class F> void each_value(F &&f) const
    {
        rh_bytes key{nullptr, 0};
        rh_bytes value;
        while (rh_state_next(actor_, key, &key, &value) == RH_OK) {
            f(view(key), view(value));
        }
    }
    rh_result set_alarm(Bytes name, std::chrono::system_clock::time_point due, Milliseconds each = Milliseconds(0), Bytes payload = {}) noexcept
    {
        const auto since = std::chrono::duration_cast<Milliseconds>(due.time_since_epoch()).count();
        return result(rh_alarm_set(
            actor_, raw(name), static_cast<std::uint64_t>(since), static_cast<std::uint64_t>(each.count()), raw(payload)));
    }
    rh_result cancel_alarm(Bytes name) noexcept { return result(rh_alarm_cancel(actor_, raw(name))); }
    rh_result flush_soon() noexcept { return result(rh_flush_soon(actor_)); }

private:
    static rh_result result(int code) noexcept { return static_cast<rh_result>(code); }
    static std::uint32_t ms(Milliseconds time) noexcept { return static_cast<std::uint32_t>(time.count()); }
    template <class F> std::uint64_t timer_call(Milliseconds after, Milliseconds each, F &&f)
    {
        using Rings = std::decay_t<F>;
        return rh_timer_call(
            actor_, ms(after), ms(each),
            [](rh_actor *actor, void *, void *argument) {
                detail::guarded(
                    [&] {
                        Turn turn(actor);
                        (*static_cast<Rings *>(argument))(turn);
                    },
                    [&](const char *what) { detail::fail(actor, what); });
            },
            new Rings(std::forward<F>(f)), [](void *argument) { delete static_cast<Rings *>(argument); });
    }

    rh_actor *actor_;
};

template <class F> rh_result Life::post(F &&f) const
{
    using Posted = std::decay_t<F>;
    auto posted = std::make_unique<Posted>(std::forward<F>(f));
    const int code = rh_post(
        token_,
        [](rh_actor *actor, void *, void *argument) {
            const std::unique_ptr<Posted> mine(static_cast<Posted *>(argument));
            detail::guarded(
                [&] {
                    Turn turn(actor);
                    (*mine)(turn);
                },
                [&](const char *what) { detail::fail(actor, what); });
        },
        posted.get());
    if (code == RH_OK) {
        (void)posted.release();
    }
    return static_cast<rh_result>(code);
}

// Players of a room, for Turn::push_group().
class Group {
public:
    Group(std::uint16_t kind, std::size_t members_max) : group_(rh_group_new(kind, members_max)) {}
    explicit operator bool() const noexcept { return group_ != nullptr; }
    rh_group *get() const noexcept { return group_.get(); }
    rh_result join(Bytes id) noexcept { return static_cast<rh_result>(rh_group_join(get(), raw(id))); }
    rh_result leave(Bytes id) noexcept { return static_cast<rh_result>(rh_group_leave(get(), raw(id))); }
    bool has(Bytes id) const noexcept { return rh_group_has(get(), raw(id)) != 0; }
    std::size_t size() const noexcept { return rh_group_count(get()); }
    Bytes operator[](std::size_t index) const noexcept { return view(rh_group_at(get(), index)); }
    rh_result push(Turn &turn, Bytes payload) const noexcept
    {
        return static_cast<rh_result>(rh_group_push(turn.get(), get(), raw(payload)));
    }

private:
    struct Free {
        void operator()(rh_group *g) const noexcept { rh_group_free(g); }
    };
    std::unique_ptr<rh_group, Free> group_;
};

namespace detail {

#define RINGHOLD_HAS(name, ...)                                                                                        \
    template <class T, class = void> struct has_##name : std::false_type {};                                           \
    template <class T> struct has_##name<T, std::void_t<decltype(__VA_ARGS__)>> : std::true_type {}
RINGHOLD_HAS(activate, std::declval<T &>().activate(std::declval<Turn &>(), std::declval<const Bytes *>()));
RINGHOLD_HAS(save, std::declval<T &>().save(std::declval<Turn &>()));
RINGHOLD_HAS(resumed, std::declval<T &>().resumed(std::declval<Turn &>()));
RINGHOLD_HAS(ended, std::declval<T &>().ended(RH_MOVED));
RINGHOLD_HAS(timer, std::declval<T &>().timer(std::declval<Turn &>(), std::uint64_t{}));
RINGHOLD_HAS(alarm, std::declval<T &>().alarm(std::declval<Turn &>(), std::declval<const rh_alarm &>()));
RINGHOLD_HAS(session, std::declval<T &>().session(std::declval<Turn &>(), std::declval<const rh_session &>()));
RINGHOLD_HAS(flush, std::declval<T &>().flush(std::declval<Turn &>(), RH_MOVED));
RINGHOLD_HAS(upgrade, T::upgrade(std::uint32_t{}, Bytes{}));
RINGHOLD_HAS(start, T::start(std::declval<const rh_kind_info &>(), std::declval<void **>()));
RINGHOLD_HAS(stop, T::stop(std::declval<void *>()));
#undef RINGHOLD_HAS

// The number T::NAME if there is one, else 0.
#define RINGHOLD_SETTING(name)                                                                                         \
    template <class T, class = void> struct set_##name {                                                               \
        static constexpr std::uint32_t value = 0;                                                                      \
    };                                                                                                                 \
    template <class T> struct set_##name<T, std::void_t<decltype(std::uint32_t{T::name})>> {                           \
        static constexpr std::uint32_t value = T::name;                                                                \
    }
RINGHOLD_SETTING(durable);
RINGHOLD_SETTING(brief);
RINGHOLD_SETTING(ahead);
RINGHOLD_SETTING(remember);
RINGHOLD_SETTING(sessions);
RINGHOLD_SETTING(sessions_max);
RINGHOLD_SETTING(resume_ms);
RINGHOLD_SETTING(mailbox);
RINGHOLD_SETTING(idle_ms);
RINGHOLD_SETTING(flush_ms);
RINGHOLD_SETTING(state_max);
RINGHOLD_SETTING(memory);
RINGHOLD_SETTING(state_version);
RINGHOLD_SETTING(state_version_least);
RINGHOLD_SETTING(state_version_most);
#undef RINGHOLD_SETTING

// The callbacks of struct rh_actor_ops.
template <class T> struct Callbacks {
    static T &of(void *instance) noexcept { return *static_cast<T *>(instance); }

    static int activate(rh_actor *actor, const rh_bytes *state, std::uint64_t, void **instance)
    {
        return guarded(
            [&]() -> int {
                auto made = std::make_unique<T>();
                int code = RH_OK;
                if constexpr (has_activate<T>::value) {
                    Turn turn(actor);
                    const Bytes bytes = state == nullptr ? Bytes() : view(*state);
                    *instance = made.get();
                    code = made->activate(turn, state == nullptr ? nullptr : &bytes);
                }
                if (code == RH_OK || code == RH_PENDING) {
                    *instance = made.release();
                }
                return code;
            },
            [](const char *) -> int { return RH_FAILED; });
    }

    static void message(rh_actor *actor, void *instance, const rh_message *message)
    {
        guarded(
            [&] {
                Turn turn(actor);
                of(instance).message(turn, Message(*message));
            },
            [&](const char *what) { fail(actor, what); });
    }

    static int handoff(rh_actor *actor, void *instance, rh_out *out)
    {
        return guarded(
            [&]() -> int {
                Turn turn(actor);
                const std::string state = of(instance).save(turn);
                rh_out_put(out, state.data(), state.size());
                return RH_OK;
            },
            [](const char *) -> int { return RH_BUSY; });
    }

    static void resume(rh_actor *actor, void *instance)
    {
        guarded(
            [&] {
                Turn turn(actor);
                of(instance).resumed(turn);
            },
            [](const char *) {});
    }

    static void deactivate(rh_actor *, void *instance, rh_why why)
    {
        const std::unique_ptr<T> mine(static_cast<T *>(instance));
        if constexpr (has_ended<T>::value) {
            guarded([&] { mine->ended(why); }, [](const char *) {});
        }
    }

    static void timer(rh_actor *actor, void *instance, std::uint64_t timer, void *)
    {
        guarded(
            [&] {
                Turn turn(actor);
                of(instance).timer(turn, timer);
            },
            [&](const char *what) { fail(actor, what); });
    }

    static int alarm(rh_actor *actor, void *instance, const rh_alarm *alarm)
    {
        return guarded(
            [&]() -> int {
                Turn turn(actor);
                of(instance).alarm(turn, *alarm);
                return RH_OK;
            },
            [](const char *) -> int { return RH_FAILED; }); // what it changed is undone, and it goes off again
    }

    static int session(rh_actor *actor, void *instance, const rh_session *event)
    {
        return guarded(
            [&]() -> int {
                Turn turn(actor);
                return of(instance).session(turn, *event);
            },
            [](const char *) -> int { return RH_FAILED; });
    }

    static int flush(rh_actor *actor, void *instance, rh_why why, std::uint64_t)
    {
        return guarded(
            [&]() -> int {
                Turn turn(actor);
                return of(instance).flush(turn, why);
            },
            [](const char *) -> int { return RH_FAILED; });
    }

    static int upgrade(rh_actor *, std::uint32_t version, const rh_bytes *state, rh_out *out)
    {
        return guarded(
            [&]() -> int {
                const std::string upgraded = T::upgrade(version, view(*state));
                rh_out_put(out, upgraded.data(), upgraded.size());
                return RH_OK;
            },
            [](const char *) -> int { return RH_FAILED; });
    }

    static int start(const rh_kind_info *info, void **shared) { return T::start(*info, shared); }
    static void stop(void *shared) { T::stop(shared); }
};

} // namespace detail

// The table of a kind whose actors are objects of T. `name` is borrowed.
template <class T> constexpr rh_actor_ops kind(const char *name) noexcept
{
    using Calls = detail::Callbacks<T>;
    rh_actor_ops ops{};

    ops.abi = RH_ABI;
    ops.size = sizeof ops;
    ops.name = name;
    ops.activate = Calls::activate;
    ops.message = Calls::message;
    ops.deactivate = Calls::deactivate;
    if constexpr (detail::has_save<T>::value) {
        ops.handoff = Calls::handoff;
    }
    if constexpr (detail::has_resumed<T>::value) {
        ops.resume = Calls::resume;
    }
    if constexpr (detail::has_timer<T>::value) {
        ops.timer = Calls::timer;
    }
    if constexpr (detail::has_alarm<T>::value) {
        ops.alarm = Calls::alarm;
    }
    if constexpr (detail::has_session<T>::value) {
        ops.session = Calls::session;
    }
    if constexpr (detail::has_flush<T>::value) {
        ops.flush = Calls::flush;
    }
    if constexpr (detail::has_upgrade<T>::value) {
        ops.upgrade = Calls::upgrade;
    }
    if constexpr (detail::has_start<T>::value) {
        ops.start = Calls::start;
    }
    if constexpr (detail::has_stop<T>::value) {
        ops.stop = Calls::stop;
    }
    ops.durable = detail::set_durable<T>::value;
    ops.brief = detail::set_brief<T>::value;
    ops.ahead = detail::set_ahead<T>::value;
    ops.remember = detail::set_remember<T>::value;
    ops.sessions = detail::set_sessions<T>::value;
    ops.sessions_max = detail::set_sessions_max<T>::value;
    ops.resume_ms = detail::set_resume_ms<T>::value;
    ops.mailbox = detail::set_mailbox<T>::value;
    ops.idle_ms = detail::set_idle_ms<T>::value;
    ops.flush_ms = detail::set_flush_ms<T>::value;
    ops.state_max = detail::set_state_max<T>::value;
    ops.memory = detail::set_memory<T>::value;
    ops.state_version = detail::set_state_version<T>::value;
    ops.state_version_least = detail::set_state_version_least<T>::value;
    ops.state_version_most = detail::set_state_version_most<T>::value;
    return ops;
}

} // namespace ringhold

// The one kind of a shared object.
#define RINGHOLD_ACTOR(T, name) extern "C" RH_API const rh_actor_ops ringhold_actor = ringhold::kind<T>(name);

#endif
