/* SPDX-License-Identifier: Apache-2.0
 *
 * Senders and their last numbers, as named values of a table of their own.
 */
#include "node/durable/inbox.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/mutant.h"
#include "storage/actors/changes.h"

#include <stdlib.h>
#include <string.h>

enum {
    KIND_SIZE = 2,
    KEY_MAX = KIND_SIZE + INBOX_ID_MAX,
    WORD_SIZE = 8,
    ROW_SIZE = 2 * WORD_SIZE,
    FORGOTTEN_AT_ONCE = INBOX_SENDERS_MAX / 16,
};

struct row {
    uint64_t number;
    uint64_t turn;
};

/* The greatest byte first. */
static void put_word(uint8_t *at, uint64_t word)
{
    for (size_t i = 0; i < WORD_SIZE; i++) {
        at[i] = (uint8_t)(word >> (8 * (WORD_SIZE - 1 - i)));
    }
}

static uint64_t get_word(const uint8_t *at)
{
    uint64_t word = 0;

    for (size_t i = 0; i < WORD_SIZE; i++) {
        word = word << 8 | at[i];
    }
    return word;
}

static struct row row_of(struct bytes value)
{
    ASSERT(value.size == ROW_SIZE);
    return (struct row){get_word(value.data), get_word(value.data + WORD_SIZE)};
}

static struct bytes key_of(uint8_t *room, uint16_t kind, struct bytes id)
{
    ASSERT(id.size >= 1 && id.size <= INBOX_ID_MAX);
    room[0] = (uint8_t)(kind >> 8);
    room[1] = (uint8_t)(kind & 0xff);
    memcpy(room + KIND_SIZE, id.data, id.size);
    return bytes_of(room, KIND_SIZE + id.size);
}

void inbox_init(struct inbox *i)
{
    named_values_init(&i->senders);
}

void inbox_fini(struct inbox *i)
{
    named_values_fini(&i->senders);
}

bool inbox_has(const struct inbox *i, uint16_t kind, struct bytes id, uint64_t number)
{
    uint8_t room[KEY_MAX];
    struct bytes value = {0};

    return named_values_get(&i->senders, key_of(room, kind, id), &value) &&
           number <= row_of(value).number && !mutant(M_SENDTWICE);
}

static int compare(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a;
    const uint64_t y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* The turn that a sixteenth of them did not come after. */
static uint64_t long_ago(const struct inbox *i)
{
    uint64_t *turn = mem_new(i->senders.there, sizeof *turn);
    struct bytes key = {0};
    struct bytes value = {0};
    size_t count = 0;

    while (named_values_next(&i->senders, key, &key, &value)) {
        turn[count++] = row_of(value).turn;
    }
    qsort(turn, count, sizeof *turn, compare);
    const uint64_t last = turn[FORGOTTEN_AT_ONCE - 1];
    mem_free(turn);
    return last;
}

static void forget_some(struct inbox *i)
{
    const uint64_t last = long_ago(i);
    uint8_t room[KEY_MAX];
    struct bytes key = {0};
    struct bytes value = {0};

    while (named_values_next(&i->senders, key, &key, &value)) {
        memcpy(room, key.data, key.size); // it goes with the value
        key = bytes_of(room, key.size);
        if (row_of(value).turn <= last) {
            (void)named_values_delete(&i->senders, key);
        }
    }
}

void inbox_take(struct inbox *i, uint16_t kind, struct bytes id, uint64_t number)
{
    uint8_t room[KEY_MAX];
    uint8_t row[ROW_SIZE];

    put_word(row, number);
    put_word(row + WORD_SIZE, ++i->turn);
    const enum named_put put =
        named_values_put(&i->senders, key_of(room, kind, id), bytes_of(row, sizeof row));
    ASSERT(put == NAMED_PUT_DONE);
}

void inbox_seal(struct inbox *i, struct buffer *out)
{
    struct buffer sealed = {0};
    struct store_change c;

    named_values_seal(&i->senders, &sealed);
    if (i->senders.there >= INBOX_SENDERS_MAX) { // the next callback takes one
        forget_some(i);
        named_values_seal(&i->senders, &sealed);
    }
    struct bytes all = buffer_bytes(&sealed);
    while (changes_next(&all, &c)) {
        c.of = CHANGE_TAKEN;
        if (!mutant(M_TAKENLOST)) {
            changes_put(out, &c);
        }
    }
    buffer_fini(&sealed);
}

bool inbox_load(struct inbox *i, struct bytes all)
{
    struct buffer unused = {0};
    struct store_change c;
    bool good = true;

    while (good && changes_next(&all, &c)) {
        if (c.of == CHANGE_TAKEN) {
            good = c.key.size > KIND_SIZE && c.bytes.size == ROW_SIZE &&
                   named_values_put(&i->senders, c.key, c.bytes) == NAMED_PUT_DONE &&
                   i->senders.there < INBOX_SENDERS_MAX; // the next callback takes one
            i->turn = good && row_of(c.bytes).turn > i->turn ? row_of(c.bytes).turn : i->turn;
        }
    }
    named_values_seal(&i->senders, &unused);
    buffer_fini(&unused);
    return good;
}
