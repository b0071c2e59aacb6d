/* SPDX-License-Identifier: Apache-2.0
 *
 * Judges frames by the table of wire/access.h.
 */
#include "wire/access.h"

#include "base/assert.h"
#include "base/mutant.h"
#include "wire/control.h"
#include "wire/hello.h"
#include "wire/record.h"
#include "wire/session.h"
#include "wire/stream.h"

#include <stdatomic.h>

static const struct row {
    const char *text;
    uint8_t to[ACCESS_ROLES];
} rows[] = {
    {"none", {0}},
#define X(name, text, ...) {text, {__VA_ARGS__}},
    // clang-format off
    ACCESS_FRAMES(X)
    ACCESS_REQUESTS(X)
#undef X
#define X(name, text, ...) {"note " text, {__VA_ARGS__}},
    ACCESS_NOTES(X)
#undef X
#define X(name, text, ...) {text, {__VA_ARGS__}},
    ACCESS_BODIES(X)
#undef X
#define X(name, text, ...) {"Admin " text, {__VA_ARGS__}},
    ACCESS_WHATS(X)
#undef X
    // clang-format on
};

static _Atomic uint64_t refused[ACCESS_ROLES];

const char *access_text(enum access_message m)
{
    return rows[m].text;
}

bool access_may(enum access_message m, unsigned from, enum link_role to)
{
    ASSERT(m > ACCESS_NONE && m < ACCESS_END && from < ACCESS_ROLES);
    return mutant(M_ANYROLE) || (rows[m].to[from] & (1u << (to - ROLE_COORDINATOR))) != 0;
}

/* ---- what a frame says ---- */

/* Who speaks to whom, and what was found that may not be said. */
struct access_judge {
    unsigned from;
    enum link_role to;
    enum access_message refused;
};

static void say(struct access_judge *j, enum access_message m)
{
    if (j->refused == ACCESS_NONE && !access_may(m, j->from, j->to)) {
        j->refused = m;
    }
}

static enum access_message frame_message(enum frame_type type)
{
    switch (type) {
#define X(name, ...)   \
    case FRAME_##name: \
        return ACCESS_FRAME_##name;
        ACCESS_FRAMES(X)
#undef X
    case FRAME_CONTROL:
    case FRAME_REQUEST:
    case FRAME_STREAM_REQUEST:
        break;
    }
    return ACCESS_NONE;
}

/* Of a field of Control; ACCESS_NONE: it is no body, or none that we know. */
static enum access_message body_message(uint32_t field)
{
    switch ((Rh__Control__BodyCase)field) {
#define X(name, ...)               \
    case RH__CONTROL__BODY_##name: \
        return field == 0 ? ACCESS_NONE : ACCESS_BODY_##name;
        ACCESS_BODIES(X)
#undef X
    case _RH__CONTROL__BODY__CASE_IS_INT_SIZE:
        break;
    }
    return ACCESS_NONE;
}

static enum access_message what_message(uint32_t field)
{
    switch ((Rh__Admin__WhatCase)field) {
#define X(name, ...)             \
    case RH__ADMIN__WHAT_##name: \
        return ACCESS_WHAT_##name;
        ACCESS_WHATS(X)
#undef X
    case RH__ADMIN__WHAT__NOT_SET:
    case _RH__ADMIN__WHAT__CASE_IS_INT_SIZE:
        break;
    }
    return ACCESS_NONE;
}

static enum access_message note_message(uint8_t type)
{
    switch ((enum note_type)type) {
#define X(name, ...)  \
    case NOTE_##name: \
        return ACCESS_NOTE_##name;
        ACCESS_NOTES(X)
#undef X
    }
    return ACCESS_NONE;
}

/* A varint of `size_max` bytes at most, as protobuf-c takes it. */
static uint64_t get_varint(struct reader *in, unsigned size_max)
{
    uint64_t value = 0;

    for (unsigned i = 0; i < size_max; i++) {
        const uint8_t byte = get_u8(in);

        value |= (uint64_t)(byte & 0x7f) << 7 * i;
        if ((byte & 0x80) == 0) {
            return value;
        }
    }
    in->bad = true;
    return 0;
}

enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

/* Take the next field off; `value` is of one of bytes. False: there is none, or it makes no sense:
 * then nobody decodes the message. */
static bool next_field(struct reader *in, uint32_t *field, struct bytes *value)
{
    *value = (struct bytes){0};
    if (in->bad || in->left == 0 || (in->at[0] & 0xf8) == 0) {
        in->bad = in->left != 0;
        return false;
    }
    const uint64_t key = get_varint(in, 5);
    *field = (uint32_t)(key >> 3);
    switch (key & 7) {
    case WIRE_VARINT:
        (void)get_varint(in, 10);
        break;
    case WIRE_FIXED64:
        (void)get_u64(in);
        break;
    case WIRE_FIXED32:
        (void)get_u32(in);
        break;
    case WIRE_BYTES:
        value->size = (size_t)get_varint(in, 5);
        value->data = get_bytes(in, value->size);
        break;
    default:
        in->bad = true;
    }
    return !in->bad;
}

static void judge_admin(struct access_judge *j, struct bytes bytes)
{
    struct reader in = {.at = bytes.data, .left = bytes.size};
    struct bytes value;
    uint32_t field;

    while (next_field(&in, &field, &value)) {
        if (what_message(field) != ACCESS_NONE) {
            say(j, what_message(field));
        }
    }
}

/* There may be several bodies, of which a decoder takes the last, or parts of each: all must be
 * allowed. */
static void judge_control(struct access_judge *j, struct bytes bytes)
{
    struct reader in = {.at = bytes.data, .left = bytes.size};
    struct bytes value;
    uint32_t field;
    bool known = false;

    while (next_field(&in, &field, &value)) {
        const enum access_message m = body_message(field);

        if (m != ACCESS_NONE) {
            known = true;
            say(j, m);
        }
        if (m == ACCESS_BODY_ADMIN) {
            judge_admin(j, value);
        }
    }
    if (!known && !in.bad) {
        say(j, ACCESS_BODY__NOT_SET);
    }
}

/* Whatever requests there are: then none of them needs a look. So it is with nodes, which forward.
 */
static bool may_ask_all(const struct access_judge *j)
{
    bool all = true;

#define X(name, ...) all = all && access_may(ACCESS_##name, j->from, j->to);
    ACCESS_REQUESTS(X)
#undef X
#define X(name, ...) all = all && access_may(ACCESS_NOTE_##name, j->from, j->to);
    ACCESS_NOTES(X)
#undef X
    return all;
}

/* `calls`: it comes of calls of actors. `forwarded`: another asked it first. */
static void judge_request(struct access_judge *j, uint8_t flags, bool calls, bool forwarded,
                          struct bytes body)
{
    struct caller caller;

    say(j, ACCESS_REQUEST);
    if ((flags & REQUEST_CALL) != 0 || calls) {
        say(j, ACCESS_CALL);
    }
    if ((flags & REQUEST_HELD) != 0 || forwarded) {
        say(j, ACCESS_FORWARDED);
    }
    if ((flags & REQUEST_SESSION) == 0 ||
        ((flags & REQUEST_CALL) != 0 && caller_get(&body, &caller) != ERR_OK)) {
        return;
    }
    const enum access_message note = note_message(body.size == 0 ? 0 : body.data[0]);
    if (note != ACCESS_NONE) {
        say(j, note);
    }
}

static void judge_requests(struct access_judge *j, const struct frame *frame)
{
    struct reader in = {.at = frame->body.data, .left = frame->body.size};
    struct request_record r = {.body = {0}};

    for (uint16_t i = 0; i < frame->count; i++) {
        if (request_get_behind(&in, r.body, &r) != ERR_OK) {
            return;
        }
        judge_request(j, r.flags, r.chain_count > 0, r.hops > 0, r.body);
    }
}

static void judge_stream_requests(struct access_judge *j, const struct frame *frame)
{
    struct reader in;
    struct stream_head head;
    struct stream_request r;

    if (stream_head_get(frame, &head, &in) != ERR_OK) {
        return;
    }
    for (uint16_t i = 0; i < frame->count && stream_request_get(&in, &r) == ERR_OK; i++) {
        const bool forwarded = r.hops > 0 || r.name.asker != 0;

        judge_request(j, r.flags, r.chain.size > 0, forwarded, r.body);
    }
}

enum access_message access_judge(const struct frame *frame, unsigned from, enum link_role to)
{
    struct access_judge j = {.from = from, .to = to};

    const bool asks = frame->type == FRAME_REQUEST || frame->type == FRAME_STREAM_REQUEST;

    if (frame->type == FRAME_CONTROL) {
        judge_control(&j, frame->body);
    } else if (asks && may_ask_all(&j)) {
        return ACCESS_NONE;
    } else if (frame->type == FRAME_REQUEST) {
        say(&j, ACCESS_REQUEST);
        judge_requests(&j, frame);
    } else if (frame->type == FRAME_STREAM_REQUEST) {
        say(&j, ACCESS_REQUEST);
        judge_stream_requests(&j, frame);
    } else {
        say(&j, frame_message(frame->type));
    }
    return j.refused;
}

/* ---- figures ---- */

void access_count(enum link_role from)
{
    atomic_fetch_add_explicit(&refused[from], 1, memory_order_relaxed);
}

void access_put_metrics(struct metrics *m)
{
    static const struct metric metric = {
        "ringhold_link_messages_refused_total",
        "Messages refused because the sender's role may not send them, by role.",
        METRIC_COUNTER};

    for (enum link_role r = ROLE_COORDINATOR; r <= ROLE_CLI; r++) {
        metrics_put_labelled(m,
                             &metric,
                             "role",
                             link_role_name(r),
                             atomic_load_explicit(&refused[r], memory_order_relaxed));
    }
}
