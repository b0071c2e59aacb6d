/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands of a story that come from coordinators.
 */
#ifndef TESTS_NODE_HOST_STORY_ORDERS_H
#define TESTS_NODE_HOST_STORY_ORDERS_H

#include "tests/node/host_controls.h"
#include "tests/node/host_story_effects.h"

static inline void step(struct host_event event)
{
    event.now_us = now_us;
    event.wall_us = (uint64_t)((int64_t)now_us + WALL_AT_0_US + wall_ahead_us);
    host_step(host, &event, &effects);
    for (size_t i = 0; i < effects.count; i++) {
        now_us += slow_us;
        if (now_us >= host_limit_us(host, &effects.item[i])) {
            (void)fprintf(out, "too late: ");
            print_effect(&effects.item[i]);
            host_keep(host, &effects, i);
        } else {
            print_effect(&effects.item[i]);
        }
    }
    slow_us = 0;
    host_effects_clear(&effects);
    host_check(host);
}

static inline void control(Rh__Control *c)
{
    c->era = number_of("era", c->era == 0 ? 1 : c->era);
    c->target_incarnation = number_of("target", 0);
    c->version = number_of("ver", cluster.ring.version);
    step((struct host_event){.type = HOST_CONTROL, .coordinator = 0, .message = c});
}

static inline void do_new(void)
{
    struct host_config config = host_config_default();

    host_free(host);
    memset(seen, 0, sizeof seen);
    (void)snprintf(config.name, sizeof config.name, "n1");
    (void)snprintf(config.address, sizeof config.address, "10.0.0.1:7000");
    config.kinds = kinds;
    config.kind_count = 1;
    config.nonce = 7;
    asked_nonce = 7;
    config.disk = disk;
    kinds[0].idle_ms = (uint32_t)number_of("idle", 0);
    kinds[0].mailbox = (uint32_t)number_of("mailbox", 0);
    kinds[0].remembered = number_of("remembered", 0) != 0;
    kinds[0].remember = number_of("remember", 0) != 0;
    kinds[0].ahead = number_of("move_rate", 0) != 0;
    kinds[0].durable = number_of("durable", 0) != 0;
    kinds[0].state_version = (uint32_t)number_of("version", 0);
    kinds[0].state_least = (uint32_t)number_of("least", kinds[0].state_version);
    kinds[0].state_most = (uint32_t)number_of("most", kinds[0].state_version);
    config.actors_max = number_of("actors_max", 0);
    config.wake_rate = (uint32_t)number_of("wake_rate", config.wake_rate);
    config.wake_count_max = number_of("wake_max", config.wake_count_max);
    config.queue_count_max = number_of("queue_max", config.queue_count_max);
    config.activations_max = (uint32_t)number_of("activations", config.activations_max);
    config.cold_count_max = (uint32_t)number_of("cold_max", config.cold_count_max);
    config.held_size_max = number_of("held_size_max", config.held_size_max);
    config.held_vnode_max = number_of("held_vnode_max", config.held_vnode_max);
    config.staged_size_max = number_of("staged_max", config.staged_size_max);
    config.move_rate = number_of("move_rate", 0);
    config.state_window = number_of("window", config.state_window);
    config.gate_size_max = number_of("gate_max", config.gate_size_max);
    config.serve = number_of("serve", 0) != 0;
    config.died = number_of("died", 0);
    config.suspects = &suspect;
    config.suspect_count = config.died != 0 && quarantined_of(&suspect, 0, bytes_of("ann", 3));
    host = host_new(&config);
}

static inline void do_leader(void)
{
    step((struct host_event){.type = HOST_COORDINATOR_UP, .coordinator = 0});
    say_leader(control);
}

/* regok OWNERS ver=V floor=F */
static inline void do_regok(void)
{
    Rh__RegOk ok = RH__REG_OK__INIT;

    set_cluster(words[1], number_of("ver", 20));
    if (number_of("renewed", 0) != 0) {
        ring_renew_owner(&cluster.ring, 1, cluster.ring.version);
    }
    ok.nonce = number_of("nonce", asked_nonce);
    ok.floor = number_of("floor", FLOOR);
    ok.lease_us = number_of("lease", 0) * 1000;
    say_reg_ok(&cluster, number_of("era", 1), ok, control);
}

static inline void do_refused(void)
{
    Rh__Control c = RH__CONTROL__INIT;
    Rh__RegRefused refused = RH__REG_REFUSED__INIT;

    refused.reason = proto_text("name is taken");
    refused.fatal = number_of("fatal", 0) != 0;
    refused.retry_ms = 1000;
    c.body_case = RH__CONTROL__BODY_REG_REFUSED;
    c.reg_refused = &refused;
    control(&c);
}

/* quarantine NAME, release NAME: the cluster changes */
static inline void change_quarantine(bool in)
{
    Rh__Control c = RH__CONTROL__INIT;
    Rh__ConfigAnswer answer = RH__CONFIG_ANSWER__INIT;
    Rh__Delta delta = RH__DELTA__INIT;
    Rh__Delta *deltas[] = {&delta};
    struct quarantined e;

    assert_true(quarantined_of(&e, 0, id_of(words[1])));
    Rh__Actor *actors[] = {quarantined_wire(&e)};
    delta.version = cluster.ring.version + 1;
    *(in ? &delta.quarantined : &delta.released) = actors;
    *(in ? &delta.n_quarantined : &delta.n_released) = 1;
    assert_true(view_seal(&cluster, &delta));
    assert_int_equal(view_apply(&cluster, &delta), VIEW_APPLIED);
    answer.deltas = deltas;
    answer.n_deltas = 1;
    answer.version = cluster.ring.version;
    c.body_case = RH__CONTROL__BODY_CONFIG;
    c.config = &answer;
    control(&c);
    mem_free(actors[0]->id.data);
    mem_free(actors[0]);
}

static inline void do_quarantine(void)
{
    change_quarantine(true);
}

static inline void do_release(void)
{
    change_quarantine(false);
}

/* The change of the cluster that "V>S" says (vnode V to node S) or "V+W" (W becomes part of V), as
 * a delta. */
static inline void move(const char *what, uint64_t txn, uint64_t version, Rh__Delta *delta)
{
    static Rh__RingOp kept[DELTAS_MAX];
    static Rh__RingOp *ops[DELTAS_MAX];
    static unsigned count;
    const unsigned at = count++ % DELTAS_MAX;
    const uint32_t vnode = (uint32_t)(what[0] - '0');
    const uint16_t to = (uint16_t)(what[2] - '0');
    const bool merge = what[1] == '+';
    const struct ring_op m = {.kind = merge ? RING_MERGE : RING_MOVE,
                              .vnode = vnode,
                              .other = merge ? to : 0,
                              .from = merge ? 0 : ring_find(&cluster.ring, vnode)->owner,
                              .to = merge ? 0 : to};

    *delta = (Rh__Delta)RH__DELTA__INIT;
    delta->prev_version = cluster.ring.version;
    delta->cold = txn == 0;
    if (delta->cold) {
        ring_reassign(&cluster.ring, &m, 1, version);
    } else {
        ring_apply(&cluster.ring, &m, 1, version, txn);
    }
    kept[at] = (Rh__RingOp)RH__RING_OP__INIT;
    kept[at].kind = m.kind;
    kept[at].vnode = vnode;
    kept[at].other = m.other;
    kept[at].from = m.from;
    kept[at].to = m.to;
    ops[at] = &kept[at];
    delta->version = version;
    delta->txn = txn;
    delta->n_ops = 1;
    delta->ops = &ops[at];
    delta->digest0 = cluster.ring.digest[0];
    delta->digest1 = cluster.ring.digest[1];
}

/* prepare TXN out=V>S | in=V<S [base=] [supersedes=] [deadline=MS] */
static inline void do_prepare(void)
{
    Rh__Control c = RH__CONTROL__INIT;
    Rh__Prepare p = RH__PREPARE__INIT;
    Rh__Arc arc[2] = {RH__ARC__INIT, RH__ARC__INIT};
    Rh__Arc *arcs[] = {&arc[0], &arc[1]};
    const char *const text[] = {text_of("out"), text_of("in")};

    p.txn = word_number(1);
    p.base_version = number_of("base", cluster.ring.version);
    p.supersedes = number_of("supersedes", 0);
    p.deadline_ms = (uint32_t)number_of("deadline", 0);
    p.arcs = arcs;
    for (size_t i = 0; i < 2; i++) {
        if (text[i] != NULL) {
            Rh__Arc *a = arcs[p.n_arcs++];
            const uint32_t cells = cluster.ring.slot_count > 0 ? (1u << RING_GRID_MIN) / VNODES : 0;

            a->vnode = (uint32_t)(text[i][0] - '0');
            a->from = a->vnode * cells;
            a->to = a->from + cells;
            a->out = i == 0;
            a->peer = (uint32_t)(text[i][2] - '0');
            a->peer_incarnation = 100 + a->peer;
        }
    }
    c.body_case = RH__CONTROL__BODY_PREPARE;
    c.prepare = &p;
    control(&c);
}

/* commit TXN V>S|V+W ver=N: the cluster changes; "lost": the node does not hear of it. TXN 0: V is
 * given away because its owner was fenced. */
static inline void do_commit(void)
{
    Rh__Control c = RH__CONTROL__INIT;
    Rh__Commit commit = RH__COMMIT__INIT;
    Rh__Delta delta;

    commit.txn = word_number(1);
    move(words[2], commit.txn, number_of("ver", 0), &delta);
    commit.delta = &delta;
    c.body_case = RH__CONTROL__BODY_COMMIT;
    c.commit = &commit;
    if (word_count >= 5 && strcmp(words[4], "lost") == 0) {
        assert_true(lost_count < DELTAS_MAX);
        lost[lost_count++] = delta;
    } else {
        control(&c);
    }
}

/* missed: a configuration answer of the changes that were lost */
static inline void do_missed(void)
{
    Rh__Control c = RH__CONTROL__INIT;
    Rh__ConfigAnswer answer = RH__CONFIG_ANSWER__INIT;
    Rh__Delta *deltas[DELTAS_MAX];

    for (size_t i = 0; i < lost_count; i++) {
        deltas[answer.n_deltas++] = &lost[i];
    }
    answer.deltas = deltas;
    answer.version = cluster.ring.version;
    c.body_case = RH__CONTROL__BODY_CONFIG;
    c.config = &answer;
    control(&c);
    lost_count = 0;
}

static inline void do_cancel(void)
{
    Rh__Control c = RH__CONTROL__INIT;
    Rh__Cancel cancel = RH__CANCEL__INIT;

    cancel.txn = word_number(1);
    c.body_case = RH__CONTROL__BODY_CANCEL;
    c.cancel = &cancel;
    control(&c);
}

/* polled TXN over|aborted|pending */
static inline void do_polled(void)
{
    Rh__Control c = RH__CONTROL__INIT;
    Rh__PollAnswer answer = RH__POLL_ANSWER__INIT;
    Rh__TxnState state = RH__TXN_STATE__INIT;
    Rh__TxnState *states[] = {&state};

    state.txn = word_number(1);
    state.pending = strcmp(words[2], "pending") == 0;
    state.aborted = strcmp(words[2], "aborted") == 0;
    answer.n_txns = 1;
    answer.txns = states;
    answer.version = cluster.ring.version;
    c.body_case = RH__CONTROL__BODY_POLL_ANSWER;
    c.poll_answer = &answer;
    control(&c);
}

/* config [began=SLOT]: the whole cluster as it is; that process was started again, as incarnation
 * 110 + SLOT */
static inline void do_config(void)
{
    const uint64_t began = number_of("began", 0);

    if (began != 0) {
        cluster.member[began - 1].incarnation = 110 + began;
        ring_set_version(&cluster.ring, cluster.ring.version + 1);
    }
    say_config(&cluster, control);
    lost_count = 0;
}

static inline void do_grant(void)
{
    Rh__Control c = RH__CONTROL__INIT;
    Rh__Grant grant = RH__GRANT__INIT;

    grant.version = cluster.ring.version;
    grant.seq = number_of("seq", asked_renew);
    grant.lease_us = number_of("lease", 0) * 1000;
    grant.leave = number_of("leave", 0) != 0;
    grant.last = number_of("last", 0) != 0;
    c.body_case = RH__CONTROL__BODY_GRANT;
    c.grant = &grant;
    control(&c);
}

/* told NUMBER [stale=ROW] [full=COUNT]: that Remember is in the log */
static inline void do_told(void)
{
    Rh__Control c = RH__CONTROL__INIT;
    Rh__Remembered told = RH__REMEMBERED__INIT;
    uint32_t stale = (uint32_t)number_of("stale", 0);

    told.number = word_number(1);
    told.full = (uint32_t)number_of("full", 0);
    told.stale = &stale;
    told.n_stale = text_of("stale") != NULL ? 1 : 0;
    c.body_case = RH__CONTROL__BODY_REMEMBERED;
    c.remembered = &told;
    control(&c);
}

/* recalled ID [after=ID] [next=ID]: a page with that id */
static inline void do_recalled(void)
{
    Rh__Control c = RH__CONTROL__INIT;
    Rh__Recalled page = RH__RECALLED__INIT;
    struct bytes id = id_of(words[1]);
    uint8_t kept[3][64];
    const char *const other[] = {text_of("after"), text_of("next")};

    memcpy(kept[0], id.data, id.size);
    ProtobufCBinaryData ids = proto_bytes(bytes_of(kept[0], id.size));
    page.ids = &ids;
    page.n_ids = 1;
    for (size_t i = 0; i < 2; i++) {
        if (other[i] != NULL) {
            id = id_of(other[i]);
            memcpy(kept[1 + i], id.data, id.size);
            *(i == 0 ? &page.after : &page.next) = proto_bytes(bytes_of(kept[1 + i], id.size));
        }
    }
    c.body_case = RH__CONTROL__BODY_RECALLED;
    c.recalled = &page;
    control(&c);
}

/* forgotten ID: an operator said so */
static inline void do_forgotten(void)
{
    Rh__Control c = RH__CONTROL__INIT;
    Rh__Forgotten forgotten = RH__FORGOTTEN__INIT;
    Rh__Actor actor = RH__ACTOR__INIT;

    actor.id = proto_bytes(id_of(words[1]));
    forgotten.actor = &actor;
    c.body_case = RH__CONTROL__BODY_FORGOTTEN;
    c.forgotten = &forgotten;
    control(&c);
}

static inline void do_barred(void)
{
    Rh__Control c = RH__CONTROL__INIT;
    Rh__Barred barred = RH__BARRED__INIT;

    barred.why = proto_text("fenced");
    c.body_case = RH__CONTROL__BODY_BARRED;
    c.barred = &barred;
    control(&c);
}

#endif
