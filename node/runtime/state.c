/* SPDX-License-Identifier: Apache-2.0
 *
 * rh_state_*: the named values of a durable actor.
 */
#include "node/runtime/durable.h"

#include "storage/actors/changes.h"

_Static_assert((int)RH_STATE_KEY_MAX == (int)CHANGES_KEY_MAX &&
                   (int)RH_STATE_VALUE_MAX == (int)CHANGES_VALUE_MAX,
               "the same limits");

/* NULL: it is not durable, or is being loaded. */
static struct durable *durable_of(const struct rh_actor *a)
{
    return a == NULL || a->extra == NULL || durable_is_loading(a) ? NULL : a->extra->durable;
}

/* As durable_of(), for what changes something. */
static struct durable *open_of(const struct rh_actor *a)
{
    struct durable *d = durable_of(a);

    return d != NULL && d->runs && actor_may_ask(a) ? d : NULL;
}

static bool key_is_valid(struct rh_bytes key)
{
    return key.data != NULL && key.size > 0 && key.size <= RH_STATE_KEY_MAX;
}

int rh_state_get(const struct rh_actor *actor, struct rh_bytes key, struct rh_bytes *value)
{
    const struct durable *d = durable_of(actor);
    struct bytes found = {0};

    if (d == NULL || !key_is_valid(key) || value == NULL) {
        return RH_INVALID;
    }
    if (!named_values_get(&d->values, bytes_of(key.data, key.size), &found)) {
        *value = (struct rh_bytes){NULL, 0};
        return RH_GONE;
    }
    *value = (struct rh_bytes){found.data, found.size};
    return RH_OK;
}

int rh_state_next(const struct rh_actor *actor, struct rh_bytes after, struct rh_bytes *key,
                  struct rh_bytes *value)
{
    const struct durable *d = durable_of(actor);
    struct bytes found_key = {0};
    struct bytes found = {0};

    if (d == NULL || key == NULL || value == NULL || (after.data == NULL && after.size > 0)) {
        return RH_INVALID;
    }
    if (!named_values_next(&d->values, bytes_of(after.data, after.size), &found_key, &found)) {
        *key = *value = (struct rh_bytes){NULL, 0};
        return RH_GONE;
    }
    *key = (struct rh_bytes){found_key.data, found_key.size};
    *value = (struct rh_bytes){found.data, found.size};
    return RH_OK;
}

int rh_state_put(struct rh_actor *actor, struct rh_bytes key, struct rh_bytes value)
{
    struct durable *d = open_of(actor);

    if (d == NULL || !key_is_valid(key) || (value.data == NULL && value.size > 0)) {
        return RH_INVALID;
    }
    if (value.size > RH_STATE_VALUE_MAX) {
        return RH_TOO_BIG;
    }
    if (d->sealed.size > NAMED_VALUES_SIZE_MAX) {
        return RH_OVERLOADED; // a deferred message goes on and on, and its store is slow
    }
    return named_values_put(&d->values,
                            bytes_of(key.data, key.size),
                            bytes_of(value.data, value.size)) == NAMED_PUT_DONE
               ? RH_OK
               : RH_FULL;
}

int rh_state_delete(struct rh_actor *actor, struct rh_bytes key)
{
    struct durable *d = open_of(actor);

    if (d == NULL || !key_is_valid(key)) {
        return RH_INVALID;
    }
    return named_values_delete(&d->values, bytes_of(key.data, key.size)) ? RH_OK : RH_GONE;
}

int rh_state_undo(struct rh_actor *actor)
{
    struct durable *d = open_of(actor);

    if (d == NULL) {
        return RH_INVALID;
    }
    named_values_undo(&d->values);
    outbox_undo(&d->outbox);
    durable_alarms_undo(d);
    return RH_OK;
}
