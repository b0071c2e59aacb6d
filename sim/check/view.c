/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks configurations: one ring for each version, numbers that only grow,
 * outcomes that stay.
 */
#include "base/mem.h"
#include "sim/fleet.h"
#include "wire/cursor.h"
#include "wire/frame.h"

static void agree(struct fleet *f, const char *who, const struct ring *ring)
{
    struct ledger *l = &f->ledger;

    for (size_t i = l->view_count; i > 0; i--) {
        if (l->view[i - 1].version == ring->version) {
            if ((l->view[i - 1].digest[0] != ring->digest[0] ||
                 l->view[i - 1].digest[1] != ring->digest[1]) &&
                !past_doubts(f, ring->version)) {
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

size_t check_view_index(const struct fleet *f, uint64_t version)
{
    for (size_t i = f->ledger.view_count; i > 0; i--) {
        if (f->ledger.view[i - 1].version == version) {
            return i - 1;
        }
    }
    return 0;
}

uint64_t check_uid(const struct request_record *r)
{
    struct bytes body = r->body;
    struct caller from;
    const bool named = (r->flags & REQUEST_CALL) == 0 || caller_get(&body, &from) == ERR_OK;
    struct reader in = {.at = body.data, .left = body.size};

    return fleet_is_apart(r->kind) || !named ? 0 : get_u64(&in);
}

void check_copy(struct fleet *f, const struct sim_node *n, const struct request_record *r)
{
    struct sim_ask *a = ledger_find(f, check_uid(r));

    if (a != NULL) {
        a->nodes |= UINT64_C(1) << (n - f->node);
        a->name = (struct call_name){.node = r->gateway, .session = r->session, .seq = r->seq};
    }
}

static bool is_copy_or_refusal(const void *context, int type, struct bytes frame)
{
    const struct call_name *name = context;
    struct reader in = {.at = frame.data, .left = frame.size};
    struct request_record r = {0};
    struct answer_record a = {0};

    if (type == FRAME_REQUEST && request_get(&in, &r) == ERR_OK) {
        return call_name_same(
            name, &(struct call_name){.node = r.gateway, .session = r.session, .seq = r.seq});
    }
    return type == FRAME_ANSWER && answer_get(&in, &a) == ERR_OK && a.code == ANSWER_NO_KIND &&
           a.aux == NO_KIND_DEADLOCK &&
           call_name_same(
               name, &(struct call_name){.node = a.gateway, .session = a.session, .seq = a.seq});
}

bool check_is_under_way(const struct fleet *f, const struct sim_ask *a)
{
    return network_carries(&f->network, ROLE_NODE, is_copy_or_refusal, &a->name);
}

/* Grows only where time is given back. */
static uint64_t left_at(uint64_t now_us, uint32_t ttl_ms)
{
    return now_us / 100 * 94 + (uint64_t)ttl_ms * 1000;
}

/* What links held of its time, this one and those that its copy came over before. */
static void add_late(const struct fleet *f, struct sim_ask *a, const struct sim_node *n,
                     struct process *from)
{
    uint64_t *late_us = &a->late_us[n - f->node];
    const uint64_t before_us = from->role == ROLE_NODE ? a->late_us[fleet_node(from) - f->node] : 0;
    const uint64_t sum_us = before_us + f->network.late_us;

    *late_us = sum_us > *late_us ? sum_us : *late_us;
}

/* Whoever waits for it stands in its chain, the direct caller and all before: by that it passes
 * holds, and circles are found. */
static void check_ancestors(struct fleet *f, const struct sim_ask *a,
                            const struct request_record *r)
{
    const struct view *view = &f->raft.truth.view;
    const struct sim_ask *up = ledger_find(f, a->parent);

    for (size_t deep = 0; up != NULL && deep < RECORD_CHAIN_MAX; deep++) {
        const struct entity *e = &f->ledger.entity[up->entity];
        const uint64_t point = ring_point(&view->ring,
                                          entity_kind(e),
                                          ring_key_of_kind(view->key, entity_kind(e)),
                                          bytes_of(e->id, e->id_size));
        bool named = false;

        for (size_t i = 0; i < r->chain_count; i++) {
            named = named || r->chain[i] == point;
        }
        if (!named) {
            world_violate(&f->world,
                          "chain",
                          "request %llu does not tell that %s waits for it",
                          (unsigned long long)check_uid(r),
                          e->id);
            return;
        }
        up = ledger_find(f, up->parent);
    }
}

void check_hops(struct fleet *f, const struct sim_node *n, struct process *from,
                const struct request_record *r)
{
    const uint64_t uid = check_uid(r);
    struct sim_ask *a = ledger_find(f, uid);

    if (fleet_is_apart(r->kind)) {
        return;
    }
    if (a == NULL || r->hops > f->ledger.view_count - a->view) {
        world_violate(&f->world,
                      "hops",
                      "request %llu reaches %s by %u hops",
                      (unsigned long long)uid,
                      n->process.name,
                      r->hops);
        return;
    }
    if (f->faults.node_calls && !f->roles && a->parent != 0) {
        check_ancestors(f, a, r);
    }
    add_late(f, a, n, from);
    check_copy(f, n, r);
    const uint64_t left_us = left_at(f->world.now_us, r->ttl_ms);
    if (left_us > a->left_us[n - f->node]) {
        a->left_us[n - f->node] = left_us;
    }
}

/* As long as a link may hold it back in each of the places that late_us() of sim/network.c names.
 */
void check_kept(struct fleet *f, const struct sim_node *n, const struct request_record *r)
{
    enum { PLACES = 3, MOST_US = PLACES * (HOST_CONN_MS + HOST_CONN_MS / 15) * 1000 };
    struct sim_ask *a = ledger_find(f, check_uid(r));

    if (a == NULL) {
        return;
    }
    const uint64_t left_us = (uint64_t)r->ttl_ms * 1000;
    const uint64_t made_us = a->given_us + (a->ttl_us > left_us ? a->ttl_us - left_us : 0);
    const uint64_t now_us = f->world.now_us;
    const uint64_t kept_us = now_us > made_us ? now_us - made_us : 0;
    const uint64_t late_us = kept_us < MOST_US ? kept_us : MOST_US;
    uint64_t *sum_us = &a->late_us[n - f->node];

    *sum_us = late_us > *sum_us ? late_us : *sum_us;
}

void check_streamed(struct fleet *f, const struct sim_node *n, const struct request_record *r)
{
    struct sim_ask *a = ledger_find(f, check_uid(r));

    check_copy(f, n, r);
    if (a != NULL) {
        a->streamed |= UINT64_C(1) << (n - f->node);
    }
}

void check_stood(struct fleet *f, const struct sim_node *n, const struct request_record *r)
{
    const struct process *p = &n->process;
    struct sim_ask *a = ledger_find(f, check_uid(r));

    if (a != NULL && p->awake_us == f->world.now_us && p->stood_us < p->awake_us) {
        const uint64_t stood_us = p->awake_us - p->stood_us;
        const uint64_t most_us = (uint64_t)HOST_CONN_MS * 1000;

        a->late_us[n - f->node] += stood_us < most_us ? stood_us : most_us;
    }
}

/* By the slowest clock: what was composed in this step, or kept until it. */
static void check_ttl(struct fleet *f, const struct sim_node *n, const struct request_record *r)
{
    enum { ROUNDING_US = 2000 };
    const struct sim_ask *a = ledger_find(f, check_uid(r));
    const uint64_t had_us = a == NULL ? 0 : a->left_us[n - f->node];

    if (had_us != 0 && f->profile != PROFILE_CLOCKS &&
        left_at(n->process.step_us, r->ttl_ms) > had_us + ROUNDING_US) {
        world_violate(&f->world,
                      "ttl",
                      "%s passes request %llu on with %u ms, %llu ms too many",
                      n->process.name,
                      (unsigned long long)check_uid(r),
                      r->ttl_ms,
                      (unsigned long long)(left_at(n->process.step_us, r->ttl_ms) - had_us) / 1000);
    }
}

void check_frame(struct fleet *f, const struct sim_node *n, int type, struct bytes frame)
{
    struct reader in = {.at = frame.data, .left = frame.size};
    struct request_record request = {0};
    struct answer_record answer = {0};
    uint64_t version = n->incarnation;

    if (type == FRAME_REQUEST && request_get(&in, &request) == ERR_OK) {
        check_ttl(f, n, &request);
        version = request.version;
    } else if (type == FRAME_ANSWER && answer_get(&in, &answer) == ERR_OK) {
        version = answer.version;
    }
    if (version >> 40 < n->incarnation >> 40) {
        world_violate(&f->world,
                      "era",
                      "%s says as incarnation %llu what it said at version %llu",
                      n->process.name,
                      (unsigned long long)n->incarnation,
                      (unsigned long long)version);
    }
}

void check_registered(struct fleet *f, struct sim_node *n, uint64_t incarnation)
{
    record_registered(f, n, incarnation);
    if (incarnation <= n->last_incarnation && !past_doubts(f, incarnation)) {
        world_violate(&f->world,
                      "register",
                      "%s serves as incarnation %llu, which is over",
                      n->process.name,
                      (unsigned long long)incarnation);
    }
    check_bank_death(f, n);
    n->last_incarnation = incarnation;
    // The answer to its registration may come after all that it owned was given to others.
    const struct state_node *known = state_node_named(&f->raft.truth, process_says(&n->process));
    if (known != NULL && known->barred && known->incarnation == incarnation) {
        n->reassigned = incarnation;
    }
    check_trouble(f, n);
    // In one life: it was of another era, or barred, and dropped all it had. Of what had come by a
    // hand-over, and did not live just then, no instance told so.
    for (size_t i = 0; i < LEDGER_ENTITIES && n->incarnation != 0; i++) {
        struct entity *e = &f->ledger.entity[i];

        e->lost = e->lost || (e->last == n && e->live == NULL);
    }
}

/* One transaction, one outcome. */
static void decided(struct fleet *f, uint64_t txn, bool committed)
{
    struct ledger *l = &f->ledger;

    for (size_t i = 0; i < l->outcome_count; i++) {
        if (l->outcome[i].txn == txn && !past_doubts(f, txn)) {
            world_violate(&f->world,
                          "agreement",
                          "transaction %llu is %s, and was %s before",
                          (unsigned long long)txn,
                          committed ? "committed" : "aborted",
                          l->outcome[i].committed ? "committed" : "aborted");
        }
    }
    if (l->outcome_count == l->outcome_cap) {
        l->outcome_cap = l->outcome_cap == 0 ? 64 : 2 * l->outcome_cap;
        l->outcome = mem_resize(l->outcome, l->outcome_cap * sizeof *l->outcome);
    }
    l->outcome[l->outcome_count].txn = txn;
    l->outcome[l->outcome_count++].committed = committed;
}

void check_restores(struct fleet *f)
{
    const struct view *view = &f->raft.truth.view;

    for (size_t i = 0; i < LEDGER_ENTITIES; i++) {
        struct entity *e = &f->ledger.entity[i];
        const ring_hit hit = view_lookup(view, entity_kind(e), bytes_of(e->id, e->id_size));
        const struct ring_vnode *vnode = ring_find(&view->ring, ring_hit_vnode(hit));

        if (vnode != NULL && vnode->cold > e->forgotten) {
            e->forgotten = vnode->cold;
        }
    }
}

void check_restored(struct fleet *f)
{
    operator_sees(f);
    struct ledger *l = &f->ledger;
    size_t kept = 0;

    for (size_t i = 0; i < l->outcome_count; i++) {
        const struct state_txn *t = state_txn(&f->raft.truth, l->outcome[i].txn);

        if (t == NULL || t->state != TXN_PENDING) {
            l->outcome[kept++] = l->outcome[i];
        }
    }
    l->outcome_count = kept;
    for (size_t i = 0; i < LEDGER_ENTITIES; i++) {
        l->entity[i].lost = l->entity[i].lost || l->entity[i].live == NULL;
    }
    // Views are numbered as they come up: this one before those that follow from it.
    agree(f, "the backup", &f->raft.truth.view.ring);
}

void check_view(struct fleet *f, const char *who, const struct view *view, struct view_seen *seen)
{
    const uint64_t now = view->ring.version;

    if (now == seen->version) {
        if (view->ring.digest[0] != seen->digest) {
            agree(f, who, &view->ring);
        }
        return;
    }
    TRACE(&f->world, who, "has ring version %llu", (unsigned long long)now);
    if (now < seen->version && !past_doubts(f, now)) {
        world_violate(&f->world,
                      "agreement",
                      "%s goes back from version %llu to %llu",
                      who,
                      (unsigned long long)seen->version,
                      (unsigned long long)now);
    }
    if (now > f->raft.truth.view.ring.version && !past_doubts(f, now)) {
        world_violate(&f->world,
                      "agreement",
                      "%s has version %llu, which is not committed",
                      who,
                      (unsigned long long)now);
    }
    record_view(f, who, view);
    *seen = (struct view_seen){now, view->ring.digest[0]};
    agree(f, who, &view->ring);
}

/* Hole 31: what it owns is about to be given to others. */
static void none_barred(struct fleet *f, const struct state_txn *t)
{
    for (size_t i = 0; t != NULL && i < t->part_count; i++) {
        const struct state_node *n = state_node(&f->raft.truth, t->parts[i].slot);

        if (n == NULL || n->barred || n->incarnation != t->parts[i].incarnation) {
            world_violate(&f->world,
                          "agreement",
                          "transaction %llu is committed with a fenced node",
                          (unsigned long long)t->number);
        }
    }
}

/* Does a transaction under way move its vnode? */
static bool is_moving(const struct fleet *f, const struct entity *e)
{
    const struct state *truth = &f->raft.truth;
    const uint32_t vnode =
        ring_hit_vnode(view_lookup(&truth->view, entity_kind(e), bytes_of(e->id, e->id_size)));

    for (size_t i = 0; i < truth->txn_count; i++) {
        const struct state_txn *t = &truth->txn[i];

        for (size_t k = 0; t->state == TXN_PENDING && k < t->op_count; k++) {
            if (t->ops[k].vnode == vnode) {
                return true;
            }
        }
    }
    return false;
}

static void note_moving(struct fleet *f)
{
    for (size_t i = 0; i < LEDGER_ENTITIES; i++) {
        struct entity *e = &f->ledger.entity[i];

        if (is_moving(f, e) != (e->held_from_us != 0)) {
            e->held_us = entity_held_us(f, e);
            e->held_from_us = e->held_from_us == 0 ? f->world.now_us : 0;
        }
    }
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
                                       "VOTER",
                                       "SETTLED",
                                       "LEASE"};
    const int which = (int)command->body_case - (int)RH__COMMAND__BODY_INIT;

    record_committed(f, command, result);
    TRACE(&f->world,
          "log",
          "%s %s stamp=%llu txn=%llu %s",
          which >= 0 && which < 12 ? name[which] : "?",
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
    for (size_t i = 0; i < result->aborted_count; i++) {
        decided(f, result->aborted[i], false);
    }
    if (result->accepted && command->body_case == RH__COMMAND__BODY_COMMIT) {
        none_barred(f, state_txn(&f->raft.truth, result->txn));
        decided(f, result->txn, true);
    }
    f->ledger.aborts += result->aborted_count;
    roles_committed(f, result);
    balance_committed(f, command, result);
    poison_committed(f, command, result);
    if (result->accepted && command->body_case == RH__COMMAND__BODY_DESIRE) {
        operator_committed(f, command->desire, result);
    }
    if (command->body_case == RH__COMMAND__BODY_DEREGISTER) {
        f->ledger.removed_view = f->ledger.view_count;
        check_deregistered(f, command->deregister->incarnation);
    }
    if (result->accepted && command->body_case == RH__COMMAND__BODY_REASSIGN) {
        check_reassigned(f, command->reassign, result->stamp);
    }
    if (result->accepted && command->body_case == RH__COMMAND__BODY_REGISTER_) {
        operator_registered(f, command->register_);
        twin_registered(f, command->register_);
        check_register(f, command->register_, result->stamp);
    }
    if (result->accepted && command->body_case == RH__COMMAND__BODY_FENCE) {
        check_fenced(f, command->fence);
    }
    if (result->accepted && command->body_case == RH__COMMAND__BODY_LEASE) {
        f->lease_agreed_us = f->world.now_us;
        check_longest(f);
    }
    f->ledger.fences += result->accepted && command->body_case == RH__COMMAND__BODY_FENCE;
    f->ledger.commits += result->accepted && command->body_case == RH__COMMAND__BODY_COMMIT;
    note_moving(f);
    check_stamps(f, command, result);
    operator_sees(f);
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
    record_outcome(f, who, number, commit);
    t = state_txn(&f->raft.truth, number);
    // What an older era decided may be forgotten.
    if (number >> 40 == f->raft.truth.view.era && !past_doubts(f, number) &&
        (t == NULL || t->state != (commit ? TXN_COMMITTED : TXN_ABORTED))) {
        world_violate(&f->world,
                      "agreement",
                      "%s is told %s of transaction %llu, which is %s",
                      who,
                      commit ? "COMMIT" : "CANCEL",
                      (unsigned long long)number,
                      t == NULL ? "unknown" : txn_state_name(t->state));
    }
}
