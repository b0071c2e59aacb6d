/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses which HTTP connection has to go: the one that waited longest, of the
 * address that has most.
 */
#include "daemon/seats.h"

#include "base/assert.h"

#include <string.h>

static bool is_here(const struct seat *seat)
{
    return seat->taken && !seat->cut;
}

static void begin(struct seats *s, struct seat *seat, uint64_t now_ms)
{
    seat->since_ms = now_ms;
    seat->order = ++s->order;
}

static struct seat *cut(struct seats *s, struct seat *seat, enum seat_cut why)
{
    ASSERT(is_here(seat));
    seat->cut = true;
    s->taken--;
    s->cut[why]++;
    return seat;
}

/* The one that has waited longest; `of`: of those from the address of that one. NULL = nobody. */
static struct seat *oldest(struct seats *s, const struct seat *of)
{
    struct seat *found = NULL;

    for (size_t i = 0; i < SEATS_MAX; i++) {
        struct seat *seat = &s->seat[i];
        const bool of_it =
            of == NULL || memcmp(&seat->address, &of->address, sizeof seat->address) == 0;

        if (is_here(seat) && of_it && (found == NULL || seat->order < found->order)) {
            found = seat;
        }
    }
    return found;
}

static size_t count_of(const struct seats *s, const struct seat_address *address)
{
    size_t count = 0;

    for (size_t i = 0; i < SEATS_MAX; i++) {
        count += is_here(&s->seat[i]) && memcmp(&s->seat[i].address, address, sizeof *address) == 0;
    }
    return count;
}

/* Of the address that has the most; among addresses that have as many, of the one that has waited
 * longest. */
static struct seat *crowding(struct seats *s)
{
    struct seat *found = NULL;
    size_t most = 0;

    for (size_t i = 0; i < SEATS_MAX; i++) {
        struct seat *seat = &s->seat[i];
        const size_t count = is_here(seat) ? count_of(s, &seat->address) : 0;

        if (count > most || (count > 0 && count == most && seat->order < found->order)) {
            most = count;
            found = seat;
        }
    }
    return found == NULL ? NULL : oldest(s, found);
}

struct seat *seats_come(struct seats *s, const struct seat_address *address, uint64_t now_ms)
{
    for (size_t i = 0; i < SEATS_MAX; i++) {
        struct seat *seat = &s->seat[i];

        if (!seat->taken) {
            *seat = (struct seat){.address = *address, .taken = true};
            begin(s, seat, now_ms);
            s->taken++;
            return seat;
        }
    }
    return NULL;
}

void seats_answered(struct seats *s, struct seat *seat, uint64_t now_ms)
{
    ASSERT(seat->taken);
    seat->answered = true;
    begin(s, seat, now_ms);
}

void seats_gone(struct seats *s, struct seat *seat)
{
    ASSERT(seat->taken);
    s->taken -= is_here(seat) ? 1 : 0;
    seat->taken = false;
}

struct seat *seats_cut(struct seats *s, uint64_t now_ms)
{
    struct seat *first = oldest(s, NULL);

    if (first != NULL && now_ms - first->since_ms >= SEAT_DEADLINE_MS) {
        return cut(s, first, first->answered ? SEAT_CUT_IDLE : SEAT_CUT_DEADLINE);
    }
    return s->taken > SEATS_TAKEN_MAX ? cut(s, crowding(s), SEAT_CUT_CROWDED) : NULL;
}

uint64_t seats_wait_ms(const struct seats *s, uint64_t now_ms)
{
    uint64_t wait = UINT64_MAX;

    for (size_t i = 0; i < SEATS_MAX; i++) {
        if (is_here(&s->seat[i])) {
            const uint64_t waited = now_ms - s->seat[i].since_ms;
            const uint64_t left = waited < SEAT_DEADLINE_MS ? SEAT_DEADLINE_MS - waited : 0;

            wait = left < wait ? left : wait;
        }
    }
    return wait;
}
