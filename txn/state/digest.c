/* SPDX-License-Identifier: Apache-2.0
 *
 * Hashes the whole replicated state.
 */
#include "txn/state/digest.h"

#include "ring/inspect.h"
#include "txn/state/pins.h"
#include "txn/state/remembered.h"
#include "wire/versions.h"

#include <string.h>

static void put_text(struct siphash *h, const char *text)
{
    digest_bytes(h, bytes_of(text, strlen(text)));
}

static void put_node(struct siphash *h, const struct state_node *n)
{
    siphash_word(h, n->slot);
    put_text(h, n->name);
    put_text(h, n->address);
    put_text(h, n->zone);
    siphash_word(h, n->incarnation);
    siphash_word(h, n->nonce);
    digest_bytes(h, bytes_of(n->boot_id, sizeof n->boot_id));
    digest_bytes(h, bytes_of(n->data_uuid, sizeof n->data_uuid));
    siphash_word(h, n->weight);
    if (n->role[0] != '\0') {
        put_text(h, n->role);
    }
    for (size_t i = 0; i < n->kinds.count; i++) {
        siphash_word(h, n->kinds.kind[i]);
    }
    if (n->wished != 0) {
        siphash_word(h, n->wish);
        siphash_word(h, n->wished);
    }
    siphash_word(h,
                 (uint64_t)n->leaving | (uint64_t)n->stopping << 1 | (uint64_t)n->barred << 2 |
                     (uint64_t)n->clean << 3 | (uint64_t)n->removed << 4);
}

static void put_txn(struct siphash *h, const struct state_txn *t)
{
    siphash_word(h, t->number);
    siphash_word(h, (uint64_t)t->state);
    siphash_word(h, t->base);
    siphash_word(h, t->version);
    siphash_word(h, t->superseded_by);
    siphash_word(h, t->created_us);
    siphash_word(h, t->decided_us);
    for (size_t i = 0; i < t->op_count; i++) {
        siphash_word(h, (uint64_t)t->ops[i].kind | (uint64_t)t->ops[i].vnode << 32);
        siphash_word(h, t->ops[i].other | (uint64_t)t->ops[i].at << 32);
        siphash_word(h, t->ops[i].from | (uint64_t)t->ops[i].to << 32);
    }
    for (size_t i = 0; i < t->part_count; i++) {
        siphash_word(h, t->parts[i].slot);
        siphash_word(h, t->parts[i].incarnation);
    }
    put_text(h, t->why);
    put_text(h, t->outcome_why);
}

static void put_suspect(struct siphash *h, const struct state_suspect *e)
{
    siphash_word(h, (uint64_t)e->actor.kind << 1 | e->quarantined);
    digest_bytes(h, quarantined_id(&e->actor));
    siphash_word(h, e->strikes);
    siphash_word(h, e->struck_us);
    siphash_word(h, e->since_us);
    put_text(h, e->node);
}

static void put_pin(struct siphash *h, const struct state_pin *p)
{
    siphash_word(h, p->from | (uint64_t)p->to << 32);
    siphash_word(h, (uint64_t)p->kind << 1 | p->waits);
    digest_bytes(h, pins_id(p));
    put_text(h, p->node);
}

uint64_t state_digest(const struct state *s)
{
    struct siphash h = siphash_start(s->view.key);

    siphash_word(&h, (uint64_t)s->begun | (uint64_t)s->settling << 1);
    put_text(&h, s->cluster);
    siphash_word(&h, s->view.fleet.low);
    if (s->view.fleet.high != 0) { // a fleet from before it had this half
        siphash_word(&h, s->view.fleet.high);
    }
    siphash_word(&h, s->vnodes_per_weight);
    siphash_word(&h, s->number);
    siphash_word(&h, s->lease_us);
    if (s->format >
        FLEET_FORMAT_OLDEST) { // a version that knows no other says nothing of the first
        siphash_word(&h, s->format);
    }
    siphash_word(&h, s->view.ring.version);
    siphash_word(&h, s->view.ring.digest[0]);
    siphash_word(&h, s->view.ring.digest[1]);
    siphash_word(&h, view_digest(&s->view));
    for (size_t i = 0; i < s->node_count; i++) {
        put_node(&h, &s->node[i]);
    }
    for (size_t i = 0; i < s->txn_count; i++) {
        put_txn(&h, &s->txn[i]);
    }
    for (size_t i = 0; i < s->kind_count; i++) {
        siphash_word(&h, (uint64_t)s->kind[i].number << 8 | s->kind[i].placement);
        put_text(&h, s->kind[i].role);
        put_text(&h, s->kind[i].name);
    }
    for (size_t i = 0; i < s->suspect_count; i++) {
        put_suspect(&h, &s->suspect[i]);
    }
    for (size_t i = 0; i < s->lost_count; i++) {
        siphash_word(&h, s->lost[i].incarnation);
        siphash_word(&h, s->lost[i].from | (uint64_t)s->lost[i].to << 32);
    }
    for (size_t i = 0; i < s->struck_count; i++) {
        siphash_word(&h, s->struck[i].incarnation);
        siphash_word(&h, s->struck[i].position);
    }
    for (size_t i = 0; i < s->pin_count; i++) {
        put_pin(&h, &s->pin[i]);
    }
    for (size_t i = 0; i < s->remembered_count; i++) {
        siphash_word(&h, s->remembered[i].kind);
        digest_bytes(&h, remembered_id(&s->remembered[i]));
    }
    for (size_t i = 0; i < s->voter_count; i++) {
        siphash_word(&h, s->voter[i].id);
        siphash_word(&h, s->voter[i].identity);
    }
    return siphash_end(&h, s->txn_count);
}
