/* SPDX-License-Identifier: Apache-2.0
 *
 * Plays tests/story/coordinator-*.txt: a command, "----", what it must print, an empty line.
 * REWRITE=1 writes what it did print instead; then read the git diff.
 *
 * The coordinator talks to a log of one: what it proposes is applied at once, in order, unless
 * "hold" keeps it; "release" applies what was kept, "pass" the first of it, "lose" loses it.
 *
 *     start [LEASE_MS] | setlease MS (another coordinator's) | restored ERA [LEASE_MS] | jump MS
 * (asleep) | lead TERM | follow ID | tick MS | hold | release | lose link N node|gateway|cli NAME
 * [INCARNATION] | unlink N link N coordinator ID IDENTITY ADDRESS | silent N | awake N (renew-all
 * leaves it out, or not) balance MS: as renew-all, everyone votes, nothing is told register N NONCE
 * [BOOT [nolock|copy]] | renew N [stopping|newer|ahead] | renew-all MS | bye N prepared N TXN
 * [INCARNATION] | refused N TXN | stale N TXN | poll N TXN... | get N VERSION admin N
 * status|nodes|ring|txns | admin N where|drain|stay|remove|txn|kick|lock|unlock WHAT [again] (its
 * last question comes once more) | clock N PERCENT:
 * renewals tell a clock that runs so from here on | states N WRITES FROM TO: they tell these
 * versions of states of kind 0 | hosts N PERMILLE: it registers kind 3, by its hosts, and tells
 * that part
 */
#include "base/log.h"
#include "base/mem.h"
#include "link/link.h"
#include "txn/leader/coordinator.h"
#include "wire/control.h"

#include "tests/planted.h"
#include "tests/stories.h"
#include "tests/txn/proposed.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINKS = 16, WORDS = 8 };

struct wire {
    bool up;
    char name[64];
    uint64_t incarnation;
    uint64_t clock_us; /* what it told when it began to run at `percent`; 0 = it tells none */
    uint64_t since_us;
    uint64_t percent;
    uint32_t states[3]; /* of kind 0: what it writes, reads from and to; it tells none if 0 */
    bool hosts;         /* kind 3, of which it takes that part */
    uint32_t permille;
};

static struct {
    struct state state;
    struct coordinator *c;
    struct coordinator_effects effects;
    uint64_t now_us;
    uint64_t seq;
    bool hold;
    bool quiet;            /* GRANTs and LEADERs aren't told */
    bool mute;             /* nothing is told; PREPARE is answered */
    uint64_t tag[LINKS];   /* of its last question */
    uint64_t asked[LINKS]; /* a transaction to vote on; 0 = none */
    struct proposed_log log;
    struct wire wire[LINKS];
    FILE *out;
} w;

/* Stamps without their era. */
static uint64_t n(uint64_t stamp)
{
    return stamp & ((UINT64_C(1) << 40) - 1);
}

static uint64_t stamp(const char *word)
{
    return UINT64_C(1) << 40 | strtoull(word, NULL, 10);
}

/* 0 for a word that isn't there. */
static uint64_t number(const char *word)
{
    return word == NULL ? 0 : strtoull(word, NULL, 10);
}

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
    va_list list;

    va_start(list, format);
    if (!w.mute) {
        (void)vfprintf(w.out, format, list);
    }
    va_end(list);
}

/* ---- what comes out ---- */

static void say_ops(Rh__RingOp *const *ops, size_t count)
{
    static const char *const names[] = {"?", "split", "merge", "move"};

    for (size_t i = 0; i < count; i++) {
        const Rh__RingOp *op = ops[i];

        say("%s%s v%u", i > 0 ? ", " : "", names[op->kind], op->vnode);
        if (op->kind == RING_MOVE) {
            say(" %u>%u", op->from, op->to);
        } else {
            say("+v%u", op->other);
        }
    }
}

static void say_pins(const Rh__CommandPin *in)
{
    for (size_t i = 0; i < in->n_add; i++) {
        const Rh__Pin *p = in->add[i];

        say("PIN cells=%u..%u at %s%s\n", p->from, p->to - 1, p->node, p->waits ? ", waits" : "");
    }
    for (size_t i = 0; i < in->n_remove; i++) {
        say("UNPIN cells=%u..%u\n", in->remove[i]->from, in->remove[i]->to - 1);
    }
}

static void say_command(const Rh__Command *m)
{
    say("propose ");
    switch (m->body_case) {
    case RH__COMMAND__BODY_INIT:
        say("INIT %s\n", m->init->cluster);
        return;
    case RH__COMMAND__BODY_REGISTER_:
        say("REGISTER %s nonce=%" PRIu64 " replaces=%" PRIu64 "\n",
            m->register_->name,
            m->register_->nonce,
            n(m->register_->replaces));
        return;
    case RH__COMMAND__BODY_BEGIN:
        say("BEGIN base=%" PRIu64 " \"%s\": ", n(m->begin->base_version), m->begin->why);
        say_ops(m->begin->ops, m->begin->n_ops);
        if (m->begin->supersedes != 0) {
            say(" (supersedes %" PRIu64 ")", n(m->begin->supersedes));
        }
        say("\n");
        return;
    case RH__COMMAND__BODY_COMMIT:
        say("COMMIT %" PRIu64 "\n", n(m->commit->txn));
        return;
    case RH__COMMAND__BODY_ABORT:
        say("ABORT %" PRIu64 " \"%s\"\n", n(m->abort->txn), m->abort->why);
        return;
    case RH__COMMAND__BODY_DESIRE:
        say("DESIRE %s leaving=%u\n", m->desire->name, m->desire->leaving);
        return;
    case RH__COMMAND__BODY_FENCE:
        say("FENCE slot=%u clean=%d\n", m->fence->slot, m->fence->clean);
        return;
    case RH__COMMAND__BODY_DEREGISTER:
        say("DEREGISTER slot=%u\n", m->deregister->slot);
        return;
    case RH__COMMAND__BODY_VOTER:
        say("VOTER %" PRIu64 " identity=%" PRIu64 " at %s\n",
            m->voter->id,
            m->voter->identity,
            m->voter->address);
        return;
    case RH__COMMAND__BODY_SETTLED:
        say("SETTLED\n");
        return;
    case RH__COMMAND__BODY_LEASE:
        say("LEASE %" PRIu64 " ms\n", m->lease->lease_us / 1000);
        return;
    case RH__COMMAND__BODY_NOTE:
        say("NOTE %s: %s\n", m->note->subject, m->note->what);
        return;
    case RH__COMMAND__BODY_FORMAT:
        say("FORMAT %u\n", m->format->format);
        return;
    case RH__COMMAND__BODY_AHEAD:
        say("AHEAD\n");
        return;
    case RH__COMMAND__BODY_DAEMONS:
        say("DAEMONS %s %u\n", m->daemons->name, m->daemons->count);
        return;
    case RH__COMMAND__BODY_QUARANTINE:
        say("QUARANTINE kind=%u add=%d\n", m->quarantine->actor->kind, m->quarantine->add);
        return;
    case RH__COMMAND__BODY_PIN:
        say_pins(m->pin);
        return;
    case RH__COMMAND__BODY_REMEMBER:
        say("REMEMBER slot=%u: %zu rows\n", m->remember->slot, m->remember->n_rows);
        return;
    case RH__COMMAND__BODY_REASSIGN:
        say("REASSIGN slot=%u: ", m->reassign->slot);
        say_ops(m->reassign->moves, m->reassign->n_moves);
        say("\n");
        return;
    case RH__COMMAND__BODY__NOT_SET:
    case _RH__COMMAND__BODY__CASE_IS_INT_SIZE:
        break;
    }
    say("%d?\n", (int)m->body_case);
}

/* Milliseconds after it was begun; "-" = not yet. */
static void say_after(const Rh__TxnRow *t, const char *what, uint64_t at_us)
{
    assert_true(at_us == 0 || at_us >= t->begun_us);
    if (at_us == 0) {
        say(" %s -", what);
    } else {
        say(" %s +%" PRIu64, what, (at_us - t->begun_us) / 1000);
    }
}

static void say_phases(const Rh__TxnRow *t)
{
    for (size_t i = 0; t->begun_us != 0 && i < t->n_votes; i++) {
        const Rh__TxnVote *v = t->votes[i];

        say("    %s", v->node);
        say_after(t, "asked", v->asked_us);
        say_after(t, "voted", v->voted_us);
        say_after(t, "adopted", v->adopted_us);
        say(", %" PRIu64 " actors, %u to go\n", v->actors, v->to_go);
    }
    if (t->begun_us != 0) {
        say("    outcome");
        say_after(t, "proposed", t->proposed_us);
        say_after(t, "applied", t->outcome_us);
        say("\n");
    }
}

static void say_obstacles(const Rh__AdminReply *r)
{
    for (size_t i = 0; i < r->n_obstacles; i++) {
        const Rh__ObstacleRow *o = r->obstacles[i];

        say("  waits: %s, %u transactions of %u vnodes: %s",
            o->reason,
            o->transactions,
            o->vnodes,
            o->text);
        say(o->drains[0] == '\0' ? "\n" : " (%s drains)\n", o->drains);
    }
}

static void say_vnode(const Rh__VnodeRow *v)
{
    say("  v%u [%u, %u) %s generation=%" PRIu64, v->id, v->from, v->to, v->owner, n(v->generation));
    say(v->txn != 0 ? " txn=%" PRIu64 " to=%s\n" : "\n", n(v->txn), v->to_node);
    if (v->moved_txn != 0) {
        say("    moved by txn %" PRIu64 " \"%s\" from %s to %s, %" PRIu64 " ms ago\n",
            n(v->moved_txn),
            v->moved_why,
            v->moved_from[0] == '\0' ? "-" : v->moved_from,
            v->moved_to[0] == '\0' ? "-" : v->moved_to,
            v->moved_us_ago / 1000);
    }
}

static void say_admin(const Rh__AdminReply *r)
{
    say("ADMIN version=%" PRIu64 " pending=%u", n(r->version), r->pending);
    if (r->planned > 0) {
        say(" planned=%u", r->planned);
    }
    if (r->planning) {
        say(" planning");
    }
    if (r->error[0] != '\0') {
        say(" error=\"%s\"", r->error);
    }
    if (r->text[0] != '\0') {
        say(" text=\"%s\"", r->text);
    }
    say("\n");
    for (size_t i = 0; i < r->n_nodes; i++) {
        say("  node %s %s live=%d leaving=%d vnodes=%u",
            r->nodes[i]->member->name,
            r->nodes[i]->state,
            r->nodes[i]->live,
            r->nodes[i]->member->leaving,
            r->nodes[i]->vnodes);
        if (r->nodes[i]->lease_us_left != 0) {
            say(" lease=%" PRIu64 " ms", r->nodes[i]->lease_us_left / 1000);
        }
        if (r->nodes[i]->clock_parts != 0) {
            say(" clock=%+d", r->nodes[i]->clock_parts);
        }
        say("\n");
    }
    for (size_t i = 0; i < r->n_gateways; i++) {
        say("  gateway %s version=%" PRIu64 "\n", r->gateways[i]->name, n(r->gateways[i]->version));
    }
    for (size_t i = 0; i < r->n_voters; i++) {
        say("  voter %u at %s leader=%d linked=%d\n",
            r->voters[i]->id,
            r->voters[i]->address,
            r->voters[i]->leader,
            r->voters[i]->linked);
    }
    for (size_t i = 0; i < r->n_vnodes; i++) {
        say_vnode(r->vnodes[i]);
    }
    for (size_t i = 0; i < r->n_txns; i++) {
        const Rh__TxnRow *t = r->txns[i];

        say("  txn %" PRIu64 " %s \"%s\" %s", n(t->txn), t->state, t->why, t->outcome_why);
        for (size_t j = 0; j < t->n_votes; j++) {
            say(" %s:%s", t->votes[j]->node, t->votes[j]->vote);
        }
        say(t->waiting_for[0] != '\0' ? " waiting for: %s\n" : "\n", t->waiting_for);
        say_phases(t);
    }
    say_obstacles(r);
    for (size_t i = 0; i < r->n_resolve; i++) {
        const Rh__ResolveRow *row = r->resolve[i];
        static const char *const names[] = {"?", "commit", "abort", "retry"};

        say("  %s: %s%s\n",
            names[row->choice],
            row->refusal[0] != '\0' ? "refused: " : row->effect,
            row->refusal);
        for (size_t k = 0; k < row->n_parts; k++) {
            say("    %s %s, holds %s; %s\n",
                row->parts[k]->node,
                row->parts[k]->vote,
                row->parts[k]->holds,
                row->parts[k]->effect);
        }
    }
}

static void say_prepare(const Rh__Prepare *p)
{
    say("PREPARE %" PRIu64 " base=%" PRIu64 " deadline=%u",
        n(p->txn),
        n(p->base_version),
        p->deadline_ms);
    if (p->supersedes != 0) {
        say(" supersedes=%" PRIu64, n(p->supersedes));
    }
    for (size_t i = 0; i < p->n_arcs; i++) {
        say(" %s[%u, %u)", p->arcs[i]->out ? "out" : "in", p->arcs[i]->from, p->arcs[i]->to);
    }
    say("\n");
}

static void say_registered(const Rh__RegOk *r, struct wire *wire)
{
    struct view view;

    wire->incarnation = r->incarnation;
    view_init(&view, RING_GRID_MIN);
    assert_int_equal(view_load(&view, r->config, true), VIEW_APPLIED);
    say("REG_OK slot=%u incarnation=%" PRIu64 " floor=%" PRIu64 " version=%" PRIu64 " nodes=%zu\n",
        r->slot,
        n(r->incarnation),
        n(r->floor),
        n(view.ring.version),
        view.member_count);
    view_fini(&view);
}

static void say_config(const Rh__ConfigAnswer *a)
{
    say("CONFIG version=%" PRIu64, n(a->version));
    if (a->config != NULL) {
        say(" full");
    }
    for (size_t i = 0; i < a->n_deltas; i++) {
        say(" %" PRIu64 ">%" PRIu64, n(a->deltas[i]->prev_version), n(a->deltas[i]->version));
    }
    say("\n");
}

static void say_more(const Rh__Control *m)
{
    if (m->body_case == RH__CONTROL__BODY_COMMIT) {
        say("COMMIT %" PRIu64 " version=%" PRIu64 "\n",
            n(m->commit->txn),
            n(m->commit->delta->version));
    } else if (m->body_case == RH__CONTROL__BODY_CANCEL) {
        say("CANCEL %" PRIu64 " \"%s\"\n", n(m->cancel->txn), m->cancel->why);
    } else if (m->body_case == RH__CONTROL__BODY_LEADER) {
        say("LEADER leading=%d id=%u\n", m->leader->leading, m->leader->id);
    } else if (m->body_case == RH__CONTROL__BODY_NOT_LEADER) {
        say("NOT_LEADER term=%" PRIu64 "\n", m->not_leader->term);
    } else if (m->body_case == RH__CONTROL__BODY_BARRED) {
        say("BARRED \"%s\"\n", m->barred->why);
    } else if (m->body_case == RH__CONTROL__BODY_REG_REFUSED) {
        say("REG_REFUSED fatal=%d \"%s\"", m->reg_refused->fatal, m->reg_refused->reason);
        if (!m->reg_refused->fatal && m->reg_refused->retry_ms != 1000) {
            say(" retry in %u ms", m->reg_refused->retry_ms);
        }
        say("\n");
    } else {
        say("%d?\n", (int)m->body_case);
    }
}

static void say_control(uint64_t peer, const Rh__Control *m)
{
    if (w.quiet &&
        (m->body_case == RH__CONTROL__BODY_GRANT || m->body_case == RH__CONTROL__BODY_LEADER)) {
        return;
    }
    say("to %" PRIu64 ": ", peer);
    if (m->body_case == RH__CONTROL__BODY_REG_OK) {
        say_registered(m->reg_ok, &w.wire[peer]);
    } else if (m->body_case == RH__CONTROL__BODY_GRANT) {
        say("GRANT version=%" PRIu64 " leave=%d last=%d",
            n(m->grant->version),
            m->grant->leave,
            m->grant->last);
        if (m->grant->lease_us != 0) {
            say(" lease=%" PRIu64 " ms", m->grant->lease_us / 1000);
        }
        if (m->grant->clock_parts != 0) {
            say(" clock=%+d", m->grant->clock_parts);
        }
        for (size_t i = 0; i < m->grant->n_pending; i++) {
            say(" pending=%" PRIu64, n(m->grant->pending[i]));
        }
        say("\n");
    } else if (m->body_case == RH__CONTROL__BODY_PREPARE) {
        w.asked[peer] = m->prepare->txn;
        say_prepare(m->prepare);
    } else if (m->body_case == RH__CONTROL__BODY_POLL_ANSWER) {
        say("STATUS version=%" PRIu64, n(m->poll_answer->version));
        for (size_t i = 0; i < m->poll_answer->n_txns; i++) {
            say(" %" PRIu64 "=%s",
                n(m->poll_answer->txns[i]->txn),
                m->poll_answer->txns[i]->pending ? "pending" : "over");
        }
        say("\n");
    } else if (m->body_case == RH__CONTROL__BODY_CONFIG) {
        say_config(m->config);
    } else if (m->body_case == RH__CONTROL__BODY_ADMIN_REPLY) {
        say_admin(m->admin_reply);
    } else {
        say_more(m);
    }
}

/* ---- the log of one ---- */

static void step(struct coordinator_event event)
{
    event.now_us = w.now_us;
    event.wall_us = 1000000 + w.now_us;
    coordinator_effects_clear(&w.effects);
    coordinator_step(w.c, &event, &w.effects);
    for (size_t i = 0; i < w.effects.count; i++) {
        const struct coordinator_effect *e = &w.effects.item[i];
        const struct bytes bytes = {w.effects.bytes.data + e->at, e->size};
        Rh__Control *control;

        if (e->type == COORDINATOR_SEND) {
            control = control_get(bytes);
            assert_non_null(control);
            say_control(e->peer, control);
            control_free(control);
            continue;
        }
        const struct proposed *added = proposed_add(&w.log, &w.effects, e);

        if (added->command != NULL) {
            say_command(added->command);
        }
    }
}

static void apply_next(void)
{
    const struct proposed e = proposed_take(&w.log);
    struct state_result result;

    if (e.command != NULL) {
        state_apply(&w.state, e.command, &result);
        state_check(&w.state);
        if (!result.accepted) {
            say("refused: %s\n", result.why);
        }
        step((struct coordinator_event){
            .type = COORDINATOR_APPLIED, .tag = e.tag, .command = e.command, .result = &result});
        state_result_fini(&result);
        command_free(e.command);
    }
    step((struct coordinator_event){.type = COORDINATOR_DONE, .tag = e.tag});
}

static void apply_all(void)
{
    while (w.log.count > 0) {
        apply_next();
    }
}

static void lose_all(void)
{
    size_t count = w.log.count;

    for (; count > 0; count--) {
        const struct proposed e = proposed_take(&w.log);

        command_free(e.command);
        step((struct coordinator_event){
            .type = COORDINATOR_DONE, .tag = e.tag, .error = ERR_TIMEOUT});
    }
}

/* ---- what goes in ---- */

static void message(uint64_t link, Rh__Control__BodyCase body, void *part)
{
    Rh__Control m = RH__CONTROL__INIT;

    m.body_case = body;
    m.register_ = part; // any member of the union
    m.source_incarnation = w.wire[link].incarnation;
    m.version = w.state.view.ring.version; // it took every COMMIT
    step((struct coordinator_event){.type = COORDINATOR_MESSAGE, .peer = link, .message = &m});
}

static void stop(void)
{
    proposed_fini(&w.log);
    if (w.c != NULL) {
        coordinator_free(w.c);
        coordinator_effects_fini(&w.effects);
        state_fini(&w.state);
    }
    w.c = NULL;
}

static struct coordinator_config config_of(uint64_t lease_ms)
{
    struct coordinator_config config = coordinator_config_default();

    config.id = 1;
    (void)snprintf(config.cluster, sizeof config.cluster, "test");
    config.fleet.low = 1;
    config.key = (struct ring_key){1, 2};
    config.vnodes_per_weight = 4;
    config.prepare_ms = 2000;
    config.lease_us = lease_ms * 1000;
    return config;
}

/* The same log and links, a coordinator with another setting. */
static void another(uint64_t lease_ms)
{
    const struct coordinator_config config = config_of(lease_ms);

    coordinator_free(w.c);
    w.c = coordinator_new(&config, &w.state);
    for (uint64_t i = 0; i < LINKS; i++) {
        if (w.wire[i].up) {
            step((struct coordinator_event){.type = COORDINATOR_PEER_UP,
                                            .peer = i,
                                            .role = ROLE_NODE,
                                            .name = w.wire[i].name,
                                            .incarnation = w.wire[i].incarnation});
        }
    }
}

/* A lease of 0: not in force. */
static void start(uint64_t lease_ms)
{
    const struct coordinator_config config = config_of(lease_ms);

    stop();
    state_init(&w.state);
    memset(w.wire, 0, sizeof w.wire);
    w.now_us = 1000000;
    w.hold = false;
    w.c = coordinator_new(&config, &w.state);
}

static void play_link(char **word)
{
    const uint64_t link = number(word[1]);
    const int role = strcmp(word[2], "node") == 0          ? ROLE_NODE
                     : strcmp(word[2], "gateway") == 0     ? ROLE_GATEWAY
                     : strcmp(word[2], "coordinator") == 0 ? ROLE_COORDINATOR
                                                           : ROLE_CLI;
    const bool voter = role == ROLE_COORDINATOR;

    w.wire[link] =
        (struct wire){.up = true, .incarnation = word[4] != NULL && !voter ? stamp(word[4]) : 0};
    (void)snprintf(w.wire[link].name, sizeof w.wire[link].name, "%s", word[3]);
    step((struct coordinator_event){.type = COORDINATOR_PEER_UP,
                                    .peer = link,
                                    .role = role,
                                    .name = word[3],
                                    .incarnation = w.wire[link].incarnation,
                                    .protocol = LINK_PROTOCOL,
                                    .identity = voter ? number(word[4]) : 0,
                                    .address = voter ? word[5] : NULL});
}

static void play_register(char **word, uint64_t link)
{
    uint8_t boot[STATE_UUID_SIZE] = {0};
    Rh__Register in = RH__REGISTER__INIT;
    Rh__Kind kind = RH__KIND__INIT;
    Rh__Kind *kinds = &kind;

    boot[0] = (uint8_t)(word[3] != NULL ? atoi(word[3]) : 1); // NOLINT(cert-err34-c)
    in.name = w.wire[link].name;
    in.address = proto_text("127.0.0.1:1");
    in.boot_id = proto_bytes(bytes_of(boot, sizeof boot));
    in.data_uuid = in.boot_id;
    in.lock_held = word[3] == NULL || word[4] == NULL;
    in.disk_floor = w.state.number; // the folder of before, not a copy
    in.nonce = strtoull(word[2], NULL, 10);
    kind.number = 3;
    kind.name = proto_text("arena");
    kind.placement = PLACE_HOSTS;
    in.kinds = &kinds;
    in.n_kinds = w.wire[link].hosts;
    if (word[3] != NULL && word[4] != NULL && strcmp(word[4], "seen") == 0) {
        in.disk_seen = stamp("999");
    } else if (word[3] != NULL && word[4] != NULL && strcmp(word[4], "copy") == 0) {
        in.lock_held = true;
        in.disk_floor = 0;
    }
    message(link, RH__CONTROL__BODY_REGISTER_, &in);
}

static uint64_t clock_us(const struct wire *wire)
{
    return wire->clock_us == 0 ? 0
                               : wire->clock_us + (w.now_us - wire->since_us) * wire->percent / 100;
}

static void play_clock(struct wire *wire, uint64_t percent)
{
    const uint64_t told_us = clock_us(wire);

    wire->clock_us = told_us == 0 ? 77000000 : told_us;
    wire->since_us = w.now_us;
    wire->percent = percent;
}

static void play_renew(uint64_t link, const char *how)
{
    Rh__StateVersions states = RH__STATE_VERSIONS__INIT;
    Rh__StateVersions *list = &states;
    Rh__KindPart part = RH__KIND_PART__INIT;
    Rh__KindPart *parts = &part;
    Rh__Renew in = RH__RENEW__INIT;

    in.seq = ++w.seq;
    in.clock_us = clock_us(&w.wire[link]);
    in.stopping = how != NULL && strcmp(how, "stopping") == 0;
    if (how != NULL && strcmp(how, "newer") == 0) {
        in.version = stamp("999");
    } else if (how != NULL && strcmp(how, "ahead") == 0) {
        in.seen = stamp("999");
    }
    states.version = w.wire[link].states[0];
    states.least = w.wire[link].states[1];
    states.most = w.wire[link].states[2];
    in.states = &list;
    in.n_states = states.most > 0;
    part.kind = 3;
    part.permille = w.wire[link].permille;
    in.parts = &parts;
    in.n_parts = w.wire[link].hosts && part.permille < RING_PART_WHOLE;
    message(link, RH__CONTROL__BODY_RENEW, &in);
}

static void play_vote(char **word, uint64_t link)
{
    const uint64_t own = w.wire[link].incarnation;
    Rh__Prepared prepared = RH__PREPARED__INIT;
    Rh__Refused refused = RH__REFUSED__INIT;
    Rh__Stale stale = RH__STALE__INIT;

    w.wire[link].incarnation = word[3] != NULL ? stamp(word[3]) : own;
    prepared.txn = refused.txn = stale.txn = stamp(word[2]);
    prepared.actors = 3;
    refused.why = proto_text("no memory");
    if (strcmp(word[0], "prepared") == 0) {
        message(link, RH__CONTROL__BODY_PREPARED, &prepared);
    } else if (strcmp(word[0], "refused") == 0) {
        message(link, RH__CONTROL__BODY_REFUSED, &refused);
    } else {
        message(link, RH__CONTROL__BODY_STALE, &stale);
    }
    w.wire[link].incarnation = own;
}

static void play_draining(char **word, uint64_t link)
{
    Rh__Draining in = RH__DRAINING__INIT;

    in.txn = stamp(word[2]);
    in.busy = (uint32_t)number(word[3]);
    if (in.busy > 0) {
        in.id = proto_bytes(bytes_of(word[4], strlen(word[4])));
        in.running_ms = (uint32_t)number(word[5]);
    } else {
        in.peer = (uint32_t)number(word[4]);
    }
    message(link, RH__CONTROL__BODY_DRAINING, &in);
}

static void play_resolve(char **word, uint64_t link)
{
    static const char *const names[] = {"explain", "commit", "abort", "retry"};
    Rh__AdminResolve what = RH__ADMIN_RESOLVE__INIT;
    Rh__Admin in = RH__ADMIN__INIT;

    while (strcmp(names[what.choice], word[3]) != 0) {
        what.choice++;
        assert_true(what.choice < 4);
    }
    what.txn = stamp(word[2]);
    what.dry_run = word[4] != NULL;
    what.by = proto_text("op@desk");
    what.reason = proto_text("told to");
    in.tag = ++w.seq;
    in.what_case = RH__ADMIN__WHAT_RESOLVE;
    in.resolve = &what;
    message(link, RH__CONTROL__BODY_ADMIN, &in);
}

static void play_poll(char **word, uint64_t link)
{
    uint64_t txns[WORDS];
    Rh__Poll in = RH__POLL__INIT;

    in.txns = txns;
    for (size_t i = 2; word[i] != NULL; i++) {
        txns[in.n_txns++] = stamp(word[i]);
    }
    message(link, RH__CONTROL__BODY_POLL, &in);
}

static void play_get(char **word, uint64_t link)
{
    Rh__GetConfig in = RH__GET_CONFIG__INIT;

    in.have_version = strcmp(word[2], "0") == 0 ? 0 : stamp(word[2]);
    if (in.have_version == w.state.view.ring.version) {
        in.digest0 = w.state.view.ring.digest[0];
        in.digest1 = w.state.view.ring.digest[1];
    }
    message(link, RH__CONTROL__BODY_GET_CONFIG, &in);
}

static void play_admin(char **word, uint64_t link)
{
    static const char *const names[] = {"status",
                                        "nodes",
                                        "ring",
                                        "txns",
                                        "where",
                                        "drain",
                                        "stay",
                                        "remove",
                                        "txn",
                                        "kick",
                                        "lock",
                                        "unlock"};
    Rh__Admin in = RH__ADMIN__INIT;
    Rh__AdminStatus status = RH__ADMIN_STATUS__INIT;
    Rh__AdminNodes nodes = RH__ADMIN_NODES__INIT;
    Rh__AdminRing ring = RH__ADMIN_RING__INIT;
    Rh__AdminTxns txns = RH__ADMIN_TXNS__INIT;
    Rh__AdminWhere where = RH__ADMIN_WHERE__INIT;
    Rh__AdminDrain drain = RH__ADMIN_DRAIN__INIT;
    Rh__AdminRemove removal = RH__ADMIN_REMOVE__INIT;
    Rh__AdminTxn txn = RH__ADMIN_TXN__INIT;
    Rh__AdminOperatorRequest kick = RH__ADMIN_OPERATOR_REQUEST__INIT;
    Rh__AdminQuarantine lock = RH__ADMIN_QUARANTINE__INIT;
    Rh__Actor actor = RH__ACTOR__INIT;
    void *const parts[] = {
        &status, &nodes, &ring, &txns, &where, &drain, &drain, &removal, &txn, &kick, &lock, &lock};
    const Rh__Admin__WhatCase cases[] = {RH__ADMIN__WHAT_STATUS,
                                         RH__ADMIN__WHAT_NODES,
                                         RH__ADMIN__WHAT_RING,
                                         RH__ADMIN__WHAT_TXNS,
                                         RH__ADMIN__WHAT_WHERE,
                                         RH__ADMIN__WHAT_DRAIN,
                                         RH__ADMIN__WHAT_DRAIN,
                                         RH__ADMIN__WHAT_REMOVE,
                                         RH__ADMIN__WHAT_TXN,
                                         RH__ADMIN__WHAT_OPERATOR_REQUEST,
                                         RH__ADMIN__WHAT_QUARANTINE,
                                         RH__ADMIN__WHAT_QUARANTINE};
    size_t at = 0;

    while (strcmp(names[at], word[2]) != 0) {
        at++;
        assert_true(at < sizeof names / sizeof names[0]);
    }
    if (word[3] != NULL) {
        actor.id = where.id = proto_bytes(bytes_of(word[3], strlen(word[3])));
        drain.name = removal.name = word[3];
        txn.txn = isdigit((unsigned char)word[3][0]) ? stamp(word[3]) : 0;
    }
    drain.cancel = strcmp(word[2], "stay") == 0;
    kick.what = RH__OPERATOR_REQUEST_WHAT__OPERATOR_REQUEST_KICK;
    kick.actor = lock.actor = &actor;
    lock.add = strcmp(word[2], "lock") == 0;
    w.tag[link] += word[3] == NULL || word[4] == NULL;
    in.tag = w.tag[link];
    removal.wish = in.tag;
    removal.seen = w.state.number;
    in.what_case = cases[at];
    in.status = parts[at]; // any member of the union
    message(link, RH__CONTROL__BODY_ADMIN, &in);
}

static void vote_if_asked(uint64_t link)
{
    Rh__Prepared prepared = RH__PREPARED__INIT;

    prepared.txn = w.asked[link];
    w.asked[link] = 0;
    if (w.mute && prepared.txn != 0) {
        message(link, RH__CONTROL__BODY_PREPARED, &prepared);
    }
}

static void play_time(char **word)
{
    const uint64_t end_us = w.now_us + number(word[1]) * 1000;
    const bool renew = strcmp(word[0], "tick") != 0;

    w.quiet = true; // what is said again and again
    w.mute = strcmp(word[0], "balance") == 0;

    while (w.now_us < end_us) {
        w.now_us += 50000;
        for (uint64_t i = 0; i < LINKS && renew; i++) {
            if (w.wire[i].up && w.wire[i].incarnation != 0) {
                play_renew(i, NULL);
                vote_if_asked(i);
            }
        }
        step((struct coordinator_event){.type = COORDINATOR_TICK});
        if (!w.hold) {
            apply_all();
        }
    }
    w.quiet = w.mute = false;
}

static bool play_log(char **word)
{
    if (strcmp(word[0], "start") == 0) {
        start(number(word[1]));
    } else if (strcmp(word[0], "setlease") == 0) {
        another(number(word[1]));
    } else if (strcmp(word[0], "jump") == 0) {
        w.now_us += number(word[1]) * 1000;
    } else if (strcmp(word[0], "restored") == 0) {
        state_raise(&w.state, number(word[1]), number(word[2]) * 1000);
    } else if (strcmp(word[0], "lead") == 0) {
        step((struct coordinator_event){.type = COORDINATOR_LEAD, .term = number(word[1])});
    } else if (strcmp(word[0], "follow") == 0) {
        step((struct coordinator_event){.type = COORDINATOR_FOLLOW, .leader = number(word[1])});
    } else if (strcmp(word[0], "hold") == 0) {
        w.hold = true;
    } else if (strcmp(word[0], "release") == 0) {
        w.hold = false;
    } else if (strcmp(word[0], "pass") == 0) {
        assert_true(w.hold && w.log.count > 0);
        apply_next();
    } else if (strcmp(word[0], "lose") == 0) {
        w.hold = false;
        lose_all();
    } else if (strcmp(word[0], "tick") == 0 || strcmp(word[0], "renew-all") == 0 ||
               strcmp(word[0], "balance") == 0) {
        play_time(word);
    } else {
        return false;
    }
    return true;
}

static void play_message(char **word)
{
    if (word[1] == NULL) {
        say("unknown command\n");
        return;
    }
    const uint64_t link = number(word[1]) % LINKS;

    if (strcmp(word[0], "link") == 0) {
        play_link(word);
    } else if (strcmp(word[0], "silent") == 0 || strcmp(word[0], "awake") == 0) {
        w.wire[link].up = word[0][0] == 'a';
    } else if (strcmp(word[0], "unlink") == 0) {
        w.wire[link].up = false;
        step((struct coordinator_event){.type = COORDINATOR_PEER_DOWN, .peer = link});
    } else if (strcmp(word[0], "register") == 0) {
        play_register(word, link);
    } else if (strcmp(word[0], "renew") == 0) {
        play_renew(link, word[2]);
        if (!w.hold) { // or it would wait for a tick
            step((struct coordinator_event){.type = COORDINATOR_TICK});
        }
    } else if (strcmp(word[0], "states") == 0) {
        for (size_t i = 0; i < 3; i++) {
            w.wire[link].states[i] = (uint32_t)number(word[2 + i]);
        }
    } else if (strcmp(word[0], "hosts") == 0) {
        w.wire[link].hosts = true;
        w.wire[link].permille = (uint32_t)number(word[2]);
    } else if (strcmp(word[0], "clock") == 0) {
        play_clock(&w.wire[link], number(word[2]));
    } else if (strcmp(word[0], "bye") == 0) {
        Rh__Bye in = RH__BYE__INIT;

        message(link, RH__CONTROL__BODY_BYE, &in);
    } else if (strcmp(word[0], "prepared") == 0 || strcmp(word[0], "refused") == 0 ||
               strcmp(word[0], "stale") == 0) {
        play_vote(word, link);
    } else if (strcmp(word[0], "draining") == 0) {
        play_draining(word, link);
    } else if (strcmp(word[0], "resolve") == 0) {
        play_resolve(word, link);
    } else if (strcmp(word[0], "poll") == 0) {
        play_poll(word, link);
    } else if (strcmp(word[0], "get") == 0) {
        play_get(word, link);
    } else if (strcmp(word[0], "admin") == 0) {
        play_admin(word, link);
    } else {
        say("unknown command\n");
    }
}

/* Run one command line, printing what happens to `out`. */
static void play(char *line, FILE *out)
{
    char *word[WORDS + 1] = {NULL};
    char *rest = NULL;
    size_t count = 0;

    for (char *at = strtok_r(line, " \n", &rest); at != NULL && count < WORDS;
         at = strtok_r(NULL, " \n", &rest)) {
        word[count++] = at;
    }
    w.out = out;
    if (count == 0) {
        return;
    }
    if (!play_log(word)) {
        play_message(word);
    }
    if (!w.hold) {
        apply_all();
    }
}

/* ---- stories ---- */

static void every_story_plays_as_written(void **state)
{
    static const struct stories stories = {.play = play, .end = stop};

    (void)state;
    log_set_level(LOG_ERROR);
    stories_play(&stories, "coordinator");
}

static int all_cases(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test(every_story_plays_as_written),
    };
    return cmocka_run_group_tests(cases, NULL, NULL);
}

int main(int argc, char **argv)
{
    static const enum mutant planted[] = {M_OLDPLAN,
                                          M_SEENUNTOLD,
                                          M_UNASKED,
#define X(name, text) name,
                                          MUTANT_PROMISE_LIST(X)
#undef X
    };

    return planted_main(argc, argv, all_cases, planted, sizeof planted / sizeof planted[0]);
}
