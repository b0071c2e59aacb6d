/* SPDX-License-Identifier: Apache-2.0
 *
 * A message becomes a call of a method.
 */
#include "lua/actor.h"
#include "lua/words.h"

#include <lua5.4/lauxlib.h>
#include <stdio.h>
#include <string.h>

struct lua_ask {
    struct lua_actor *lua_actor;
    const struct rh_message *message;
    struct words words;
    char name[TASK_NAME_SIZE]; /* of the method, for logs */
};

/* Methods that others may call: functions of the kind's table, but for callbacks and _private ones.
 */
static bool push_method(lua_State *L, struct lua_ask *a, struct bytes name)
{
    const struct lua_actor *p = a->lua_actor;

    if (name.size == 0 || name.size >= TASK_NAME_SIZE || name.data[0] == '_' ||
        (name.size >= 3 && memcmp(name.data, "on_", 3) == 0) ||
        memchr(name.data, '\0', name.size) != NULL) {
        return false;
    }
    memcpy(a->name, name.data, name.size);
    a->name[name.size] = '\0';
    return lua_actor_push_function(L, p, a->name);
}

static void push_words(lua_State *L, const struct bytes *word, size_t count)
{
    luaL_checkstack(L, (int)count + 1, NULL);
    for (size_t i = 0; i < count; i++) {
        (void)lua_pushlstring(L, (const char *)word[i].data, word[i].size);
    }
}

static void begin_method(lua_State *L, struct lua_ask *a, int argument_count)
{
    lua_actor_push_self(L, a->lua_actor);
    lua_rotate(L, -(argument_count + 1), 1);
    struct task *t = task_new(L, a->lua_actor, argument_count + 1, a->name);
    t->turn = a->lua_actor->turn;
    t->main = true;
}

static void raise_unknown(lua_State *L, const struct lua_actor *p, struct bytes name)
{
    char text[TASK_NAME_SIZE];
    const int size = name.size < sizeof text ? (int)name.size : (int)sizeof text - 1;

    (void)snprintf(text, sizeof text, "%.*s", size, (const char *)name.data);
    (void)luaL_error(L, "kind %s has no method '%s'", p->kind->kind_decl.name, text);
}

/* No such method: on_message is told all of it, the name first. */
static void begin_default(lua_State *L, struct lua_ask *a, struct bytes name, int argument_count)
{
    if (!lua_actor_push_function(L, a->lua_actor, "on_message")) {
        raise_unknown(L, a->lua_actor, name);
    }
    (void)lua_pushlstring(L, (const char *)name.data, name.size);
    lua_rotate(L, -(argument_count + 2), 2);
    (void)snprintf(a->name, sizeof a->name, "on_message");
    begin_method(L, a, argument_count + 1);
}

/* {"GET", key, …}: the key is the actor's id again. */
static void begin_command(lua_State *L, struct lua_ask *a)
{
    const struct rh_message *m = a->message;
    struct bytes rest[WORDS_MAX];
    uint8_t name[TASK_NAME_SIZE] = "";
    const size_t size = m->argument[0].size;
    size_t count = 0;

    for (size_t i = 2; i < m->argument_count && count < WORDS_MAX; i++) {
        rest[count++] = bytes_of(m->argument[i].data, m->argument[i].size);
    }
    for (size_t i = 0; i < size && i + 1 < sizeof name; i++) {
        const uint8_t c = ((const uint8_t *)m->argument[0].data)[i];

        name[i] = (uint8_t)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    }
    const struct bytes method = bytes_of(name, size < sizeof name ? size : sizeof name - 1);
    const bool has = push_method(L, a, method);
    push_words(L, rest, count);
    if (has) {
        begin_method(L, a, (int)count);
    } else {
        begin_default(L, a, method, (int)count);
    }
}

static void begin_packed(lua_State *L, struct lua_ask *a, struct bytes payload)
{
    size_t size = 0;
    const int count = answer_unpack(L, payload);

    if (count == 0 || lua_type(L, -count) != LUA_TSTRING) {
        (void)luaL_error(L, "a call without a method");
    }
    const char *name = lua_tolstring(L, -count, &size); // It stays on the stack: no collection.
    const int at = lua_absindex(L, -count);
    if (push_method(L, a, bytes_of(name, size))) {
        lua_insert(L, at + 1);
        begin_method(L, a, count - 1);
    } else {
        begin_default(L, a, bytes_of(name, size), count - 1);
    }
}

static void begin_payload(lua_State *L, struct lua_ask *a)
{
    const struct bytes payload = bytes_of(a->message->payload.data, a->message->payload.size);
    const bool raw = a->lua_actor->kind->kind_decl.raw;
    const enum err error = raw ? ERR_OK : words_split(payload, &a->words);

    if (!raw && error == ERR_OK && a->words.count > 0 && push_method(L, a, a->words.word[0])) {
        push_words(L, a->words.word + 1, a->words.count - 1);
        begin_method(L, a, (int)a->words.count - 1);
        return;
    }
    if (lua_actor_push_function(L, a->lua_actor, "on_message")) {
        (void)lua_pushlstring(L, (const char *)payload.data, payload.size);
        (void)snprintf(a->name, sizeof a->name, "on_message");
        begin_method(L, a, 1);
        return;
    }
    if (error != ERR_OK) {
        (void)luaL_error(L,
                         error == ERR_INVALID ? "a quote does not end in the payload"
                                              : "more than %d words in the payload",
                         WORDS_MAX);
    }
    raise_unknown(L, a->lua_actor, raw || a->words.count == 0 ? bytes_of("", 0) : a->words.word[0]);
}

static void begin_ask(lua_State *L, void *argument)
{
    struct lua_ask *a = argument;
    const struct rh_message *m = a->message;
    struct bytes payload = bytes_of(m->payload.data, m->payload.size);

    if (m->argument_count > 0) {
        begin_command(L, a);
    } else if (m->from.size > 0 && answer_is_packed(&payload)) {
        a->lua_actor->packed = true;
        begin_packed(L, a, payload);
    } else {
        begin_payload(L, a);
    }
}

void lua_actor_message(struct rh_actor *actor, void *instance, const struct rh_message *message)
{
    struct lua_actor *p = instance;
    struct lua_ask a = {.lua_actor = p, .message = message};
    char error[LUA_VM_ERROR_SIZE];

    (void)actor;
    lua_vm_refresh(p->lua_vm);
    turn_begin(p, TURN_MESSAGE);
    p->from_kind = message->from_kind;
    buffer_put(&p->from, message->from.data, message->from.size);
    if (!lua_vm_try(p->lua_vm, begin_ask, &a, error)) {
        turn_fail(p, a.name[0] == '\0' ? "message" : a.name, error);
    }
    words_fini(&a.words);
    (void)turn_settle(p);
}
