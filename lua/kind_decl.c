/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads and checks what a script declares of a kind.
 */
#include "lua/kind_decl.h"

#include <ringhold.h>

#include <lua5.4/lauxlib.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum {
    SECONDS_MAX = 4000000, /* about 46 days, below UINT32_MAX in milliseconds */
    CALL_DEFAULT_MS = 5000,
    CALL_MAX_MS = 60000,
    LIMIT_DEFAULT_MS = 30000,
    DAEMONS_MAX = 1000,
    STATE_MAX = 64 << 20,
    OPTIONS_INDEX = 2,
    PART_WHOLE = 1000, /* of rh_kind.part */
};

enum field_type {
    FIELD_COUNT,
    FIELD_SECONDS,
    FIELD_SWITCH,
    FIELD_PLACEMENT,
    FIELD_PART,
    FIELD_SESSIONS,
    FIELD_IDS
};

/* Where each option goes. */
static const struct field {
    const char *name;
    enum field_type type;
    size_t offset;
    uint32_t min;
    uint32_t max;
} fields[] = {
    {"number", FIELD_COUNT, offsetof(struct kind_decl, number), 0, UINT16_MAX},
    {"idle", FIELD_SECONDS, offsetof(struct kind_decl, idle_ms), 1, SECONDS_MAX},
    {"flush", FIELD_SECONDS, offsetof(struct kind_decl, flush_ms), 1, SECONDS_MAX},
    {"mailbox", FIELD_COUNT, offsetof(struct kind_decl, mailbox), 1, 1000000},
    {"memory", FIELD_COUNT, offsetof(struct kind_decl, memory), 1, UINT32_MAX},
    {"state_max", FIELD_COUNT, offsetof(struct kind_decl, state_max), 64, STATE_MAX},
    {"state_version", FIELD_COUNT, offsetof(struct kind_decl, state_version), 1, UINT32_MAX},
    {"state_version_least",
     FIELD_COUNT,
     offsetof(struct kind_decl, state_version_least),
     0,
     UINT32_MAX},
    {"state_version_most",
     FIELD_COUNT,
     offsetof(struct kind_decl, state_version_most),
     1,
     UINT32_MAX},
    {"placement", FIELD_PLACEMENT, offsetof(struct kind_decl, placement), 0, 0},
    {"part", FIELD_PART, offsetof(struct kind_decl, part), 0, 1},
    {"daemons", FIELD_COUNT, offsetof(struct kind_decl, daemons), 1, DAEMONS_MAX},
    {"sessions", FIELD_SESSIONS, offsetof(struct kind_decl, policy), 0, 0},
    {"sessions_max", FIELD_COUNT, offsetof(struct kind_decl, sessions_max), 1, RH_SESSIONS_MAX},
    {"timeout", FIELD_COUNT, offsetof(struct kind_decl, call_ms), 1, CALL_MAX_MS},
    {"limit", FIELD_COUNT, offsetof(struct kind_decl, limit_ms), 1, 3600000},
    {"raw", FIELD_SWITCH, offsetof(struct kind_decl, raw), 0, 0},
    {"durable", FIELD_SWITCH, offsetof(struct kind_decl, durable), 0, 0},
    {"remembered", FIELD_IDS, offsetof(struct kind_decl, remembers), 0, 0},
};

static void *target(struct kind_decl *d, const struct field *f)
{
    return (char *)d + f->offset;
}

static void refuse(lua_State *L, const struct kind_decl *d, const char *option, const char *what)
{
    (void)luaL_error(L, "kind '%s': %s %s", d->name, option, what);
}

static void read_count(lua_State *L, const struct field *f, struct kind_decl *d)
{
    char text[80];
    int is_integer = 0;
    const lua_Integer n = lua_tointegerx(L, -1, &is_integer);

    if (!is_integer || lua_type(L, -1) != LUA_TNUMBER || n < (lua_Integer)f->min ||
        n > (lua_Integer)f->max) {
        (void)snprintf(text, sizeof text, "must be a whole number, %u to %u", f->min, f->max);
        refuse(L, d, f->name, text);
    }
    if (f->offset == offsetof(struct kind_decl, number)) {
        d->number = (uint16_t)n;
    } else {
        const uint32_t value = (uint32_t)n;
        memcpy(target(d, f), &value, sizeof value);
    }
}

static void read_seconds(lua_State *L, const struct field *f, struct kind_decl *d)
{
    uint32_t ms = UINT32_MAX;

    if (lua_type(L, -1) == LUA_TNUMBER) {
        const lua_Number s = lua_tonumber(L, -1);

        if (!(s >= 0.001 && s <= (lua_Number)f->max)) {
            refuse(L, d, f->name, "must be seconds, 0.001 to 4000000, or false for never");
        }
        ms = (uint32_t)(s * 1000);
    } else if (lua_type(L, -1) != LUA_TBOOLEAN || lua_toboolean(L, -1)) {
        refuse(L, d, f->name, "must be seconds, or false for never");
    }
    memcpy(target(d, f), &ms, sizeof ms);
}

/* A part of 1, in thousandths. */
static void read_part(lua_State *L, const struct field *f, struct kind_decl *d)
{
    const lua_Number part = lua_type(L, -1) == LUA_TNUMBER ? lua_tonumber(L, -1) : -1;

    if (!(part >= 0 && part <= 1)) {
        refuse(L, d, f->name, "must be a number, 0 to 1");
    }
    d->part = (uint32_t)(part * PART_WHOLE + 0.5);
    d->part = d->part == 0 ? RH_PART_NONE : d->part;
}

/* One of some words, up to a NULL: its number. */
static void read_word(lua_State *L, const struct field *f, struct kind_decl *d,
                      const char *const *words)
{
    const char *word = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";
    char text[80] = "must be one of";

    for (uint32_t i = 0; words[i] != NULL; i++) {
        if (strcmp(word, words[i]) == 0) {
            memcpy(target(d, f), &i, sizeof i);
            return;
        }
    }
    for (uint32_t i = 0; words[i] != NULL; i++) {
        const size_t size = strlen(text);

        (void)snprintf(text + size, sizeof text - size, " \"%s\"", words[i]);
    }
    refuse(L, d, f->name, text);
}

static void read_field(lua_State *L, const struct field *f, struct kind_decl *d)
{
    static const char *const places[] = {[RH_PLACE_HASH] = "hash",
                                         [RH_PLACE_SINGLETON] = "singleton",
                                         [RH_PLACE_DAEMONS] = "daemons",
                                         [RH_PLACE_TOGETHER] = "together",
                                         [RH_PLACE_HOSTS] = "hosts",
                                         NULL};
    static const char *const policies[] = {[RH_SESSIONS_KICK_OLD] = "kick_old",
                                           [RH_SESSIONS_REJECT_NEW] = "reject_new",
                                           [RH_SESSIONS_ALLOW] = "allow",
                                           NULL};

    switch (f->type) {
    case FIELD_COUNT:
        read_count(L, f, d);
        return;
    case FIELD_SECONDS:
        read_seconds(L, f, d);
        return;
    case FIELD_PART:
        read_part(L, f, d);
        return;
    case FIELD_PLACEMENT:
        read_word(L, f, d, places);
        return;
    case FIELD_SESSIONS:
        read_word(L, f, d, policies);
        return;
    case FIELD_SWITCH:
        if (lua_type(L, -1) != LUA_TBOOLEAN) {
            refuse(L, d, f->name, "must be true or false");
        }
        *(bool *)target(d, f) = lua_toboolean(L, -1) != 0;
        return;
    case FIELD_IDS:
        d->remember = lua_type(L, -1) == LUA_TBOOLEAN && lua_toboolean(L, -1);
        d->remembers = lua_type(L, -1) == LUA_TTABLE || lua_type(L, -1) == LUA_TFUNCTION;
        if (!d->remember && !d->remembers) {
            refuse(L,
                   d,
                   f->name,
                   "must be a list of ids, a function that returns one, or true: the fleet "
                   "remembers them");
        }
        return;
    }
}

static const struct field *field_named(const char *name)
{
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        if (strcmp(fields[i].name, name) == 0) {
            return &fields[i];
        }
    }
    return NULL;
}

static void read_name(lua_State *L, struct kind_decl *out)
{
    size_t size = 0;
    const char *name = luaL_checklstring(L, 1, &size);

    if (size == 0 || size > KIND_DECL_NAME_MAX ||
        strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-") != size) {
        (void)luaL_error(L, "a kind's name must be 1 to %d of a-z 0-9 _ -", KIND_DECL_NAME_MAX);
    }
    memcpy(out->name, name, size + 1);
}

void kind_decl_read(lua_State *L, uint16_t position, struct kind_decl *out)
{
    *out = (struct kind_decl){
        .number = position, .call_ms = CALL_DEFAULT_MS, .limit_ms = LIMIT_DEFAULT_MS};
    read_name(L, out);
    if (!lua_isnoneornil(L, OPTIONS_INDEX)) {
        luaL_checktype(L, OPTIONS_INDEX, LUA_TTABLE);
        lua_pushnil(L);
        while (lua_next(L, OPTIONS_INDEX) != 0) {
            const char *name = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "?";
            const struct field *f = field_named(name);

            if (f == NULL) {
                refuse(L, out, name, "is not an option of a kind");
            } else {
                read_field(L, f, out);
            }
            lua_pop(L, 1);
        }
    }
    if ((out->daemons != 0) != (out->placement == RH_PLACE_DAEMONS)) {
        refuse(L, out, "daemons", "is needed for placement = \"daemons\", and only for it");
    }
    if (out->part != 0 && out->placement != RH_PLACE_HOSTS) {
        refuse(L, out, "part", "is only for placement = \"hosts\"");
    }
    if (out->remember &&
        (out->placement == RH_PLACE_SINGLETON || out->placement == RH_PLACE_DAEMONS)) {
        refuse(L, out, "remembered", "can't be true for singletons and daemons, which always live");
    }
    if (out->sessions_max != 0 && out->policy != RH_SESSIONS_ALLOW) {
        refuse(L, out, "sessions_max", "needs sessions = \"allow\"");
    }
}

static bool has_method(lua_State *L, const char *name)
{
    const bool has = lua_getfield(L, -1, name) == LUA_TFUNCTION;

    lua_pop(L, 1);
    return has;
}

void kind_decl_learn(lua_State *L, struct kind_decl *d)
{
    d->sessions = has_method(L, "on_session");
    d->upgrades = has_method(L, "on_upgrade");
    d->alarms = has_method(L, "on_alarm");
    if (d->alarms && !d->durable) {
        refuse(L, d, "on_alarm", "needs durable = true, for alarms are in the node's store");
    }
    if (d->durable && has_method(L, "on_flush")) {
        refuse(L, d, "durable", "goes with no on_flush: what a method puts is saved at once");
    }
}

const char *kind_decl_change(const struct kind_decl *was, const struct kind_decl *now)
{
    if (was->sessions != now->sessions) {
        return now->sessions ? "has an on_session now" : "has no on_session any more";
    }
    if (was->alarms != now->alarms) {
        return now->alarms ? "has an on_alarm now" : "has no on_alarm any more";
    }
    if (was->upgrades != now->upgrades) {
        return now->upgrades ? "has an on_upgrade now" : "has no on_upgrade any more";
    }
    if (was->remember != now->remember) {
        return now->remember ? "has remembered = true now" : "has no remembered = true any more";
    }
    if (was->durable != now->durable) {
        return now->durable ? "is durable now" : "is not durable any more";
    }
    if (was->state_version != now->state_version ||
        was->state_version_least != now->state_version_least ||
        was->state_version_most != now->state_version_most) {
        return "has other versions of its state";
    }
    return NULL;
}
