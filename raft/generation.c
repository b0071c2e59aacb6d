/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes and encodes generations: who votes, who ever did, and whether a
 * wished change is allowed.
 */
#include "raft/generation.h"

#include "base/assert.h"
#include "storage/log/entry.h"
#include "wire/cursor.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FORMAT = 1, MEMBER_SIZE = 16, HEAD_SIZE = 1 + 8 + 1 + 2 };

const struct generation_voter *generation_voter(const struct generation *g, uint64_t id)
{
    for (size_t i = 0; i < g->voter_count; i++) {
        if (g->voter[i].id == id) {
            return &g->voter[i];
        }
    }
    return NULL;
}

static const struct generation_member *find_former(const struct generation *g, uint64_t id)
{
    for (size_t i = 0; i < g->former_count; i++) {
        if (g->former[i].id == id) {
            return &g->former[i];
        }
    }
    return NULL;
}

uint64_t generation_identity(const struct generation *g, uint64_t id)
{
    const struct generation_voter *voter = generation_voter(g, id);
    const struct generation_member *former = find_former(g, id);

    return voter != NULL ? voter->identity : former != NULL ? former->identity : 0;
}

bool generation_used(const struct generation *g, uint64_t id)
{
    return generation_voter(g, id) != NULL || find_former(g, id) != NULL;
}

/* ---- the next one ---- */

static bool is_wished(const struct generation_wish *wish, size_t count, uint64_t id)
{
    for (size_t i = 0; i < count; i++) {
        if (wish[i].id == id) {
            return true;
        }
    }
    return false;
}

/* NULL: nothing is wrong with one of them by itself, whether it is there or not. */
static const char *fault_of(const struct generation *now, const struct generation_wish *wish)
{
    if (wish->id == 0 || wish->id > GENERATION_ID_MAX) {
        return "an id must be 1 to 255";
    }
    if (wish->address[0] == '\0' || strchr(wish->address, ':') == NULL) {
        return "a coordinator needs an address, HOST:PORT";
    }
    return find_former(now, wish->id) == NULL
               ? NULL
               : "this id was used before, and an id stands for one folder for ever: choose "
                 "another id";
}

/* NULL: it can vote. */
static const char *fault_of_process(const struct generation *now,
                                    const struct generation_wish *wish)
{
    if (generation_voter(now, wish->id) != NULL) {
        return wish->identity == 0
                   ? "its folder was never seen here: start that coordinator, or leave it out"
                   : NULL;
    }
    if (!wish->linked) {
        return "no answer: start it there with --join-group and this id";
    }
    return wish->empty && wish->identity != 0
               ? NULL
               : "the process there is not a coordinator that waits to join: start it with "
                 "--join-group and an empty folder";
}

static bool is_same_set(const struct generation *now, const struct generation_wish *wish,
                        size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct generation_voter *voter = generation_voter(now, wish[i].id);
        if (voter == NULL || strcmp(voter->address, wish[i].address) != 0) {
            return false;
        }
    }
    return count == now->voter_count;
}

static const char *fault_of_set(const struct generation *now, const struct generation_wish *wish,
                                size_t count)
{
    if (count != 1 && count != 3 && count != 5) {
        return "a group is 1, 3 or 5 coordinators";
    }
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < i; k++) {
            if (wish[i].id == wish[k].id || strcmp(wish[i].address, wish[k].address) == 0) {
                return "an id or an address is given twice";
            }
        }
    }
    if (is_same_set(now, wish, count)) {
        return "these are already the coordinators";
    }
    return now->number == GENERATION_MAX ||
                   now->former_count + now->voter_count > (size_t)GENERATION_FORMER_MAX
               ? "all ids have been used"
               : NULL;
}

/* Each of them, and a majority, is there as it must be. */
static bool judge_processes(const struct generation *now, const struct generation_wish *wish,
                            size_t count, char *why, size_t why_size)
{
    size_t linked = 0;

    for (size_t i = 0; i < count; i++) {
        const char *fault = fault_of_process(now, &wish[i]);

        if (fault != NULL) {
            (void)snprintf(why, why_size, "coordinator %" PRIu64 ": %s", wish[i].id, fault);
            return false;
        }
        linked += wish[i].linked;
    }
    if (linked < count / 2 + 1) {
        (void)snprintf(why, why_size, "no majority of the new set is running: start them first");
        return false;
    }
    return true;
}

bool generation_judge(const struct generation *now, const struct generation_wish *wish,
                      size_t count, char *why, size_t why_size)
{
    const char *fault = fault_of_set(now, wish, count);

    if (fault != NULL) {
        (void)snprintf(why, why_size, "%s", fault);
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        fault = fault_of(now, &wish[i]);
        if (fault != NULL) {
            (void)snprintf(why, why_size, "coordinator %" PRIu64 ": %s", wish[i].id, fault);
            return false;
        }
    }
    return true;
}

static void retire(struct generation *g, const struct generation_voter *voter)
{
    g->former[g->former_count++] = (struct generation_member){voter->id, voter->identity};
}

static void add_voter(struct generation *g, const struct generation_wish *wish)
{
    size_t at = g->voter_count++;

    for (; at > 0 && g->voter[at - 1].id > wish->id; at--) {
        g->voter[at] = g->voter[at - 1];
    }
    g->voter[at] = (struct generation_voter){.id = wish->id, .identity = wish->identity};
    memcpy(g->voter[at].address, wish->address, sizeof g->voter[at].address);
}

bool generation_next(const struct generation *now, const struct generation_wish *wish, size_t count,
                     struct generation *out, char *why, size_t why_size)
{
    if (!generation_judge(now, wish, count, why, why_size) ||
        !judge_processes(now, wish, count, why, why_size)) {
        return false;
    }
    *out = *now;
    out->number = now->number + 1;
    out->voter_count = 0;
    for (size_t i = 0; i < now->voter_count; i++) {
        if (!is_wished(wish, count, now->voter[i].id)) {
            retire(out, &now->voter[i]);
        }
    }
    for (size_t i = 0; i < count; i++) {
        add_voter(out, &wish[i]);
    }
    return true;
}

/* ---- bytes ---- */

void generation_put(struct buffer *out, const struct generation *g)
{
    const size_t room = HEAD_SIZE + g->voter_count * (MEMBER_SIZE + sizeof g->voter[0].address) +
                        g->former_count * MEMBER_SIZE;
    struct writer w = {.at = buffer_reserve(out, room), .left = room};

    put_u8(&w, FORMAT);
    put_u64(&w, g->number);
    put_u8(&w, (uint8_t)g->voter_count);
    put_u16(&w, (uint16_t)g->former_count);
    for (size_t i = 0; i < g->voter_count; i++) {
        put_u64(&w, g->voter[i].id);
        put_u64(&w, g->voter[i].identity);
        put_bytes(&w, g->voter[i].address, sizeof g->voter[i].address);
    }
    for (size_t i = 0; i < g->former_count; i++) {
        put_u64(&w, g->former[i].id);
        put_u64(&w, g->former[i].identity);
    }
    ASSERT(!w.bad && w.left == 0);
    out->size += room;
}

static void get_voter(struct reader *r, struct generation *g, size_t at)
{
    struct generation_voter *voter = &g->voter[at];

    voter->id = get_u64(r);
    voter->identity = get_u64(r);
    const uint8_t *address = get_bytes(r, sizeof voter->address);
    if (r->bad) {
        return;
    }
    memcpy(voter->address, address, sizeof voter->address);
    r->bad = voter->id == 0 || voter->id > GENERATION_ID_MAX || voter->identity > INT64_MAX ||
             memchr(voter->address, '\0', sizeof voter->address) == NULL ||
             (at > 0 && voter->id <= voter[-1].id);
    for (const char *c = voter->address; !r->bad && *c != '\0'; c++) {
        r->bad = *c <= ' ' || *c > '~'; // it will stand in logs
    }
}

bool generation_get(struct bytes in, struct generation *out)
{
    struct reader r = {.at = in.data, .left = in.size};

    *out = (struct generation){0};
    const uint8_t format = get_u8(&r);
    out->number = get_u64(&r);
    out->voter_count = get_u8(&r);
    out->former_count = get_u16(&r);
    if (r.bad || format != FORMAT || out->number == 0 || out->number > GENERATION_MAX ||
        (out->voter_count != 1 && out->voter_count != 3 && out->voter_count != 5) ||
        out->former_count > GENERATION_FORMER_MAX) {
        return false;
    }
    for (size_t i = 0; i < out->voter_count; i++) {
        get_voter(&r, out, i);
    }
    for (size_t i = 0; i < out->former_count && !r.bad; i++) {
        out->former[i].id = get_u64(&r);
        out->former[i].identity = get_u64(&r);
        r.bad = r.bad || generation_voter(out, out->former[i].id) != NULL;
    }
    return !r.bad && r.left == 0;
}

void generation_put_seal(struct buffer *out, const struct generation *g)
{
    entry_put_seal(out);
    generation_put(out, g);
}

bool generation_get_seal(struct bytes command, struct generation *out)
{
    return entry_is_seal(command) &&
           generation_get(bytes_of(command.data + ENTRY_SEAL_SIZE, command.size - ENTRY_SEAL_SIZE),
                          out);
}

bool generation_parse(const char *text, struct generation_wish *wish, size_t *count)
{
    *count = 0;
    while (*text != '\0') {
        const size_t size = strcspn(text, ",");
        struct generation_wish one = {0};
        char *end = NULL;
        const unsigned long id = strtoul(text, &end, 10);
        const size_t head = (size_t)(end - text) + 1;

        if (*text < '0' || *text > '9' || end == text || *end != '=' || head >= size ||
            size - head > GENERATION_ADDRESS_MAX || *count == GENERATION_VOTERS_MAX) {
            return false;
        }
        one.id = id;
        memcpy(one.address, text + head, size - head);
        wish[(*count)++] = one;
        text += size;
        text += *text == ',' && text[1] != '\0';
        if (*text == ',') {
            return false;
        }
    }
    return *count > 0;
}
