/* SPDX-License-Identifier: Apache-2.0
 *
 * Groups of ringhold.h: a set of ids, each found at once and all of them in a
 * row. Leaving moves the last one into the gap.
 */
#include "node/runtime/inside.h"

#include "base/mem.h"
#include "base/mutant.h"
#include "base/random.h"
#include "ring/hash.h"
#include "wire/cursor.h"

#include <string.h>

enum {
    SAVED_VERSION = 1, /* u8 of it, u16 kind, u32 most, u32 members, each u8 size, id */
    SAVED_HEAD_SIZE = 11,
};

_Static_assert((int)RH_ID_MAX == (int)RECORD_ID_MAX, "one limit");

struct member {
    struct table_link by_id;
    uint32_t index;
    uint8_t size;
    uint8_t id[]; /* flexible */
};

struct rh_group {
    uint16_t kind;
    uint32_t members_max;
    struct ring_key key; /* who joins may choose his id: not his bucket */
    struct table by_id;
    struct member **member; /* owned, and what they point at */
    size_t cap;
};

struct rh_group *rh_group_new(uint16_t kind, size_t members_max)
{
    if (members_max > RH_GROUP_MAX) {
        return NULL;
    }
    struct rh_group *g = mem_new(1, sizeof *g);

    g->kind = kind;
    g->members_max = members_max == 0 ? RH_GROUP_MAX : (uint32_t)members_max;
    g->key = (struct ring_key){random_u64(), random_u64()};
    return g;
}

void rh_group_free(struct rh_group *group)
{
    if (group == NULL) {
        return;
    }
    for (size_t i = 0; i < group->by_id.count; i++) {
        mem_free(group->member[i]);
    }
    mem_free(group->member);
    table_fini(&group->by_id);
    mem_free(group);
}

static struct member *find(const struct rh_group *g, struct bytes id)
{
    for (struct table_link *l = table_first(&g->by_id, siphash_bytes(g->key, id)); l != NULL;
         l = table_same(l)) {
        struct member *m = CONTAINER_OF(l, struct member, by_id);

        if (bytes_equal(bytes_of(m->id, m->size), id)) {
            return m;
        }
    }
    return NULL;
}

static bool is_id(struct rh_bytes id)
{
    return id.data != NULL && id.size >= 1 && id.size <= RECORD_ID_MAX;
}

static void add(struct rh_group *g, struct bytes id)
{
    struct member *m = mem_resize(NULL, sizeof *m + id.size);
    const size_t count = g->by_id.count;

    if (count == g->cap) {
        g->cap = g->cap == 0 ? 8 : g->cap * 2;
        // NOLINTNEXTLINE(bugprone-sizeof-expression): an array of pointers
        g->member = mem_resize(g->member, g->cap * sizeof *g->member);
    }
    *m = (struct member){.index = (uint32_t)count, .size = (uint8_t)id.size};
    memcpy(m->id, id.data, id.size);
    g->member[count] = m;
    table_put(&g->by_id, &m->by_id, siphash_bytes(g->key, id));
}

int rh_group_join(struct rh_group *group, struct rh_bytes id)
{
    if (group == NULL || !is_id(id)) {
        return RH_INVALID;
    }
    if (find(group, bytes_of(id.data, id.size)) != NULL && !mutant(M_JOINTWICE)) {
        return RH_OK;
    }
    if (group->by_id.count >= group->members_max) {
        return RH_FULL;
    }
    add(group, bytes_of(id.data, id.size));
    return RH_OK;
}

int rh_group_leave(struct rh_group *group, struct rh_bytes id)
{
    struct member *m = group != NULL && is_id(id) ? find(group, bytes_of(id.data, id.size)) : NULL;

    if (m == NULL) {
        return RH_GONE;
    }
    if (mutant(M_GROUPSTAYS)) {
        return RH_OK;
    }
    struct member *last = group->member[group->by_id.count - 1];

    last->index = m->index;
    group->member[m->index] = last;
    table_remove(&group->by_id, &m->by_id);
    mem_free(m);
    return RH_OK;
}

int rh_group_has(const struct rh_group *group, struct rh_bytes id)
{
    return group != NULL && is_id(id) && find(group, bytes_of(id.data, id.size)) != NULL ? 1 : 0;
}

size_t rh_group_count(const struct rh_group *group)
{
    return group == NULL ? 0 : group->by_id.count;
}

struct rh_bytes rh_group_at(const struct rh_group *group, size_t index)
{
    const struct member *m = index < rh_group_count(group) ? group->member[index] : NULL;

    return m == NULL ? (struct rh_bytes){NULL, 0} : (struct rh_bytes){m->id, m->size};
}

/* Each u8 size, id. */
static void put_members(struct buffer *out, const struct rh_group *g)
{
    for (size_t i = 0; i < g->by_id.count; i++) {
        const struct member *m = g->member[i];

        buffer_put(out, &m->size, sizeof m->size);
        buffer_put(out, m->id, m->size);
    }
}

int rh_group_push(struct rh_actor *actor, const struct rh_group *group, struct rh_bytes payload)
{
    struct buffer ids = {0};

    if (actor == NULL || group == NULL || !actor_may_ask(actor) ||
        (payload.data == NULL && payload.size > 0)) {
        return RH_INVALID;
    }
    if (payload.size > RH_PUSH_MAX) {
        return RH_TOO_BIG;
    }
    if (group->by_id.count == 0) {
        return RH_OK;
    }
    put_members(&ids, group);
    const struct broadcast to = {.kind = group->kind,
                                 .ids = {ids.data, ids.size},
                                 .count = group->by_id.count -
                                          (group->by_id.count > 1 && mutant(M_CASTSHORT))};
    const int told = broadcast_tell(actor, &to, payload);
    buffer_fini(&ids);
    return told;
}

void rh_group_save(const struct rh_group *group, struct rh_out *out)
{
    if (group == NULL || out == NULL) {
        return;
    }
    struct buffer saved = {0};
    struct writer w = {.at = buffer_reserve(&saved, SAVED_HEAD_SIZE), .left = SAVED_HEAD_SIZE};

    put_u8(&w, SAVED_VERSION);
    put_u16(&w, group->kind);
    put_u32(&w, group->members_max);
    put_u32(&w, (uint32_t)group->by_id.count);
    saved.size = SAVED_HEAD_SIZE;
    put_members(&saved, group);
    rh_out_put(out, saved.data, saved.size);
    buffer_fini(&saved);
}

struct rh_group *rh_group_load(struct rh_bytes *state)
{
    if (state == NULL || state->data == NULL) {
        return NULL;
    }
    struct reader in = {.at = state->data, .left = state->size};
    const uint8_t version = get_u8(&in);
    const uint16_t kind = get_u16(&in);
    const uint32_t most = get_u32(&in);
    const uint32_t count = get_u32(&in);

    if (in.bad || version != SAVED_VERSION || most == 0 || most > RH_GROUP_MAX || count > most) {
        return NULL;
    }
    struct rh_group *g = rh_group_new(kind, most);

    for (uint32_t i = 0; i < count; i++) {
        const size_t size = get_u8(&in);
        const uint8_t *id = get_bytes(&in, size);

        if (rh_group_join(g, (struct rh_bytes){id, in.bad ? 0 : size}) != RH_OK) {
            rh_group_free(g);
            return NULL;
        }
    }
    *state = (struct rh_bytes){in.at, in.left};
    return g;
}
