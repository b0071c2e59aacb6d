/* SPDX-License-Identifier: Apache-2.0
 *
 * A sorted array of values, and a list of those that were changed with what they were before.
 */
#include "node/durable/values.h"

#include "base/assert.h"
#include "base/mem.h"
#include "storage/actors/changes.h"

/* Owned bytes, or none. */
struct content {
    void *data; /* owned */
    size_t size;
    bool there;
};

struct named_value {
    struct list_link in_changed; /* linked: `before` is what it was */
    struct content now;
    struct content before;
    uint8_t key_size;
    uint8_t key[]; /* flexible */
};

static struct bytes key_of(const struct named_value *n)
{
    return bytes_of(n->key, n->key_size);
}

static int compare(struct bytes a, struct bytes b)
{
    const size_t common = a.size < b.size ? a.size : b.size;
    const int order = common == 0 ? 0 : memcmp(a.data, b.data, common);

    return order != 0 ? order : (a.size > b.size) - (a.size < b.size);
}

/* Where the first key is that is not less. */
static size_t place_of(const struct named_values *v, struct bytes key)
{
    size_t low = 0;
    size_t high = v->count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (compare(key_of(v->at[middle]), key) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* NULL = it has no place; it may have one and be deleted. */
static struct named_value *find(const struct named_values *v, struct bytes key)
{
    const size_t i = place_of(v, key);

    return i < v->count && compare(key_of(v->at[i]), key) == 0 ? v->at[i] : NULL;
}

static struct named_value *insert(struct named_values *v, size_t at, struct bytes key)
{
    struct named_value *n = mem_new(1, offsetof(struct named_value, key) + key.size);

    if (v->count == v->cap) {
        v->cap = v->cap == 0 ? 8 : v->cap * 2;
        v->at = mem_resize(v->at, v->cap * sizeof(struct named_value *));
    }
    n->key_size = (uint8_t)key.size;
    memcpy(n->key, key.data, key.size);
    memmove(v->at + at + 1, v->at + at, (v->count - at) * sizeof(struct named_value *));
    v->at[at] = n;
    v->count++;
    return n;
}

static struct content content_of(struct bytes bytes)
{
    return (struct content){
        .data = mem_copy(bytes.data, bytes.size), .size = bytes.size, .there = true};
}

/* The table has it in another way now. */
static void replace(struct named_values *v, struct named_value *n, struct content by)
{
    if (n->now.there) {
        v->there--;
        v->size -= n->key_size + n->now.size;
    }
    n->now = by;
    if (n->now.there) {
        v->there++;
        v->size += n->key_size + n->now.size;
    }
}

static void change(struct named_values *v, struct named_value *n, struct content to)
{
    const struct content former = n->now;

    replace(v, n, to);
    if (list_linked(&n->in_changed)) {
        mem_free(former.data);
        return;
    }
    n->before = former;
    list_push_back(&v->changed, &n->in_changed);
}

static void value_free(struct named_value *n)
{
    mem_free(n->now.data);
    mem_free(n->before.data);
    mem_free(n);
}

/* Those that are not there any more lose their places. */
static void sweep(struct named_values *v)
{
    size_t kept = 0;

    if (v->there == v->count) {
        return;
    }
    for (size_t i = 0; i < v->count; i++) {
        if (v->at[i]->now.there) {
            v->at[kept++] = v->at[i];
        } else {
            value_free(v->at[i]);
        }
    }
    v->count = kept;
    ASSERT(v->there == v->count);
}

void named_values_init(struct named_values *v)
{
    *v = (struct named_values){0};
    list_init(&v->changed);
}

void named_values_fini(struct named_values *v)
{
    for (size_t i = 0; i < v->count; i++) {
        value_free(v->at[i]);
    }
    mem_free(v->at);
}

bool named_values_get(const struct named_values *v, struct bytes key, struct bytes *bytes)
{
    const struct named_value *n = find(v, key);

    if (n == NULL || !n->now.there) {
        return false;
    }
    *bytes = bytes_of(n->now.data, n->now.size);
    return true;
}

bool named_values_next(const struct named_values *v, struct bytes after, struct bytes *key,
                       struct bytes *bytes)
{
    size_t i = place_of(v, after);

    while (i < v->count && (!v->at[i]->now.there || compare(key_of(v->at[i]), after) == 0)) {
        i++;
    }
    if (i == v->count) {
        return false;
    }
    *key = key_of(v->at[i]);
    *bytes = bytes_of(v->at[i]->now.data, v->at[i]->now.size);
    return true;
}

bool named_values_at(const struct named_values *v, size_t place, struct bytes *key,
                     struct bytes *bytes)
{
    ASSERT(list_empty(&v->changed));
    if (place >= v->count) {
        return false;
    }
    *key = key_of(v->at[place]);
    *bytes = bytes_of(v->at[place]->now.data, v->at[place]->now.size);
    return true;
}

enum named_put named_values_put(struct named_values *v, struct bytes key, struct bytes bytes)
{
    const size_t i = place_of(v, key);
    struct named_value *n = i < v->count && compare(key_of(v->at[i]), key) == 0 ? v->at[i] : NULL;
    const bool there = n != NULL && n->now.there;
    const size_t less = there ? key.size + n->now.size : 0;

    if ((n == NULL && v->count == NAMED_VALUES_MAX) ||
        v->size - less + key.size + bytes.size > NAMED_VALUES_SIZE_MAX) {
        return NAMED_PUT_FULL;
    }
    const struct content to = content_of(bytes); // first: it may be what is replaced
    change(v, n == NULL ? insert(v, i, key) : n, to);
    return NAMED_PUT_DONE;
}

bool named_values_delete(struct named_values *v, struct bytes key)
{
    struct named_value *n = find(v, key);

    if (n == NULL || !n->now.there) {
        return false;
    }
    change(v, n, (struct content){0});
    return true;
}

void named_values_seal(struct named_values *v, struct buffer *out)
{
    struct list_link *link;

    while ((link = list_pop_front(&v->changed)) != NULL) {
        struct named_value *n = CONTAINER_OF(link, struct named_value, in_changed);
        const struct store_change c = {
            .key = key_of(n), .gone = !n->now.there, .bytes = bytes_of(n->now.data, n->now.size)};

        changes_put(out, &c);
        mem_free(n->before.data);
        n->before = (struct content){0};
    }
    sweep(v);
}

void named_values_undo(struct named_values *v)
{
    struct list_link *link;

    while ((link = list_pop_front(&v->changed)) != NULL) {
        struct named_value *n = CONTAINER_OF(link, struct named_value, in_changed);

        mem_free(n->now.data);
        replace(v, n, n->before);
        n->before = (struct content){0};
    }
    sweep(v);
}

bool named_values_load(struct named_values *v, struct bytes all)
{
    struct store_change c;

    while (changes_next(&all, &c)) {
        if (c.of != CHANGE_VALUE) {
            continue;
        }
        if (v->count > 0 && compare(key_of(v->at[v->count - 1]), c.key) >= 0) {
            return false;
        }
        replace(v, insert(v, v->count, c.key), content_of(c.bytes));
    }
    return true;
}
