/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules of `ringhold check` about transactions: stuck ones, forgotten holds,
 * actors alive twice.
 */
#include "base/stamp.h"
#include "cli/check/check.h"
#include "cli/rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { DURATION_SIZE = 32, ID_SHOWN = 48 };

static const Rh__TxnRow *pending(const Rh__AdminReply *ref, uint64_t number)
{
    for (size_t i = 0; i < ref->n_txns; i++) {
        if (ref->txns[i]->txn == number) {
            return ref->txns[i];
        }
    }
    return NULL;
}

static uint64_t patience_us(const Rh__AdminReply *ref)
{
    return (uint64_t)ref->inspection->prepare_ms * 1000 + CHECK_GRACE_US;
}

/* ---- transactions ---- */

static void find_stuck(const Rh__AdminReply *ref, const Rh__TxnRow *t, struct findings *out)
{
    const uint64_t now_us = ref->inspection->wall_us;
    const uint64_t age_us = now_us > t->created_us ? now_us - t->created_us : 0;
    char age[DURATION_SIZE];
    struct finding *f = NULL;

    if (age_us <= patience_us(ref)) {
        return;
    }
    f = findings_add(out, CHECK_TRANSACTIONS);
    finding_subject(f, "transaction %s", STAMP(t->txn));
    finding_what(f,
                 "transaction %s has been in doubt for %s; it waits %s",
                 STAMP(t->txn),
                 duration_text(age_us, age, sizeof age),
                 t->waiting_for[0] == '\0' ? "for a leader" : t->waiting_for);
    finding_todo(f, "ringhold txn show %s; ringhold fix aborts it", STAMP(t->txn));
    f->plan.repair = REPAIR_ABORT;
    f->plan.txn = t->txn;
}

/* ---- holds ---- */

static void find_hold(const Rh__AdminReply *ref, const Rh__InspectAnswer *p,
                      const Rh__HoldRow *hold, struct findings *out)
{
    char held[DURATION_SIZE];
    struct finding *f = NULL;
    const bool late = hold->held_us > patience_us(ref);
    const bool open = pending(ref, hold->txn) != NULL;

    if (open && !late) {
        return;
    }
    f = findings_add(out, CHECK_HOLDS);
    finding_subject(f, "node %s", p->name);
    finding_mark(f, "%" PRIu64, hold->txn);
    finding_what(f,
                 "node %s holds %zu vnodes for transaction %s, which %s, for %s; %" PRIu64
                 " requests wait",
                 p->name,
                 hold->n_vnodes,
                 STAMP(hold->txn),
                 open ? "is past its deadline" : "is not pending",
                 duration_text(hold->held_us, held, sizeof held),
                 hold->requests);
    if (open) {
        finding_todo(f, "ringhold txn show %s; ringhold fix aborts it", STAMP(hold->txn));
        f->plan.repair = REPAIR_ABORT;
    } else {
        finding_todo(f, "ringhold fix: the node is told the outcome again");
        check_plan(f, REPAIR_OUTCOME, p);
    }
    f->plan.txn = hold->txn;
}

/* ---- actors ---- */

static void find_strays(const Rh__InspectAnswer *p, struct findings *out)
{
    struct finding *f = NULL;
    unsigned vnode = 0;

    if (p->strays == 0) {
        return;
    }
    for (size_t i = 0; i < p->n_live; i++) {
        vnode = p->live[i]->stray ? p->live[i]->vnode : vnode;
    }
    f = findings_add(out, CHECK_ACTORS);
    finding_subject(f, "node %s", p->name);
    finding_mark(f, "strays");
    finding_what(f,
                 "node %s has %" PRIu64 " actors outside its vnodes (vnode %u)",
                 p->name,
                 p->strays,
                 vnode);
    finding_todo(f, "ringhold fix: the node stops them");
    check_plan(f, REPAIR_STRAYS, p);
}

static bool same_id(const Rh__LiveId *a, const Rh__LiveId *b)
{
    return a->cell == b->cell && a->kind == b->kind && a->id.len == b->id.len &&
           memcmp(a->id.data, b->id.data, a->id.len) == 0;
}

static bool has_id(const Rh__InspectAnswer *p, const Rh__LiveId *id)
{
    for (size_t i = 0; i < p->n_ids; i++) {
        if (same_id(p->ids[i], id)) {
            return true;
        }
    }
    return false;
}

/* Printable, and cut where it is long. */
static const char *id_text(const Rh__LiveId *id, char out[ID_SHOWN + 1])
{
    size_t size = id->id.len < ID_SHOWN ? id->id.len : ID_SHOWN;

    for (size_t i = 0; i < size; i++) {
        const uint8_t c = id->id.data[i];

        out[i] = (char)(c >= 0x20 && c < 0x7f ? c : '.');
    }
    out[size] = '\0';
    return out;
}

static void find_twice(const Rh__InspectAnswer *a, const Rh__InspectAnswer *b, struct findings *out)
{
    const Rh__LiveId *first = NULL;
    struct finding *f = NULL;
    char id[ID_SHOWN + 1];
    size_t count = 0;

    for (size_t i = 0; i < a->n_ids; i++) {
        if (has_id(b, a->ids[i])) {
            first = first == NULL ? a->ids[i] : first;
            count++;
        }
    }
    if (first == NULL) {
        return;
    }
    f = findings_add(out, CHECK_ACTORS);
    finding_subject(f, "nodes %.30s and %.30s", a->name, b->name);
    finding_mark(f, "%u %s", first->kind, id_text(first, id));
    finding_what(f,
                 "%zu ids live at both %s and %s, one of them '%s' (kind %u)",
                 count,
                 a->name,
                 b->name,
                 id_text(first, id),
                 first->kind);
    finding_todo(f, "first repair the ring, and the actors outside their vnodes on these nodes");
}

void check_txns(const struct collection *s, const Rh__AdminReply *ref, struct findings *out)
{
    for (size_t i = 0; i < ref->n_txns; i++) {
        find_stuck(ref, ref->txns[i], out);
    }
    for (size_t i = 0; i < s->process_count; i++) {
        const Rh__InspectAnswer *p = s->process[i];

        for (size_t j = 0; j < p->n_holds; j++) {
            find_hold(ref, p, p->holds[j], out);
        }
        find_strays(p, out);
        for (size_t j = i + 1; j < s->process_count; j++) {
            find_twice(p, s->process[j], out);
        }
    }
}
