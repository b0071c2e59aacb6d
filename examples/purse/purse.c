/* SPDX-License-Identifier: Apache-2.0
 *
 * A purse: a durable actor who gives others gold, by numbered requests. README.md says what it is
 * asked and what it keeps.
 *
 *     cc -shared -fPIC -Iinclude examples/purse/purse.c -o purse.so
 *     ringhold node --name n1 --actor ./purse.so --store sqlite:game.db …
 */
#include <ringhold.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_SIZE = 320 };

static struct rh_bytes bytes(const char *text)
{
    return (struct rh_bytes){text, strlen(text)};
}

/* What the value of that name says, or "". */
static const char *value(const struct rh_actor *actor, const char *name,
                         char text[static TEXT_SIZE])
{
    struct rh_bytes found;

    text[0] = '\0';
    if (rh_state_get(actor, bytes(name), &found) == RH_OK && found.size < TEXT_SIZE) {
        memcpy(text, found.data, found.size);
        text[found.size] = '\0';
    }
    return text;
}

static int64_t number(const struct rh_actor *actor, const char *name)
{
    char text[TEXT_SIZE];

    return strtoll(value(actor, name, text), NULL, 10);
}

static void set(struct rh_actor *actor, const char *name, const char *text)
{
    if (rh_state_put(actor, bytes(name), bytes(text)) != RH_OK) {
        (void)rh_fail(actor, "FULL no room for it");
    }
}

static void add(struct rh_actor *actor, const char *name, int64_t by)
{
    char text[24];

    (void)snprintf(text, sizeof text, "%" PRId64, number(actor, name) + by);
    set(actor, name, text);
}

/* Each request is done once: who asks again hears the answer again. All that it changes is one
 * commit. */
static void request(struct rh_actor *actor, int64_t seq, const char *whom, int64_t amount)
{
    char text[TEXT_SIZE];
    const int64_t done = number(actor, "done");

    if (seq < done) {
        (void)rh_reply(actor, rh_error("ERR a later request is done"));
        return;
    }
    if (seq == done) {
        (void)rh_reply(actor, rh_text(value(actor, "answer", text)));
        return;
    }
    add(actor, "done", seq - done);
    if (whom != NULL && amount > number(actor, "gold")) {
        set(actor, "answer", "POOR");
    } else {
        if (whom != NULL) {
            (void)snprintf(text, sizeof text, "take %" PRId64 " %" PRId64, seq, amount);
            if (rh_send_once(actor, 0, bytes(whom), bytes(text)) != RH_OK) {
                (void)rh_fail(actor, "BUSY too many gifts are on their way");
            }
        }
        add(actor, "gold", whom != NULL ? -amount : amount);
        set(actor, "answer", value(actor, "gold", text));
    }
    (void)rh_reply(actor, rh_text(value(actor, "answer", text)));
}

/* What another purse gives arrives once. */
static void take(struct rh_actor *actor, struct rh_bytes from, int64_t seq, int64_t amount)
{
    char name[TEXT_SIZE];

    (void)snprintf(
        name, sizeof name, "from/%.*s/%" PRId64, (int)from.size, (const char *)from.data, seq);
    add(actor, name, amount);
    add(actor, "gold", amount);
}

static void on_message(struct rh_actor *actor, void *instance, const struct rh_message *message)
{
    const bool of_purse = message->from.size > 0;
    char text[TEXT_SIZE] = "";
    char verb[8] = "";
    char first[20] = "";
    char whom[256] = "";
    char last[20] = "";

    (void)instance;
    if (message->payload.size > 0 && message->payload.size < sizeof text) {
        memcpy(text, message->payload.data, message->payload.size);
    }
    const int words = sscanf(text, "%7s %18s %255s %18s", verb, first, whom, last);
    const int64_t seq = strtoll(first, NULL, 10);
    const int64_t amount = strtoll(words == 3 ? whom : last, NULL, 10);
    if (of_purse && strcmp(verb, "take") == 0 && seq > 0 && amount > 0) {
        take(actor, message->from, seq, amount);
    } else if (!of_purse && strcmp(verb, "earn") == 0 && words == 3 && seq > 0 && amount > 0) {
        request(actor, seq, NULL, amount);
    } else if (!of_purse && strcmp(verb, "give") == 0 && words == 4 && seq > 0 && amount > 0) {
        request(actor, seq, whom, amount);
    } else if (strcmp(text, "gold") == 0) {
        (void)snprintf(text, sizeof text, "%" PRId64, number(actor, "gold"));
        (void)rh_reply(actor, rh_text(text));
    } else {
        (void)rh_reply(actor, rh_error("ERR earn N AMOUNT, give N WHOM AMOUNT, gold"));
    }
}

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

const struct rh_actor_ops ringhold_actor = {
    .abi = RH_ABI,
    .size = sizeof(struct rh_actor_ops),
    .name = "purse",
    .activate = on_activate,
    .message = on_message,
    .deactivate = on_deactivate,
    .durable = 1,
};
