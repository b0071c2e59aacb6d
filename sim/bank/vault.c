/* SPDX-License-Identifier: Apache-2.0
 *
 * The rows of one actor, as named values of five tables.
 */
#include "sim/bank/vault.h"

#include "base/assert.h"
#include "base/mutant.h"
#include "storage/actors/verdict.h"

#include <string.h>

/* In front of an alarm's payload. */
struct times {
    uint64_t due_ms;
    uint64_t every_ms;
};

void vault_init(struct vault *v)
{
    for (size_t of = 0; of < CHANGE_COUNT; of++) {
        named_values_init(&v->table[of]);
    }
}

void vault_fini(struct vault *v)
{
    for (size_t of = 0; of < CHANGE_COUNT; of++) {
        named_values_fini(&v->table[of]);
    }
}

/* ---- rows ---- */

static void open_row(enum change_of of, struct bytes key, struct bytes bytes,
                     struct store_change *out)
{
    struct times times = {0};

    *out = (struct store_change){.of = of, .key = key, .bytes = bytes};
    if (of == CHANGE_ALARM) {
        memcpy(&times, bytes.data, sizeof times);
        out->due_ms = times.due_ms;
        out->every_ms = times.every_ms;
        out->bytes = bytes_of(bytes.data + sizeof times, bytes.size - sizeof times);
    }
}

bool vault_get(const struct vault *v, enum change_of of, struct bytes key, struct store_change *out)
{
    struct bytes bytes = {0};

    if (!named_values_get(&v->table[of], key, &bytes)) {
        return false;
    }
    open_row(of, key, bytes, out);
    return true;
}

bool vault_next(const struct vault *v, enum change_of of, struct bytes after,
                struct store_change *out)
{
    struct bytes key = {0};
    struct bytes bytes = {0};

    if (!named_values_next(&v->table[of], after, &key, &bytes)) {
        return false;
    }
    open_row(of, key, bytes, out);
    return true;
}

static void put_row(struct vault *v, const struct store_change *c)
{
    const struct times times = {c->due_ms, c->every_ms};
    struct buffer row = {0};

    if (c->of == CHANGE_ALARM) {
        buffer_put(&row, &times, sizeof times);
    }
    buffer_put(&row, c->bytes.data, c->bytes.size);
    const enum named_put put = named_values_put(&v->table[c->of], c->key, buffer_bytes(&row));
    ASSERT(put == NAMED_PUT_DONE);
    buffer_fini(&row);
}

/* ---- tasks ---- */

void vault_claim(struct vault *v, struct store_task *t)
{
    t->result = t->fence >= v->fence ? STORE_DONE : STORE_FENCED;
    if (t->result != STORE_DONE) {
        return;
    }
    v->fence = t->fence;
    t->number = v->number;
    for (size_t of = 0; of < CHANGE_COUNT; of++) {
        struct store_change c = {.key = {0}};

        while (vault_next(v, (enum change_of)of, c.key, &c)) {
            changes_put(&t->bytes, &c);
        }
    }
}

bool vault_takes(const struct vault *v, const struct store_task *t)
{
    const bool owns = t->fence == v->fence || mutant(M_NOFENCESTORE);

    return owns && t->number == v->number + 1;
}

void vault_commit(struct vault *v, const struct store_task *t)
{
    struct bytes all = buffer_bytes(&t->bytes);
    struct buffer unused = {0};
    struct store_change c;

    while (changes_next(&all, &c)) {
        if (c.gone) {
            (void)named_values_delete(&v->table[c.of], c.key);
        } else {
            put_row(v, &c);
        }
    }
    v->number = t->number;
    for (size_t of = 0; of < CHANGE_COUNT; of++) {
        named_values_seal(&v->table[of], &unused);
    }
    buffer_fini(&unused);
}

enum store_result vault_settle(struct vault *v, const struct store_task *t)
{
    const struct store_row commit = verdict_row_of(t);
    const struct store_row found = {.fence = v->fence, .number = v->number};

    const bool is_next = found.fence == commit.fence && found.number + 1 == commit.number;

    if (is_next && !mutant(M_LATECOMMIT)) {
        v->number = commit.number + 1;
    }
    return verdict_of_doubt(&commit, &found);
}
