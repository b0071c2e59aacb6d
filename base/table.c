/* SPDX-License-Identifier: Apache-2.0
 *
 * Walks items of the chained hash table, and doubles its buckets.
 */
#include "base/table.h"

#include "base/mem.h"

enum { TABLE_START = 16 };

static struct table_link **bucket_of(const struct table *t, uint64_t hash)
{
    return &t->bucket[hash & (t->bucket_count - 1)];
}

void table_grow(struct table *t)
{
    struct table_link **old = t->bucket;
    const size_t old_count = t->bucket_count;

    t->bucket_count = old_count == 0 ? TABLE_START : old_count * 2;
    t->bucket = mem_new(t->bucket_count, sizeof(struct table_link *));
    for (size_t i = 0; i < old_count; i++) {
        struct table_link *item = old[i];

        while (item != NULL) {
            struct table_link *next = item->next;
            struct table_link **bucket = bucket_of(t, item->hash);

            item->next = *bucket;
            *bucket = item;
            item = next;
        }
    }
    mem_free((void *)old);
}

struct table_link *table_walk(const struct table *t, struct table_walk *at)
{
    struct table_link *item = at->next;

    while (item == NULL && at->bucket < t->bucket_count) {
        item = t->bucket[at->bucket++];
    }
    at->next = item == NULL ? NULL : item->next;
    return item;
}

void table_fini(struct table *t)
{
    mem_free((void *)t->bucket);
    *t = (struct table){0};
}
