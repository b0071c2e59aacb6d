/* SPDX-License-Identifier: Apache-2.0
 *
 * ringhold_test.h: actors on the shipped runtime and store, with a mailbox each, in a time that a
 * test sets.
 */
#include "node/kit/inside.h"

#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>

static const uint64_t BEGIN_MS = 1767225600000; /* 2026-01-01 */

_Noreturn void kit_wrong(const char *what)
{
    (void)fprintf(stderr, "ringhold-test: %s\n", what);
    abort();
}

void kit_check(const struct rh_test *t)
{
    if (t == NULL) {
        kit_wrong("there is no test");
    }
}

struct bytes kit_bytes(const char *text)
{
    return bytes_of(text, text == NULL ? 0 : strlen(text));
}

static const char *text_of(struct rh_test *t, struct bytes bytes)
{
    buffer_clear(&t->text);
    buffer_put(&t->text, bytes.data, bytes.size);
    buffer_put(&t->text, "", 1);
    return (const char *)t->text.data;
}

static struct bytes id_of(const struct rh_test *t, uint16_t kind, const char *id)
{
    kit_check(t);
    if (id == NULL || id[0] == '\0' || strlen(id) > RH_ID_MAX) {
        kit_wrong("an id has 1 to 255 bytes");
    }
    if (kinds_find(&t->kinds, kind) == NULL) {
        kit_wrong("no such kind is hosted");
    }
    return kit_bytes(id);
}

static struct puppet *named(struct rh_test *t, uint16_t kind, const char *id)
{
    return puppet_of(t, kind, id_of(t, kind, id));
}

struct rh_test *rh_test_new(void)
{
    struct rh_test *t = mem_new(1, sizeof *t);

    list_init(&t->puppets);
    list_init(&t->asked);
    list_init(&t->over);
    t->now_us = 1000000;
    return t;
}

void rh_test_free(struct rh_test *t)
{
    struct list_link *link;

    if (t == NULL) {
        return;
    }
    if (t->started) {
        runtime_close(t->runtime, RH_STOP);
        kit_drop_tasks(t);
    }
    while ((link = list_pop_front(&t->over)) != NULL) {
        letter_free(CONTAINER_OF(link, struct letter, link));
    }
    if (t->store != NULL) {
        t->store->close(t->store);
    }
    while ((link = list_pop_front(&t->puppets)) != NULL) {
        puppet_free(CONTAINER_OF(link, struct puppet, link));
    }
    kinds_fini(&t->kinds);
    buffer_fini(&t->answer);
    buffer_fini(&t->text);
    mem_free(t);
}

int rh_test_host(struct rh_test *t, uint16_t kind, const struct rh_actor_ops *ops,
                 const char *argument)
{
    const struct rh_kind hosted = {.number = kind, .ops = ops, .argument = argument};

    kit_check(t);
    if (t->started) {
        kit_wrong("kinds are hosted before the first actor lives");
    }
    return kinds_add(&t->kinds, &hosted) == ERR_OK && kinds_start(&t->kinds, "test") == ERR_OK
               ? RH_OK
               : RH_INVALID;
}

const char *rh_test_call(struct rh_test *t, uint16_t kind, const char *id, const char *payload)
{
    struct puppet *s = named(t, kind, id);

    kit_start(t);
    t->answered = false;
    t->status = RH_TIMEOUT;
    letter_put(t, s, 0, kit_bytes(payload), KIT_DEADLINE_US)->asked = true;
    kit_pass(t, t->now_us + KIT_DEADLINE_US, true);
    if (!t->answered) {
        if (s->running != NULL) {
            s->running->asked = false;
        }
        return text_of(t, kit_bytes("TIMEOUT it got no answer in time"));
    }
    return text_of(t, buffer_bytes(&t->answer));
}

int rh_test_status(const struct rh_test *t)
{
    kit_check(t);
    return t->status;
}

struct rh_bytes rh_test_bytes(const struct rh_test *t)
{
    kit_check(t);
    return (struct rh_bytes){t->text.data, t->text.size == 0 ? 0 : t->text.size - 1};
}

void rh_test_send(struct rh_test *t, uint16_t kind, const char *id, const char *payload)
{
    struct puppet *s = named(t, kind, id);

    kit_start(t);
    (void)letter_put(t, s, REQUEST_NO_REPLY, kit_bytes(payload), KIT_SEND_US);
    kit_settle(t);
}

void rh_test_advance(struct rh_test *t, uint32_t ms)
{
    kit_start(t);
    kit_pass(t, t->now_us + (uint64_t)ms * 1000, false);
}

uint64_t rh_test_clock(const struct rh_test *t)
{
    kit_check(t);
    return BEGIN_MS + (t->now_us - 1000000) / 1000;
}

void rh_test_on_time(struct rh_test *t, void (*moved)(void *context, uint64_t clock_ms),
                     void *context)
{
    kit_check(t);
    t->on_time = moved;
    t->on_time_context = context;
    moved(context, rh_test_clock(t));
}

int rh_test_move(struct rh_test *t, uint16_t kind, const char *id)
{
    struct puppet *s = named(t, kind, id);

    if (s->actor == NULL || s->task != VERB_NONE) {
        return s->actor == NULL ? RH_GONE : RH_BUSY;
    }
    s->task = VERB_EXPORT;
    runtime_export(s->actor);
    for (size_t i = 0; s->task == VERB_EXPORT && i < KIT_DEADLINE_US / 1000; i++) {
        t->now_us += 1000; // it may finish later
        kit_tell_time(t);
        (void)kit_store_one(t);
    }
    if (s->task == VERB_EXPORT || s->error == ERR_BUSY) {
        return RH_BUSY;
    }
    s->moved = true;
    s->has_state = s->error == ERR_OK && s->has_state;
    puppet_discard(s, RH_MOVED);
    kit_settle(t);
    return RH_OK;
}

int rh_test_lives(const struct rh_test *t, uint16_t kind, const char *id)
{
    const struct puppet *s = puppet_find(t, kind, id_of(t, kind, id));

    return s != NULL && s->actor != NULL && s->task != VERB_ACTIVATE ? 1 : 0;
}

void rh_test_crash(struct rh_test *t)
{
    kit_start(t);
    kit_crash(t);
}

void rh_test_commits(struct rh_test *t, enum rh_test_commits how, uint32_t count)
{
    kit_check(t);
    t->how = how;
    t->how_many = how == RH_TEST_COMMITS_GOOD ? 0 : count;
}

static void put_note(struct rh_test *t, struct puppet *s, const struct note *note)
{
    struct buffer body = {0};

    note_put(&body, note);
    t->answered = false;
    letter_put(t, s, REQUEST_SESSION, buffer_bytes(&body), KIT_DEADLINE_US)->asked = true;
    buffer_fini(&body);
    kit_pass(t, t->now_us + KIT_DEADLINE_US, true);
}

int rh_test_bind(struct rh_test *t, uint16_t kind, const char *id)
{
    struct puppet *s = named(t, kind, id);
    const struct note note = {
        .type = NOTE_BIND, .gateway = 1, .connection = ++t->connections, .round = 1};
    struct bound bound;

    kit_start(t);
    put_note(t, s, &note);
    if (!t->answered || bound_get(buffer_bytes(&t->answer), &bound) != ERR_OK ||
        (bound.result != BOUND_NEW && bound.result != BOUND_KEPT)) {
        return RH_FAILED;
    }
    s->connection = note.connection;
    return RH_OK;
}

void rh_test_leave(struct rh_test *t, uint16_t kind, const char *id)
{
    struct puppet *s = named(t, kind, id);
    const struct note note = {
        .type = NOTE_LOST, .gateway = 1, .connection = s->connection, .why = NOTE_LOST_CLOSED};

    if (s->connection != 0) {
        s->connection = 0;
        put_note(t, s, &note);
    }
}

const char *rh_test_pushed(struct rh_test *t, uint16_t kind, const char *id)
{
    struct puppet *s = named(t, kind, id);
    uint64_t size;

    if (s->pushes_read == s->pushes.size) {
        return NULL;
    }
    memcpy(&size, s->pushes.data + s->pushes_read, sizeof size);
    const struct bytes bytes =
        bytes_of(s->pushes.data + s->pushes_read + sizeof size, (size_t)size);
    s->pushes_read += sizeof size + (size_t)size;
    return text_of(t, bytes);
}
