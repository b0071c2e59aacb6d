/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds contradictions in a ring, and computes a view's digest from scratch.
 */
#include "ring/inspect.h"

#include "ring/digest.h"
#include "ring/inside.h"

#include <stdio.h>
#include <string.h>

/* The cells that `v` should have; the first that says something else is a fault. */
static bool inspect_cells(const struct ring *r, const struct ring_vnode *v, uint32_t end,
                          char fault[RING_FAULT_SIZE])
{
    for (uint32_t c = v->from; c < end; c++) {
        if (r->cell[c] != ring_hit_of(v)) {
            (void)snprintf(fault,
                           RING_FAULT_SIZE,
                           "cell %u is of vnode %u, its table says vnode %u of slot %u",
                           c,
                           v->id,
                           ring_hit_vnode(r->cell[c]),
                           ring_hit_node(r->cell[c]));
            return false;
        }
    }
    return true;
}

static bool inspect_vnode(const struct ring *r, size_t index, char fault[RING_FAULT_SIZE])
{
    const struct ring_vnode *v = &r->vnode[index];
    const uint32_t cells = r->cell_count;
    const uint32_t end = index + 1 < r->vnode_count ? r->vnode[index + 1].from : cells;

    if (v->from >= end || end > cells || (index == 0 && v->from != 0)) {
        (void)snprintf(
            fault, RING_FAULT_SIZE, "vnode %u covers cells %u to %u", v->id, v->from, end);
        return false;
    }
    if (v->id >= r->slot_count || r->slot[v->id] != index + 1) {
        (void)snprintf(fault, RING_FAULT_SIZE, "vnode %u is not where its index says", v->id);
        return false;
    }
    if (v->cold > v->generation || v->generation > r->version) {
        (void)snprintf(
            fault, RING_FAULT_SIZE, "vnode %u has a generation newer than the ring", v->id);
        return false;
    }
    return inspect_cells(r, v, end, fault);
}

void ring_inspect(const struct ring *r, uint64_t sum[2], char fault[RING_FAULT_SIZE])
{
    fault[0] = '\0';
    ring_digest(r, sum);
    for (size_t i = 0; i < r->vnode_count; i++) {
        if (!inspect_vnode(r, i, fault)) {
            return;
        }
    }
    if (memcmp(sum, r->digest, sizeof r->digest) != 0) {
        (void)snprintf(fault, RING_FAULT_SIZE, "the announced digest is not the ring's");
    }
}

#ifdef RINGHOLD_INJECT
void ring_spoil(struct ring *r)
{
    for (uint32_t c = 0; r->vnode_count > 1 && c < r->vnode[1].from; c++) {
        r->cell[c] = ring_hit_of(&r->vnode[r->vnode_count - 1]);
    }
}
#endif

void digest_bytes(struct siphash *s, struct bytes bytes)
{
    uint64_t word = 0;

    siphash_word(s, bytes.size);
    for (size_t i = 0; i < bytes.size; i++) {
        word |= (uint64_t)bytes.data[i] << (8 * (i % 8));
        if (i % 8 == 7 || i + 1 == bytes.size) {
            siphash_word(s, word);
            word = 0;
        }
    }
}

uint64_t view_digest(const struct view *v)
{
    struct siphash s = siphash_start(v->key);

    siphash_word(&s, v->era);
    for (size_t i = 0; i < v->member_count; i++) {
        const struct view_member *m = &v->member[i];

        siphash_word(&s, m->slot);
        digest_bytes(&s, bytes_of(m->name, strlen(m->name)));
        digest_bytes(&s, bytes_of(m->address, strlen(m->address)));
        siphash_word(&s, m->incarnation);
        siphash_word(&s, (uint64_t)m->weight << 1 | m->leaving);
        if (m->role[0] != '\0') {
            digest_bytes(&s, bytes_of(m->role, strlen(m->role)));
        }
        for (size_t k = 0; k < m->kinds.count; k++) {
            siphash_word(&s, m->kinds.kind[k]);
        }
    }
    for (size_t i = 0; i < v->quarantine.count; i++) {
        siphash_word(&s, v->quarantine.entry[i].kind);
        digest_bytes(&s, quarantined_id(&v->quarantine.entry[i]));
    }
    return siphash_end(&s, v->member_count);
}
