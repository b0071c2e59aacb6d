/* SPDX-License-Identifier: Apache-2.0
 *
 * What a script declares by ringhold.kind(name, options), checked.
 */
#ifndef LUA_KIND_DECL_H
#define LUA_KIND_DECL_H

#include <lua5.4/lua.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    KIND_DECLS_MAX = 64, /* kinds of one script */
    KIND_DECL_NAME_MAX = 63,
};

struct kind_decl {
    char name[KIND_DECL_NAME_MAX + 1];
    uint16_t number;
    uint32_t idle_ms; /* as in rh_actor_ops; 0 = the library's default, as below */
    uint32_t flush_ms;
    uint32_t mailbox;
    uint32_t memory;
    uint32_t state_max;
    uint32_t placement; /* enum rh_placement */
    uint32_t daemons;
    uint32_t part;     /* as in rh_kind */
    uint32_t call_ms;  /* time-out of ringhold.call() */
    uint32_t limit_ms; /* of a callback that waits */
    bool raw;          /* payloads are not split into words */
    bool durable;      /* its actors have named values in the node's store */
    bool remembers;    /* `remembered` says which ids are always alive */
    bool remember;     /* `remembered` is true: the fleet remembers which ids live */
    uint32_t policy;   /* enum rh_sessions */
    uint32_t sessions_max;
    uint32_t state_version; /* as in rh_actor_ops, like the next two */
    uint32_t state_version_least;
    uint32_t state_version_most;
    bool upgrades; /* its methods have an on_upgrade; known likewise */
    bool sessions; /* its methods have an on_session; known when the script has loaded */
    bool alarms;   /* … or an on_alarm; likewise */
};

/* Read the options at stack index 2 (a table or nil) of a kind named at index 1; `position` is its
 * number if they say none. Raises a Lua error that names what is wrong. */
void kind_decl_read(lua_State *L, uint16_t position, struct kind_decl *out);

/* Learn from its methods, the table on top of the stack, whether a client may be bound to it. */
void kind_decl_learn(lua_State *L, struct kind_decl *d);

/* Text about a change that a reload cannot make, because the library learnt it when the node
 * started: "has an on_session now". NULL: no such change. */
const char *kind_decl_change(const struct kind_decl *was, const struct kind_decl *now);

#endif
