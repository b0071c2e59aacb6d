/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "sim/fleet.h"

static void agree(struct fleet *f, const char *who, const struct ring *ring)
{
    struct ledger *l = &f->ledger;

    for (size_t i = l->view_count; i > 0; i--) {
        if (l->view[i - 1].version == ring->version) {
            if (l->view[i - 1].digest[0] != ring->digest[0] ||
                l->view[i - 1].digest[1] != ring->digest[1]) {
                world_violate(&f->world,
                              "agreement",
                              "%s has another ring at version %llu than others",
                              who,
                              (unsigned long long)ring->version);
            }
            return;
        }
    }
    if (l->view_count == l->view_cap) {
        l->view_cap = l->view_cap == 0 ? 64 : 2 * l->view_cap;
        l->view = mem_resize(l->view, l->view_cap * sizeof *l->view);
    }
    l->view[l->view_count].version = ring->version;
    l->view[l->view_count].digest[0] = ring->digest[0];
    l->view[l->view_count].digest[1] = ring->digest[1];
    l->view_count++;
}

void check_view(struct fleet *f, const char *who, const struct view *view, uint64_t *version)
{
    const uint64_t now = view->ring.version;

    if (now == *version) {
        return;
    }
    TRACE(&f->world, who, "has ring version %llu", (unsigned long long)now);
    if (now < *version) {
        world_violate(&f->world,
                      "agreement",
                      "%s goes back from version %llu to %llu",
                      who,
                      (unsigned long long)*version,
                      (unsigned long long)now);
    }
    if (now > f->raft.truth.view.ring.version) {
        world_violate(&f->world,
                      "agreement",
                      "%s has version %llu, which is not committed",
                      who,
                      (unsigned long long)now);
    }
    *version = now;
    agree(f, who, &view->ring);
}

void check_committed(struct fleet *f, const Rh__Command *command, const struct state_result *result)
{
    static const char *const name[] = {"INIT",
                                       "REGISTER",
                                       "BEGIN",
                                       "COMMIT",
                                       "ABORT",
                                       "DESIRE",
                                       "FENCE",
                                       "REASSIGN",
                                       "DEREGISTER",
                                       "VOTER"};
    const int which = (int)command->body_case - (int)RH__COMMAND__BODY_INIT;

    TRACE(&f->world,
          "log",
          "%s %s stamp=%llu txn=%llu %s",
          which >= 0 && which < 10 ? name[which] : "?",
          result->accepted ? "accepted" : "refused",
          (unsigned long long)result->stamp,
          (unsigned long long)result->txn,
          result->why == NULL ? "" : result->why);
    if (result->delta != NULL) {
        agree(f, "log", &f->raft.truth.view.ring);
        for (size_t i = 0; i < result->delta->n_ops; i++) {
            f->ledger.moves += result->delta->ops[i]->kind == RING_MOVE;
        }
    }
    f->ledger.aborts += result->aborted_count;
    f->ledger.commits += result->accepted && command->body_case == RH__COMMAND__BODY_COMMIT;
}

void check_outcome(struct fleet *f, const char *who, const Rh__Control *message)
{
    const bool commit = message->body_case == RH__CONTROL__BODY_COMMIT;
    const bool cancel = message->body_case == RH__CONTROL__BODY_CANCEL;
    const struct state_txn *t;
    uint64_t number;

    if (!commit && !cancel) {
        return;
    }
    number = commit ? message->commit->txn : message->cancel->txn;
    t = state_txn(&f->raft.truth, number);
    if (number != 0 && (t == NULL || t->state != (commit ? TXN_COMMITTED : TXN_ABORTED))) {
        world_violate(&f->world,
                      "agreement",
                      "%s is told %s of transaction %llu, which is %s",
                      who,
                      commit ? "COMMIT" : "CANCEL",
                      (unsigned long long)number,
                      t == NULL ? "unknown" : txn_state_name(t->state));
    }
}
