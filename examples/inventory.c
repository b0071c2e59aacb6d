/* SPDX-License-Identifier: Apache-2.0
 *
 * A durable inventory: how many of what somebody has. What was answered is in
 * the node's store, so it is there after any crash. docs/durable.md explains it.
 *
 *     cc -shared -fPIC -Iinclude examples/inventory.c -o inventory.so
 *     ringhold node --actor ./inventory.so --store sqlite:/var/lib/game/actors.db …
 *
 * Payloads: ADD sword 2 = how many swords there are now; TAKE sword 1 = the
 * same, or an error if there are too few; GET sword; LIST = all there is.
 */
#include <ringhold.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* There is no memory but the values: nothing to make, to hand over or to free. */
static int on_activate(struct rh_actor *actor, const struct rh_bytes *state, uint64_t fence,
                       void **instance)
{
    (void)actor;
    (void)state;
    (void)fence;
    *instance = NULL;
    return RH_OK;
}

static void on_deactivate(struct rh_actor *actor, void *instance, enum rh_why why)
{
    (void)actor;
    (void)instance;
    (void)why;
}

/* The values are text, so that people can read them by SQL. */
static int64_t count_of(const struct rh_actor *actor, struct rh_bytes item)
{
    struct rh_bytes value;
    char text[24] = "";

    if (rh_state_get(actor, item, &value) != RH_OK || value.size >= sizeof text) {
        return 0;
    }
    memcpy(text, value.data, value.size);
    return strtoll(text, NULL, 10);
}

static void change(struct rh_actor *actor, const char *name, int64_t by)
{
    const struct rh_bytes item = {name, strlen(name)};
    const int64_t count = count_of(actor, item) + by;
    char text[24];
    int result = RH_OK;

    if (count < 0) {
        (void)rh_reply(actor, rh_error("TOOFEW there are not so many"));
        return;
    }
    (void)snprintf(text, sizeof text, "%" PRId64, count);
    if (count == 0) {
        (void)rh_state_delete(actor, item);
    } else {
        const struct rh_bytes value = {text, strlen(text)};

        result = rh_state_put(actor, item, value);
    }
    /* It leaves when the change is saved. */
    (void)rh_reply(actor, result == RH_OK ? rh_integer(count) : rh_error("FULL no room for it"));
}

static void list(struct rh_actor *actor)
{
    struct rh_bytes item = {NULL, 0};
    struct rh_bytes value;
    char all[4096] = "";
    size_t used = 0;

    while (used < sizeof all && rh_state_next(actor, item, &item, &value) == RH_OK) {
        const int size = snprintf(all + used,
                                  sizeof all - used,
                                  "%.*s %.*s\n",
                                  (int)item.size,
                                  (const char *)item.data,
                                  (int)value.size,
                                  (const char *)value.data);

        used += (size_t)size;
    }
    (void)rh_reply(actor, rh_bytes_value(all, used < sizeof all ? used : sizeof all - 1));
}

static void on_message(struct rh_actor *actor, void *instance, const struct rh_message *message)
{
    char text[128] = "";
    char verb[8] = "";
    char item[64] = "";
    char number[12] = "";

    (void)instance;
    if (message->payload.size > 0 && message->payload.size < sizeof text) {
        memcpy(text, message->payload.data, message->payload.size);
    }
    const int words = sscanf(text, "%7s %63s %9s", verb, item, number);
    const int64_t count = strtoll(number, NULL, 10);
    if (words == 3 && count > 0 && strcmp(verb, "ADD") == 0) {
        change(actor, item, count);
    } else if (words == 3 && count > 0 && strcmp(verb, "TAKE") == 0) {
        change(actor, item, -count);
    } else if (words == 2 && strcmp(verb, "GET") == 0) {
        const struct rh_bytes name = {item, strlen(item)};

        (void)rh_reply(actor, rh_integer(count_of(actor, name)));
    } else if (words == 1 && strcmp(verb, "LIST") == 0) {
        list(actor);
    } else {
        (void)rh_reply(actor, rh_error("ERR ADD item count, TAKE item count, GET item, LIST"));
    }
}

const struct rh_actor_ops ringhold_actor = {
    .abi = RH_ABI,
    .size = sizeof(struct rh_actor_ops),
    .name = "inventory",
    .activate = on_activate,
    .message = on_message,
    .deactivate = on_deactivate,
    .durable = 1,
    .brief = 1, // It works in memory; its answers wait for the store, not its callbacks.
};
