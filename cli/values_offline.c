/* SPDX-License-Identifier: Apache-2.0
 *
 * Claims an actor in a store, as its owner did last, and commits what is changed.
 */
#include "cli/values_offline.h"

#include "base/mem.h"
#include "node/durable/operate.h"
#include "storage/actors/whole.h"

#include <stdio.h>
#include <string.h>

struct values_offline {
    struct whole_store *whole; /* owned */
    struct named_values values;
    struct values_batch batch;
    struct buffer answer;
    struct store_task name; /* kind, id and fence alone */
    uint64_t number;        /* of its last commit */
    bool known;             /* the store has that actor */
};

static struct store_task *task_of(const struct values_offline *o, enum store_verb verb)
{
    struct store_task *t = store_task_new(verb);

    t->kind = o->name.kind;
    t->id_size = o->name.id_size;
    memcpy(t->id, o->name.id, sizeof t->id);
    t->fence = o->name.fence;
    return t;
}

static bool perform(struct values_offline *o, struct store_task *t)
{
    o->whole->store->perform(o->whole->store, &t, 1);
    return t->result == STORE_DONE;
}

/* Load it, or make it if it is not there. */
static bool claim(struct values_offline *o)
{
    struct store_task *t = task_of(o, STORE_CLAIM);
    const bool good = perform(o, t) && named_values_load(&o->values, buffer_bytes(&t->bytes));

    o->number = t->number;
    o->known = o->known || good;
    store_task_free(t);
    return good;
}

static bool commit(struct values_offline *o)
{
    if (!o->known && !claim(o)) {
        return false;
    }
    struct store_task *t = task_of(o, STORE_COMMIT);

    t->number = o->number + 1;
    named_values_seal(&o->values, &t->bytes);
    const bool good = perform(o, t);
    o->number += good ? 1 : 0;
    store_task_free(t);
    return good;
}

struct values_offline *values_offline_open(const char *store, const Rh__Actor *actor,
                                           char why[VALUES_OFFLINE_WHY_SIZE])
{
    struct whole_store *whole;

    if (whole_open(store, WHOLE_ALONE, &whole, why) != ERR_OK) {
        return NULL;
    }
    struct values_offline *o = mem_new(1, sizeof *o);
    o->whole = whole;
    named_values_init(&o->values);
    o->name.kind = (uint16_t)actor->kind;
    o->name.id_size = (uint8_t)actor->id.len;
    memcpy(o->name.id, actor->id.data, actor->id.len);
    o->known = whole->fence(whole, &o->name);
    if (!o->known && whole->why[0] != '\0') {
        (void)snprintf(why, VALUES_OFFLINE_WHY_SIZE, "%s", whole->why);
        values_offline_close(o);
        return NULL;
    }
    if (o->known && !claim(o)) {
        (void)snprintf(
            why, VALUES_OFFLINE_WHY_SIZE, "the actor can't be loaded: `ringhold store check`");
        values_offline_close(o);
        return NULL;
    }
    return o;
}

void values_offline_close(struct values_offline *o)
{
    if (o != NULL) {
        o->whole->close(o->whole);
        named_values_fini(&o->values);
        values_batch_fini(&o->batch);
        buffer_fini(&o->answer);
        mem_free(o);
    }
}

struct bytes values_offline_ask(struct values_offline *o, const struct values_ask *ask)
{
    buffer_clear(&o->answer);
    values_operate(&o->values, &o->batch, ask, o->number, &o->answer);
    if (named_values_are_changed(&o->values) && !commit(o)) {
        buffer_clear(&o->answer);
    }
    return buffer_bytes(&o->answer);
}
