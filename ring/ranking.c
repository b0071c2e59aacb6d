/* SPDX-License-Identifier: Apache-2.0
 *
 * The heap behind plans: which node is farthest from its share.
 */
#include "ring/ranking.h"

#include "base/mem.h"

void ranking_init(struct ranking *h, size_t items)
{
    *h = (struct ranking){0};
    h->key = mem_new(items, sizeof *h->key);
    h->item = mem_new(items, sizeof *h->item);
    h->place = mem_new(items, sizeof *h->place);
}

void ranking_fini(struct ranking *h)
{
    mem_free(h->key);
    mem_free(h->item);
    mem_free(h->place);
    *h = (struct ranking){0};
}

static bool before(const struct ranking *h, uint32_t a, uint32_t b)
{
    return h->key[a] != h->key[b] ? h->key[a] > h->key[b] : a < b;
}

static void set(struct ranking *h, size_t place, uint32_t item)
{
    h->item[place] = item;
    h->place[item] = (uint32_t)place + 1;
}

static void sift_up(struct ranking *h, size_t place)
{
    uint32_t item = h->item[place];

    while (place > 0 && before(h, item, h->item[(place - 1) / 2])) {
        set(h, place, h->item[(place - 1) / 2]);
        place = (place - 1) / 2;
    }
    set(h, place, item);
}

static void sift_down(struct ranking *h, size_t place)
{
    uint32_t item = h->item[place];

    while (2 * place + 1 < h->count) {
        size_t child = 2 * place + 1;

        if (child + 1 < h->count && before(h, h->item[child + 1], h->item[child])) {
            child++;
        }
        if (!before(h, h->item[child], item)) {
            break;
        }
        set(h, place, h->item[child]);
        place = child;
    }
    set(h, place, item);
}

void ranking_put(struct ranking *h, uint32_t item, int64_t key)
{
    if (!ranking_has(h, item)) {
        set(h, h->count, item);
        h->count++;
    }
    h->key[item] = key;
    sift_up(h, h->place[item] - 1);
    sift_down(h, h->place[item] - 1);
}

void ranking_remove(struct ranking *h, uint32_t item)
{
    size_t place = h->place[item];
    uint32_t last;

    if (place == 0) {
        return;
    }
    h->count--;
    last = h->item[h->count];
    h->place[item] = 0;
    if (last != item) {
        set(h, place - 1, last);
        sift_up(h, place - 1);
        sift_down(h, h->place[last] - 1);
    }
}
