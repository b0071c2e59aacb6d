/* SPDX-License-Identifier: Apache-2.0
 *
 * Players who give each other gold, as durable actors: none is lost and none is
 * made, whatever dies. docs/actors.md comes to it in steps; trade.c does the same by hand.
 *
 *     CALL ann "earn 10"       10      from nowhere
 *     CALL ann "give bob 3"    7       hers is 3 less at once, bob's 3 more soon
 *     CALL ann "gold"          7
 *
 *     cc -shared -fPIC -Iinclude examples/gifts.c -o gifts.so
 *     ringhold node --actor ./gifts.so --store sqlite:/var/lib/game/actors.db …
 */
#include <ringhold.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct rh_bytes gold = {"gold", 4};

/* There is no memory but the values: nothing to make, to hand over or to free. */
static int on_activate(struct rh_actor *actor, const struct rh_bytes *state, uint64_t fence,
                       void **instance)
{
    (void)actor, (void)state, (void)fence;
    *instance = NULL;
    return RH_OK;
}

static void on_deactivate(struct rh_actor *actor, void *instance, enum rh_why why)
{
    (void)actor, (void)instance, (void)why;
}

static int64_t gold_of(const struct rh_actor *actor)
{
    struct rh_bytes value;
    char text[24] = "";

    if (rh_state_get(actor, gold, &value) == RH_OK && value.size < sizeof text) {
        memcpy(text, value.data, value.size);
    }
    return strtoll(text, NULL, 10);
}

/* The answer leaves when the change is saved. */
static void set_gold(struct rh_actor *actor, int64_t amount)
{
    char text[24];
    const int size = snprintf(text, sizeof text, "%" PRId64, amount);
    const struct rh_bytes value = {text, (size_t)size};

    if (rh_state_put(actor, gold, value) == RH_OK) {
        (void)rh_reply(actor, rh_integer(amount));
    } else {
        (void)rh_fail(actor, "FULL no room for it");
    }
}

/* The whole trade: both changes of one commit, and a send that arrives once. */
static void give(struct rh_actor *actor, const char *whom, int64_t amount)
{
    const struct rh_bytes id = {whom, strlen(whom)};
    char text[32];
    const int size = snprintf(text, sizeof text, "take %" PRId64, amount);

    if (amount > gold_of(actor)) {
        (void)rh_reply(actor, rh_error("ERR you have not got that much"));
    } else if (rh_send_once(actor, 0, id, (struct rh_bytes){text, (size_t)size}) != RH_OK) {
        (void)rh_reply(actor, rh_error("BUSY too many gifts are on their way: ask again"));
    } else {
        set_gold(actor, gold_of(actor) - amount);
    }
}

static void on_message(struct rh_actor *actor, void *instance, const struct rh_message *message)
{
    const bool of_player = message->from.size > 0;
    char text[128] = "";
    char verb[8] = "";
    char whom[64] = "";
    char number[20] = "";

    (void)instance;
    if (message->payload.size > 0 && message->payload.size < sizeof text) {
        memcpy(text, message->payload.data, message->payload.size);
    }
    const bool gives = sscanf(text, "give %63s %18s", whom, number) == 2;
    const bool adds = !gives && sscanf(text, "%7s %18s", verb, number) == 2 &&
                      (strcmp(verb, "earn") == 0 || (strcmp(verb, "take") == 0 && of_player));
    const int64_t amount = strtoll(number, NULL, 10);
    if (gives && amount > 0) {
        give(actor, whom, amount);
    } else if (adds && amount > 0) {
        set_gold(actor, gold_of(actor) + amount);
    } else if (strcmp(text, "gold") == 0) {
        (void)rh_reply(actor, rh_integer(gold_of(actor)));
    } else {
        (void)rh_reply(actor, rh_error("ERR a player knows: earn N, give WHOM N, gold"));
    }
}

const struct rh_actor_ops ringhold_actor = {
    .abi = RH_ABI,
    .size = sizeof(struct rh_actor_ops),
    .name = "player",
    .activate = on_activate,
    .message = on_message,
    .deactivate = on_deactivate,
    .durable = 1,
};
