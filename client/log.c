/* SPDX-License-Identifier: Apache-2.0
 *
 * The log of requests: packets lie one behind the other in the order they were
 * asked, from the oldest that has no answer to the newest.
 *
 *     begin       entry 0      entry `next`, `partial` of it is out      end
 *     |   free    | sent, waits | ......
 */
#include "client/inside.h"

#include <assert.h>
#include <string.h>

/* The oldest that need nothing more. One whose packet is half out stays: the rest must follow. */
static void drop_old(struct log *l)
{
    while (l->count > 0 && log_entry(l, 0)->state == ENTRY_OVER &&
           !(l->next == 0 && l->partial > 0)) {
        l->first = (l->first + 1) % l->max;
        l->count--;
        l->next -= l->next > 0;
    }
}

static uint64_t oldest(const struct log *l)
{
    return l->count > 0 ? log_entry(l, 0)->at : l->end;
}

uint8_t *log_put(struct log *l, size_t size, struct asked_entry **entry)
{
    const uint64_t from = oldest(l);

    if (l->count == l->max || l->end - from + size > l->bytes_max) {
        return NULL;
    }
    if (l->end - l->begin + size > l->bytes_max) {
        memmove(l->bytes, l->bytes + (from - l->begin), (size_t)(l->end - from));
        l->begin = from;
    }
    struct asked_entry *e = log_entry(l, l->count++);

    *e = (struct asked_entry){.at = l->end, .size = size};
    l->end += size;
    *entry = e;
    return log_packet(l, e);
}

void log_init(struct log *l, struct asked_entry *entry, uint32_t max, uint8_t *bytes,
              size_t bytes_max)
{
    *l = (struct log){.max = max, .bytes_max = bytes_max};
    l->entry = entry;
    l->bytes = bytes;
}

uint8_t *log_packet(struct log *l, const struct asked_entry *e)
{
    return l->bytes + (e->at - l->begin);
}

void log_over(struct log *l, struct asked_entry *e)
{
    l->doomed -= e->state == ENTRY_DOOMED;
    e->state = ENTRY_OVER;
    drop_old(l);
}

void log_doom(struct log *l, struct asked_entry *e, enum rhc_status status)
{
    if (e->told) {
        e->state = ENTRY_OVER;
    } else if (e->state == ENTRY_ASKED) {
        e->state = ENTRY_DOOMED;
        e->status = (uint8_t)status;
        l->doomed++;
    }
}

struct asked_entry *log_next_doomed(struct log *l)
{
    for (uint32_t i = 0; l->doomed > 0 && i < l->count; i++) {
        struct asked_entry *e = log_entry(l, i);

        if (e->state == ENTRY_DOOMED) {
            return e;
        }
    }
    return NULL;
}

struct asked_entry *log_find(struct log *l, uint32_t name)
{
    for (uint32_t i = 0; i < l->count; i++) {
        struct asked_entry *e = log_entry(l, i);

        if (e->name == name && !e->told && e->state == ENTRY_ASKED) {
            return e;
        }
    }
    return NULL;
}

static bool goes_out(const struct log *l, uint32_t i)
{
    const struct asked_entry *e = log_entry(l, i);

    return (e->state == ENTRY_ASKED) || (i == l->next && l->partial > 0);
}

struct rhc_bytes log_output(struct log *l)
{
    while (l->next < l->count && !goes_out(l, l->next)) {
        l->next++;
    }
    if (l->next == l->count) {
        return bytes_at(NULL, 0);
    }
    const struct asked_entry *from = log_entry(l, l->next);
    size_t size = from->size - l->partial;

    for (uint32_t i = l->next + 1; i < l->count && goes_out(l, i); i++) {
        size += log_entry(l, i)->size;
    }
    return bytes_at(log_packet(l, from) + l->partial, size);
}

void log_sent(struct log *l, size_t size)
{
    while (size > 0) {
        assert(l->next < l->count);
        struct asked_entry *e = log_entry(l, l->next);
        const size_t left = e->size - l->partial;

        if (size < left) {
            l->partial += size;
            return;
        }
        size -= left;
        l->partial = 0;
        l->next++;
        e->sent = true;
        e->kept = l->in_session;
        if (e->told) {
            e->state = ENTRY_OVER; // nobody will answer it
            l->told_max = e->size > l->told_max ? e->size : l->told_max;
        }
    }
    drop_old(l);
}

void log_rewind(struct log *l, bool keeps)
{
    l->next = 0;
    l->partial = 0; // half a packet never ran
    l->told_max = 0;
    for (uint32_t i = 0; i < l->count; i++) {
        struct asked_entry *e = log_entry(l, i);
        const bool again = !e->sent || (keeps && e->kept) || e->idempotent;

        e->former = e->sent;
        if (e->state == ENTRY_ASKED && !again) {
            log_doom(l, e, RHC_UNKNOWN);
        }
    }
    drop_old(l);
}

void log_limit(struct log *l, size_t size_max)
{
    for (uint32_t i = 0; i < l->count; i++) {
        struct asked_entry *e = log_entry(l, i);

        if (e->state == ENTRY_ASKED && e->size > size_max) {
            log_doom(l, e, e->sent ? RHC_UNKNOWN : RHC_BAD_REQUEST);
        }
    }
}

bool log_blame(struct log *l)
{
    const uint32_t out = l->next + (l->partial > 0);
    size_t most = 0;

    for (uint32_t i = 0; i < out; i++) {
        const struct asked_entry *e = log_entry(l, i);

        most = e->state == ENTRY_ASKED && e->size > most ? e->size : most;
    }
    for (uint32_t i = 0; i < out && most > 0; i++) {
        struct asked_entry *e = log_entry(l, i);

        // A gateway reads in order and stops at the first that is too large: what is as large as
        // any that went out was that one, or came behind it. If a notify was as large it isn't
        // sure; nor is it of what an earlier connection sent.
        if (e->state == ENTRY_ASKED && e->size == most) {
            log_doom(l, e, e->former || most <= l->told_max ? RHC_UNKNOWN : RHC_BAD_REQUEST);
        }
    }
    return most > 0 || l->told_max > 0;
}

void log_mark_again(struct log *l, bool again)
{
    for (uint32_t i = 0; i < l->count; i++) {
        const struct asked_entry *e = log_entry(l, i);
        uint8_t *flags = log_packet(l, e) + HEAD + 4;

        *flags = (uint8_t)((*flags & ~F_AGAIN) | (again && e->sent && e->kept ? F_AGAIN : 0));
    }
}

bool log_is_again(struct log *l, const struct asked_entry *e)
{
    return (log_packet(l, e)[HEAD + 4] & F_AGAIN) != 0;
}

void log_never_ran(struct asked_entry *e)
{
    e->sent = false;
    e->kept = false;
}

void log_in_session(struct log *l, bool in_session)
{
    l->in_session = in_session;
}

void log_forget_session(struct log *l)
{
    for (uint32_t i = 0; i < l->count; i++) {
        struct asked_entry *e = log_entry(l, i);

        // Not yet sent again: it may have run in what is over, and the gateway would not know.
        if (i >= l->next && e->state == ENTRY_ASKED && e->sent && !e->idempotent) {
            log_doom(l, e, RHC_UNKNOWN);
        }
        e->kept = false;
    }
    log_mark_again(l, false);
}

void log_end(struct log *l)
{
    l->next = 0;
    l->partial = 0;
    for (uint32_t i = 0; i < l->count; i++) {
        struct asked_entry *e = log_entry(l, i);

        log_doom(l, e, e->sent ? RHC_UNKNOWN : RHC_MOVING);
    }
    drop_old(l);
}

uint32_t log_least(const struct log *l, uint32_t none)
{
    for (uint32_t i = 0; i < l->count; i++) {
        const struct asked_entry *e = log_entry(l, i);

        if (e->state == ENTRY_ASKED && !e->told) {
            return e->name;
        }
    }
    return none;
}

bool log_owes(const struct log *l)
{
    for (uint32_t i = 0; i < l->count; i++) {
        const struct asked_entry *e = log_entry(l, i);

        if (e->state == ENTRY_ASKED &&
            ((e->sent && i < l->next) || (i == l->next && l->partial > 0))) {
            return true;
        }
    }
    return false;
}
