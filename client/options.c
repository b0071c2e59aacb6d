/* SPDX-License-Identifier: Apache-2.0
 *
 * A client is made, of the memory and the options that its owner gives.
 */
#include "client/inside.h"

#include <string.h>

enum {
    REQUESTS_MAX = 256,
    IN_MAX = 1024 * 1024 + 64,
    IN_MIN = 1024,
    OUT_MAX = 128 * 1024,
    OUT_MIN = 1024,
    ANSWER_MS = 15000,
    GREET_MS = 10000,
    BACK_OFF_MIN_MS = 200,
    BACK_OFF_MAX_MS = 10000,
    ALIGN = 16,
};

static uint32_t or_else(uint32_t value, uint32_t otherwise)
{
    return value > 0 ? value : otherwise;
}

static size_t rounded(size_t size)
{
    return (size + ALIGN - 1) / ALIGN * ALIGN;
}

size_t rhc_size(const struct rhc_options *o)
{
    if (o == NULL || o->abi != RHC_ABI || o->size != sizeof *o ||
        (o->token != NULL && strlen(o->token) > AUTH_MAX) || or_else(o->in_max, IN_MAX) < IN_MIN ||
        or_else(o->out_max, OUT_MAX) < OUT_MIN || o->in_max > BODY_MAX ||
        o->requests_max > NAME_MAX_ASKED ||
        or_else(o->back_off_min_ms, BACK_OFF_MIN_MS) >
            or_else(o->back_off_max_ms, BACK_OFF_MAX_MS)) {
        return 0;
    }
    return rounded(sizeof(struct rhc)) +
           rounded(or_else(o->requests_max, REQUESTS_MAX) * sizeof(struct asked_entry)) +
           rounded(or_else(o->in_max, IN_MAX)) + rounded(or_else(o->out_max, OUT_MAX));
}

struct rhc *rhc_init(void *memory, const struct rhc_options *o)
{
    struct rhc *c = memory;

    if (memory == NULL || rhc_size(o) == 0) {
        return NULL;
    }
    memset(c, 0, sizeof *c);
    c->answer_ms = or_else(o->answer_ms, ANSWER_MS);
    c->greet_ms = or_else(o->greet_ms, GREET_MS);
    c->back_off_min_ms = or_else(o->back_off_min_ms, BACK_OFF_MIN_MS);
    c->back_off_max_ms = or_else(o->back_off_max_ms, BACK_OFF_MAX_MS);
    c->random = o->seed;
    connection_init(c);

    const uint32_t requests_max = or_else(o->requests_max, REQUESTS_MAX);
    const uint32_t in_max = or_else(o->in_max, IN_MAX);
    uint8_t *at = (uint8_t *)memory + rounded(sizeof *c);
    struct asked_entry *entry = (void *)at;

    at += rounded(requests_max * sizeof *entry);
    incoming_init(c, at, in_max);
    log_init(&c->log, entry, requests_max, at + rounded(in_max), or_else(o->out_max, OUT_MAX));
    (void)rhc_set_token(c, o->token);
    return c;
}
