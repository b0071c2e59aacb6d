/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses which HTTP connection has to go: the one that waited longest, of the
 * address that has most.
 */
#include "daemon/http_limits.h"

#include "base/assert.h"

#include <string.h>

static bool is_here(const struct http_client *client)
{
    return client->taken && !client->cut;
}

static void begin(struct http_limits *s, struct http_client *client, uint64_t now_ms)
{
    client->since_ms = now_ms;
    client->order = ++s->order;
}

static struct http_client *cut(struct http_limits *s, struct http_client *client, enum http_cut why)
{
    ASSERT(is_here(client));
    client->cut = true;
    s->taken--;
    s->cut[why]++;
    return client;
}

/* The one that has waited longest; `of`: of those from the address of that one. NULL = nobody. */
static struct http_client *oldest(struct http_limits *s, const struct http_client *of)
{
    struct http_client *found = NULL;

    for (size_t i = 0; i < HTTP_CLIENTS_MAX; i++) {
        struct http_client *client = &s->client[i];
        const bool of_it =
            of == NULL || memcmp(&client->address, &of->address, sizeof client->address) == 0;

        if (is_here(client) && of_it && (found == NULL || client->order < found->order)) {
            found = client;
        }
    }
    return found;
}

static size_t count_of(const struct http_limits *s, const struct http_client_address *address)
{
    size_t count = 0;

    for (size_t i = 0; i < HTTP_CLIENTS_MAX; i++) {
        count +=
            is_here(&s->client[i]) && memcmp(&s->client[i].address, address, sizeof *address) == 0;
    }
    return count;
}

/* Of the address that has the most; among addresses that have as many, of the one that has waited
 * longest. */
static struct http_client *crowding(struct http_limits *s)
{
    struct http_client *found = NULL;
    size_t most = 0;

    for (size_t i = 0; i < HTTP_CLIENTS_MAX; i++) {
        struct http_client *client = &s->client[i];
        const size_t count = is_here(client) ? count_of(s, &client->address) : 0;

        if (count > most || (count > 0 && count == most && client->order < found->order)) {
            most = count;
            found = client;
        }
    }
    return found == NULL ? NULL : oldest(s, found);
}

struct http_client *http_limits_come(struct http_limits *s,
                                     const struct http_client_address *address, uint64_t now_ms)
{
    for (size_t i = 0; i < HTTP_CLIENTS_MAX; i++) {
        struct http_client *client = &s->client[i];

        if (!client->taken) {
            *client = (struct http_client){.address = *address, .taken = true};
            begin(s, client, now_ms);
            s->taken++;
            return client;
        }
    }
    return NULL;
}

void http_limits_answered(struct http_limits *s, struct http_client *client, uint64_t now_ms)
{
    ASSERT(client->taken);
    client->answered = true;
    begin(s, client, now_ms);
}

void http_limits_gone(struct http_limits *s, struct http_client *client)
{
    ASSERT(client->taken);
    s->taken -= is_here(client) ? 1 : 0;
    client->taken = false;
}

struct http_client *http_limits_cut(struct http_limits *s, uint64_t now_ms)
{
    struct http_client *first = oldest(s, NULL);

    if (first != NULL && now_ms - first->since_ms >= HTTP_DEADLINE_MS) {
        return cut(s, first, first->answered ? HTTP_CUT_IDLE : HTTP_CUT_DEADLINE);
    }
    return s->taken > HTTP_CLIENTS_TAKEN_MAX ? cut(s, crowding(s), HTTP_CUT_CROWDED) : NULL;
}

uint64_t http_limits_wait_ms(const struct http_limits *s, uint64_t now_ms)
{
    uint64_t wait = UINT64_MAX;

    for (size_t i = 0; i < HTTP_CLIENTS_MAX; i++) {
        if (is_here(&s->client[i])) {
            const uint64_t waited = now_ms - s->client[i].since_ms;
            const uint64_t left = waited < HTTP_DEADLINE_MS ? HTTP_DEADLINE_MS - waited : 0;

            wait = left < wait ? left : wait;
        }
    }
    return wait;
}
