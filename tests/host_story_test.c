/* SPDX-License-Identifier: Apache-2.0
 *
 * Plays tests/story/host-NAME.txt: a command, "----", what the node's machine did, an empty line.
 * REWRITE=1 writes what it did do instead; then read the diff.
 *
 * The ring has four vnodes 0..3 of 4096 cells; an entity "2x" lies in vnode 2. The node under
 * test is "n1", slot 1, incarnation 101; slot N has incarnation 100 + N.
 */
#include "tests/stories.h"

#include "base/crc.h"
#include "base/log.h"
#include "base/mem.h"
#include "node/host.h"
#include "node/inside.h"
#include "wire/control.h"
#include "wire/frame.h"
#include "wire/session.h"
#include "wire/trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VNODES = 4, WORDS_MAX = 16, ACTORS_MAX = 64, DELTAS_MAX = 8, WALL_AT_0_US = 1000000000 };

static struct host *host;
static struct host_effects effects;
static uint64_t now_us;
static struct host_kind kinds[] = {{.number = 0}};
static struct view cluster; /* as the coordinators see it */
static struct actor *seen[ACTORS_MAX];
static FILE *out;
static const char *story; /* its file */
static struct host_disk disk;
static Rh__Delta lost[DELTAS_MAX]; /* changes that the node did not hear of */
static size_t lost_count;
static uint64_t asked_nonce;       /* of the last REGISTER */
static uint64_t asked_renew;       /* seq of the last RENEW */
static int64_t wall_ahead_us;      /* the wall clock, against the other */
static struct quarantined suspect; /* ran in the process before */
static uint64_t slow_us;           /* before each effect of the next step so much time passes */

/* ---- words of a command ---- */

static char *words[WORDS_MAX];
static size_t word_count;

static void split(char *line)
{
    char *save = NULL;

    word_count = 0;
    for (char *w = strtok_r(line, " \n", &save); w != NULL && word_count < WORDS_MAX;
         w = strtok_r(NULL, " \n", &save)) {
        words[word_count++] = w;
    }
}

static const char *text_of(const char *key)
{
    const size_t size = strlen(key);

    for (size_t i = 1; i < word_count; i++) {
        if (strncmp(words[i], key, size) == 0 && words[i][size] == '=') {
            return words[i] + size + 1;
        }
    }
    return NULL;
}

static uint64_t number_of(const char *key, uint64_t otherwise)
{
    const char *text = text_of(key);

    return text == NULL ? otherwise : strtoull(text, NULL, 10);
}

static uint64_t word_number(size_t at)
{
    return at < word_count ? strtoull(words[at], NULL, 10) : 0;
}

/* ---- the world around ---- */

static void set_member(uint16_t slot)
{
    struct view_member *m = NULL;

    cluster.member =
        mem_resize(cluster.member, (cluster.member_count + 1) * sizeof *cluster.member);
    m = &cluster.member[cluster.member_count++];
    *m = (struct view_member){.slot = slot, .incarnation = 100u + slot, .weight = 1};
    (void)snprintf(m->name, sizeof m->name, "n%u", slot);
    (void)snprintf(m->address, sizeof m->address, "10.0.0.%u:7000", slot);
}

/* owners: "1122" */
static void set_cluster(const char *owners, uint64_t version)
{
    if (cluster.ring.cell != NULL) {
        view_fini(&cluster);
    }
    view_init(&cluster, RING_GRID_MIN);
    cluster.key = (struct ring_key){1, 2};
    ring_create(&cluster.ring, VNODES, 1, 10);
    for (uint32_t v = 0; v < VNODES; v++) {
        const struct ring_op move = {
            .kind = RING_MOVE, .vnode = v, .from = 1, .to = (uint16_t)(owners[v] - '0')};

        if (owners[v] != '1') {
            ring_apply(&cluster.ring, &move, 1, 10, 0);
        }
    }
    ring_set_version(&cluster.ring, version);
    for (uint16_t slot = 1; slot <= 3; slot++) {
        set_member(slot);
    }
}

/* An id that begins with `name` and lies in the vnode its first digit says. */
static struct bytes id_of(const char *name)
{
    static char id[64];

    for (unsigned i = 0;; i++) {
        (void)snprintf(id, sizeof id, i == 0 ? "%s" : "%s.%u", name, i);
        const struct bytes b = bytes_of(id, strlen(id));
        if (ring_hit_vnode(view_lookup(&cluster, 0, b)) == (uint32_t)(name[0] - '0')) {
            return b;
        }
    }
}

/* Without the suffix that id_of() added. */
static const char *name_of(struct bytes id)
{
    static char name[64];
    size_t size = 0;

    while (size < id.size && id.data[size] != '.') {
        size++;
    }
    (void)snprintf(name, sizeof name, "%.*s", (int)size, (const char *)id.data);
    return name;
}

static struct actor *actor_named(const char *name)
{
    for (size_t i = 0; i < ACTORS_MAX; i++) {
        if (seen[i] != NULL && strcmp(name_of(actor_id(seen[i])), name) == 0) {
            return seen[i];
        }
    }
    fail_msg("%s: no actor %s", story, name);
    return NULL;
}

static void note_actor(struct actor *a)
{
    size_t free_place = ACTORS_MAX;

    for (size_t i = 0; i < ACTORS_MAX; i++) {
        if (seen[i] == a) {
            return;
        }
        free_place = i < free_place && seen[i] == NULL ? i : free_place;
    }
    assert_true(free_place < ACTORS_MAX);
    seen[free_place] = a;
}

static void forget_actor(const struct actor *a)
{
    for (size_t i = 0; i < ACTORS_MAX; i++) {
        if (seen[i] == a) {
            seen[i] = NULL;
        }
    }
}

/* ---- effects in words ---- */

static void print_text(const char *key, struct bytes b)
{
    if (b.size > 40) {
        (void)fprintf(out, " %s=(%zu bytes)", key, b.size);
    } else {
        (void)fprintf(out, " %s=\"%.*s\"", key, (int)b.size, (const char *)b.data);
    }
}

/* Hops of a traced request; the last that came to an actor are kept, as what that answers. */
static uint8_t hops_kept[TRACE_SIZE_MAX];
static size_t hops_kept_size;

static void print_hops(struct bytes hops)
{
    struct reader in = {.at = hops.data, .left = hops.size};
    struct trace_hop hop;

    (void)fputs(" trace=[", out);
    while (trace_next(&in, &hop)) {
        (void)fprintf(out,
                      "%.*s v%" PRIu64 " waited %u ran %u%s%s%s;",
                      (int)hop.node.size,
                      (const char *)hop.node.data,
                      hop.version,
                      hop.waited_us,
                      hop.ran_us,
                      (hop.did & TRACE_HELD) != 0 ? " HELD" : "",
                      (hop.did & TRACE_FORWARD) != 0 ? " FORWARDED" : "",
                      (hop.did & TRACE_RAN) != 0 ? " RAN" : "");
    }
    (void)fputs("]", out);
    assert_false(in.bad);
}

/* A request's body. */
static void print_body(struct bytes body)
{
    struct note note;

    if (body.size == 0 || body.data[0] != NOTE_TRACE || note_get(body, &note) != ERR_OK) {
        print_text("body", body);
        return;
    }
    print_hops(note.payload);
    memcpy(hops_kept, note.payload.data, note.payload.size);
    hops_kept_size = note.payload.size;
}

static void print_control(int coordinator, struct bytes b)
{
    Rh__Control *c = control_get(b);

    assert_non_null(c);
    (void)fprintf(out, "to coordinator %d:", coordinator);
    switch ((int)c->body_case) {
    case RH__CONTROL__BODY_REGISTER_:
        asked_nonce = c->register_->nonce;
        (void)fprintf(out, " REGISTER seen=%" PRIu64 " active=", c->register_->disk_seen);
        for (size_t i = 0; i < c->register_->n_disk_active; i++) {
            (void)fprintf(out, "%s%" PRIu64, i == 0 ? "" : ",", c->register_->disk_active[i]);
        }
        for (size_t i = 0; i < c->register_->n_suspects; i++) {
            const Rh__Actor *a = c->register_->suspects[i];

            (void)fprintf(out, " died=%" PRIu64, c->register_->died);
            (void)fprintf(out, " suspect %u/%.*s", a->kind, (int)a->id.len, (char *)a->id.data);
        }
        break;
    case RH__CONTROL__BODY_RENEW:
        (void)fprintf(out, " RENEW version=%" PRIu64, c->renew->version);
        (void)fprintf(out, " held=%" PRIu64, c->renew->held);
        (void)fputs(c->renew->stopping ? " stopping" : "", out);
        asked_renew = c->renew->seq;
        break;
    case RH__CONTROL__BODY_GET_CONFIG:
        (void)fprintf(out, " GET_CONFIG have=%" PRIu64, c->get_config->have_version);
        break;
    case RH__CONTROL__BODY_PREPARED:
        (void)fprintf(out, " PREPARED %" PRIu64, c->prepared->txn);
        (void)fprintf(out, " actors=%" PRIu64, c->prepared->actors);
        break;
    case RH__CONTROL__BODY_REFUSED:
        (void)fprintf(out, " REFUSED %" PRIu64 " %s", c->refused->txn, c->refused->why);
        break;
    case RH__CONTROL__BODY_STALE:
        (void)fprintf(out, " STALE %" PRIu64, c->stale->txn);
        break;
    case RH__CONTROL__BODY_POLL:
        (void)fprintf(out, " POLL");
        for (size_t i = 0; i < c->poll->n_txns; i++) {
            (void)fprintf(out, " %" PRIu64, c->poll->txns[i]);
        }
        break;
    case RH__CONTROL__BODY_BYE:
        (void)fprintf(out, " BYE");
        break;
    case RH__CONTROL__BODY_DRAINING:
        (void)fprintf(out, " DRAINING %" PRIu64 " busy=%u", c->draining->txn, c->draining->busy);
        if (c->draining->busy > 0) {
            (void)fprintf(out, " %.*s", (int)c->draining->id.len, (char *)c->draining->id.data);
            (void)fprintf(out, " runs for %u ms", c->draining->running_ms);
        } else {
            (void)fprintf(out, " waits for slot %u", c->draining->peer);
        }
        break;
    default:
        (void)fprintf(out, " message %d", (int)c->body_case);
        break;
    }
    (void)fputc('\n', out);
    control_free(c);
}

static void print_request(struct reader *in)
{
    struct request_record r;

    assert_int_equal(request_get(in, &r), ERR_OK);
    (void)fprintf(out, "request %s session=%" PRIu64, name_of(r.id), r.session);
    (void)fprintf(out, " seq=%" PRIu64 " version=%" PRIu64, r.seq, r.version);
    (void)fprintf(out, " hops=%u%s", r.hops, (r.flags & REQUEST_HELD) != 0 ? " held" : "");
    print_body(r.body);
}

static void print_answer(struct reader *in)
{
    static const char *const codes[] = {
        "OK", "APP_ERROR", "MOVED", "BUSY", "COLD", "EXPIRED", "NO_KIND", "LOST", "OVERLOAD"};
    struct answer_record a;

    assert_int_equal(answer_get(in, &a), ERR_OK);
    (void)fprintf(out, "answer session=%" PRIu64 " seq=%" PRIu64, a.session, a.seq);
    (void)fprintf(out, " %s", codes[a.code]);
    if (a.aux != 0) {
        (void)fprintf(out, " aux=%" PRIu64, a.aux);
    }
    if (a.token != 0) {
        (void)fprintf(out, " token=%" PRIu64, a.token);
    }
    if (hops_kept_size > 0 && a.body.size == hops_kept_size) {
        print_hops(a.body);
    } else if (a.body.size > 0) {
        print_text("body", a.body);
    }
}

static void print_state(struct reader *in)
{
    struct state_record s;

    assert_int_equal(state_get(in, &s), ERR_OK);
    (void)fprintf(out, "state txn=%" PRIu64 " index=%u", s.txn, s.index);
    if ((s.flags & STATE_END) != 0) {
        (void)fprintf(out, " END");
    } else {
        (void)fprintf(out, " %s", name_of(s.id));
        (void)fprintf(out, " bytes %u+%zu of %u", s.offset, s.chunk.size, s.total);
    }
}

static void print_record(const struct host_effect *e, struct bytes b)
{
    struct reader in = {.at = b.data, .left = b.size};
    struct state_ack_record ack;

    (void)fprintf(out, "to peer %" PRIu64 ": ", e->peer);
    if (e->frame_type == FRAME_REQUEST) {
        print_request(&in);
    } else if (e->frame_type == FRAME_ANSWER) {
        print_answer(&in);
    } else if (e->frame_type == FRAME_STATE) {
        print_state(&in);
    } else {
        assert_int_equal(state_ack_get(&in, &ack), ERR_OK);
        (void)fprintf(out, "ack txn=%" PRIu64 " next=%u", ack.txn, ack.next);
        (void)fputs(ack.refused ? " REFUSED" : "", out);
    }
    assert_int_equal(in.left, 0);
    (void)fputc('\n', out);
}

static void print_disk(const struct host_effect *e)
{
    disk = *e->disk;
    (void)fprintf(out, "PERSIST %" PRIu64 ": active", e->ticket);
    for (size_t i = 0; i < e->disk->active_count; i++) {
        (void)fprintf(out, " %" PRIu64, e->disk->active[i]);
    }
    (void)fputc('\n', out);
}

static void print_actor(const char *what, const struct host_effect *e, struct bytes b)
{
    note_actor(e->actor);
    (void)fprintf(out, "%s %s", what, name_of(actor_id(e->actor)));
    if (e->type == HOST_RUN) {
        print_body(b);
    }
    if (e->type == HOST_ACTIVATE) {
        (void)fprintf(out, " token=%" PRIu64, e->token);
    }
    if (e->bond_size > 0) {
        print_text("bond", bytes_of(b.data, e->bond_size));
    }
    if (e->has_state) {
        print_text("state", bytes_of(b.data + e->bond_size, b.size - e->bond_size));
    }
    if (e->type == HOST_RETIRE) {
        static const char *const whys[] = {"idle", "room", "asked"};

        (void)fprintf(out, " %s", whys[e->retire_why]);
    }
    if (e->type == HOST_MAILBOX_FULL) {
        (void)fprintf(out, " refused=%" PRIu64, e->count);
    }
    if (e->type == HOST_DISCARD) {
        static const char *const whys[] = {"moved", "stop", "fenced", "broken"};

        (void)fprintf(out, " %s", whys[e->discard_why]);
        if (e->discard_why != DISCARD_BROKEN) {
            forget_actor(e->actor);
        }
    }
    (void)fputc('\n', out);
}

static void print_effect(const struct host_effect *e)
{
    const struct bytes b = {effects.bytes.data + e->at, e->size};

    switch (e->type) {
    case HOST_SEND_COORDINATOR:
        print_control(e->coordinator, b);
        break;
    case HOST_SEND_PEER:
        print_record(e, b);
        break;
    case HOST_CONNECT:
        (void)fprintf(out, "CONNECT n%u %s\n", e->slot, (const char *)b.data);
        break;
    case HOST_DISCONNECT:
        (void)fprintf(out, "DISCONNECT n%u\n", e->slot);
        break;
    case HOST_PERSIST:
        print_disk(e);
        break;
    case HOST_ACTIVATE:
        print_actor("ACTIVATE", e, b);
        break;
    case HOST_RUN:
        print_actor("RUN", e, b);
        break;
    case HOST_EXPORT:
        print_actor("EXPORT", e, b);
        break;
    case HOST_UNFREEZE:
        print_actor("UNFREEZE", e, b);
        break;
    case HOST_TURN:
        print_actor("TURN", e, b);
        break;
    case HOST_RETIRE:
        print_actor("RETIRE", e, b);
        break;
    case HOST_LIST:
        (void)fprintf(out, "LIST kinds=%zu\n", e->kind_count);
        break;
    case HOST_MAILBOX_FULL:
        print_actor("MAILBOX_FULL", e, b);
        break;
    case HOST_DISCARD:
        print_actor("DISCARD", e, b);
        break;
    case HOST_REGISTERED:
        (void)fprintf(out, "REGISTERED %" PRIu64 "\n", e->incarnation);
        break;
    case HOST_EXIT:
        (void)fprintf(out, "EXIT %d %s\n", e->code, e->why);
        break;
    }
}

/* ---- commands ---- */

static void step(struct host_event event)
{
    event.now_us = now_us;
    event.wall_us = (uint64_t)((int64_t)now_us + WALL_AT_0_US + wall_ahead_us);
    host_step(host, &event, &effects);
    for (size_t i = 0; i < effects.count; i++) {
        now_us += slow_us;
        if (now_us >= host_limit_us(host, effects.item[i].type)) {
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

static void control(Rh__Control *c)
{
    c->era = number_of("era", c->era == 0 ? 1 : c->era);
    c->target_incarnation = number_of("target", 0);
    c->version = number_of("ver", cluster.ring.version);
    step((struct host_event){.type = HOST_CONTROL, .coordinator = 0, .message = c});
}

static void do_new(void)
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
    config.actors_max = number_of("actors_max", 0);
    config.wake_rate = (uint32_t)number_of("wake_rate", config.wake_rate);
    config.wake_count_max = number_of("wake_max", config.wake_count_max);
    config.queue_count_max = number_of("queue_max", config.queue_count_max);
    config.activations_max = (uint32_t)number_of("activations", config.activations_max);
    config.cold_count_max = (uint32_t)number_of("cold_max", config.cold_count_max);
    config.held_size_max = number_of("held_size_max", config.held_size_max);
    config.held_vnode_max = number_of("held_vnode_max", config.held_vnode_max);
    config.staged_size_max = number_of("staged_max", config.staged_size_max);
    config.state_window = number_of("window", config.state_window);
    config.gate_size_max = number_of("gate_max", config.gate_size_max);
    config.serve = number_of("serve", 0) != 0;
    config.died = number_of("died", 0);
    config.suspects = &suspect;
    config.suspect_count = config.died != 0 && quarantined_of(&suspect, 0, bytes_of("ann", 3));
    host = host_new(&config);
}

static void do_leader(void)
{
    Rh__Control c = RH__CONTROL__INIT;
    Rh__Leader leader = RH__LEADER__INIT;

    leader.leading = true;
    leader.term = 1;
    c.body_case = RH__CONTROL__BODY_LEADER;
    c.leader = &leader;
    step((struct host_event){.type = HOST_COORDINATOR_UP, .coordinator = 0});
    control(&c);
}

/* regok OWNERS ver=V floor=F */
static void do_regok(void)
{
    Rh__Control c = RH__CONTROL__INIT;
    Rh__RegOk ok = RH__REG_OK__INIT;
    Rh__Config config;

    set_cluster(words[1], number_of("ver", 20));
    if (number_of("renewed", 0) != 0) {
        ring_renew_owner(&cluster.ring, 1, cluster.ring.version);
    }
    view_config(&cluster, &config);
    config.era = number_of("era", 1);
    ok.nonce = number_of("nonce", asked_nonce);
    ok.slot = 1;
    ok.incarnation = 101;
    ok.floor = number_of("floor", 30);
    ok.config = &config;
    ok.lease_us = number_of("lease", 0) * 1000;
    c.body_case = RH__CONTROL__BODY_REG_OK;
    c.reg_ok = &ok;
    control(&c);
    view_config_fini(&config);
}

static void do_refused(void)
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
static void change_quarantine(bool in)
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

static void do_quarantine(void)
{
    change_quarantine(true);
}

static void do_release(void)
{
    change_quarantine(false);
}

/* The change of the cluster that "V>S" says (vnode V to node S) or "V+W" (W becomes part of V), as
 * a delta. */
static void move(const char *what, uint64_t txn, uint64_t version, Rh__Delta *delta)
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

/* prepare TXN out=V>S | in=V<S [base=] [supersedes=] */
static void do_prepare(void)
{
    Rh__Control c = RH__CONTROL__INIT;
    Rh__Prepare p = RH__PREPARE__INIT;
    Rh__Arc arc[2] = {RH__ARC__INIT, RH__ARC__INIT};
    Rh__Arc *arcs[] = {&arc[0], &arc[1]};
    const char *const text[] = {text_of("out"), text_of("in")};

    p.txn = word_number(1);
    p.base_version = number_of("base", cluster.ring.version);
    p.supersedes = number_of("supersedes", 0);
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
static void do_commit(void)
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
static void do_missed(void)
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

static void do_cancel(void)
{
    Rh__Control c = RH__CONTROL__INIT;
    Rh__Cancel cancel = RH__CANCEL__INIT;

    cancel.txn = word_number(1);
    c.body_case = RH__CONTROL__BODY_CANCEL;
    c.cancel = &cancel;
    control(&c);
}

/* polled TXN over|aborted|pending */
static void do_polled(void)
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

/* config: the whole cluster as it is */
static void do_config(void)
{
    Rh__Control c = RH__CONTROL__INIT;
    Rh__ConfigAnswer answer = RH__CONFIG_ANSWER__INIT;
    Rh__Config config;

    view_config(&cluster, &config);
    config.era = 1;
    answer.config = &config;
    answer.version = cluster.ring.version;
    c.body_case = RH__CONTROL__BODY_CONFIG;
    c.config = &answer;
    control(&c);
    view_config_fini(&config);
    lost_count = 0;
}

static void do_grant(void)
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

static void do_barred(void)
{
    Rh__Control c = RH__CONTROL__INIT;
    Rh__Barred barred = RH__BARRED__INIT;

    barred.why = proto_text("fenced");
    c.body_case = RH__CONTROL__BODY_BARRED;
    c.barred = &barred;
    control(&c);
}

/* peer LINK node|gateway ID */
static void do_peer(void)
{
    const bool node = strcmp(words[2], "node") == 0;

    step((struct host_event){.type = HOST_PEER_UP,
                             .peer = word_number(1),
                             .role = node ? ROLE_NODE : ROLE_GATEWAY,
                             .name = words[2],
                             .incarnation = word_number(3)});
}

static void do_adopted(void)
{
    Rh__Control c = RH__CONTROL__INIT;
    Rh__Adopted adopted = RH__ADOPTED__INIT;

    adopted.version = word_number(2);
    adopted.awaits = word_count > 3;
    c.body_case = RH__CONTROL__BODY_ADOPTED;
    c.adopted = &adopted;
    step((struct host_event){.type = HOST_PEER_CONTROL, .peer = word_number(1), .message = &c});
}

/* request ID BODY seq= [prev= base= ver= first= copy= session= from= ttl= hops= held= awake= call=
 * traced= chain=ID] */
static struct bytes body_of(size_t at)
{
    static char big[400000];
    const size_t size = at < word_count ? strlen(words[at]) : 0;

    if (at < word_count && strcmp(words[at], "HOPS") == 0) { // as they came to the actor
        return bytes_of(hops_kept, hops_kept_size);
    }

    if (size > 1 && words[at][0] == '*') { // "*300000": so many bytes
        const size_t count = strtoull(words[at] + 1, NULL, 10);

        memset(big, 'x', sizeof big);
        return bytes_of(big, count < sizeof big ? count : sizeof big);
    }
    return bytes_of(at < word_count ? words[at] : "", size);
}

static void do_request(void)
{
    struct request_record r = {.gateway = number_of("gateway", 900)};
    char id[64];
    const struct bytes found = id_of(words[1]);

    memcpy(id, found.data, found.size);
    r.id = bytes_of(id, found.size);
    r.body = body_of(2);
    r.session = number_of("session", 1);
    r.session_epoch = (uint32_t)number_of("epoch", 0);
    r.seq = number_of("seq", 1);
    r.prev = number_of("prev", 0);
    r.base = number_of("base", 1);
    r.version = number_of("ver", host_view(host)->ring.version);
    r.first = number_of("first", r.version);
    r.copy = (uint8_t)number_of("copy", 1);
    r.ttl_ms = (uint32_t)number_of("ttl", 10000);
    r.hops = (uint8_t)number_of("hops", 0);
    r.kind = (uint16_t)number_of("kind", 0);
    r.flags = number_of("held", 0) != 0 ? REQUEST_HELD : 0;
    r.flags |= number_of("read", 0) != 0 ? REQUEST_IDEMPOTENT : 0;
    r.flags |= number_of("awake", 0) != 0 ? REQUEST_AWAKE : 0;
    r.flags |= number_of("call", 0) != 0 ? REQUEST_CALL : 0;
    if (number_of("traced", 0) != 0) {
        static const uint8_t traced = NOTE_TRACE;

        r.flags |= REQUEST_SESSION;
        r.body = bytes_of(&traced, 1);
    }
    if (text_of("chain") != NULL) {
        r.chain[r.chain_count++] =
            ring_point(&cluster.ring, 0, ring_key_of_kind(cluster.key, 0), id_of(text_of("chain")));
    }
    step((struct host_event){.type = HOST_REQUEST, .peer = number_of("from", 9), .request = &r});
}

static void do_actor(enum host_event_type type)
{
    struct actor *a = actor_named(words[1]);
    const bool failed = word_count > 2 && strcmp(words[2], "failed") == 0;
    const bool busy = word_count > 2 && strcmp(words[2], "busy") == 0;

    step((struct host_event){.type = type,
                             .actor = a,
                             .ticket = a->busy == NULL ? 0 : a->busy->running.ticket,
                             .error = failed ? ERR_IO
                                      : busy ? ERR_BUSY
                                             : ERR_OK,
                             .has_state = word_count > 2 && strcmp(words[2], "cold") != 0,
                             .bytes = body_of(2)});
}

/* state TXN INDEX ID STATE [from= source= bond=] | state TXN INDEX END */
static void do_state(void)
{
    struct state_record s = {.txn = word_number(1), .index = (uint32_t)word_number(2)};
    struct image *image = NULL;
    char bond[BOND_SIZE];

    s.source = number_of("source", 102);
    if (strcmp(words[3], "END") == 0) {
        s.flags = STATE_END;
    } else {
        const struct bytes id = id_of(words[3]);
        const struct bytes state = body_of(4);
        const struct image_name name = {.id = id};

        const size_t bond_size = number_of("bond", 0) != 0 ? sizeof bond : 0;

        memset(bond, 'b', sizeof bond);
        image = image_make_bound(
            name, &(struct image_cargo){.bond = bytes_of(bond, bond_size), .state = &state});
        s.id = image->id;
        s.total = (uint32_t)image->data.size;
        s.chunk = image->data;
    }
    s.crc = crc32c(s.chunk.data, s.chunk.size) + (uint32_t)number_of("damage", 0);
    step((struct host_event){.type = HOST_STATE, .peer = number_of("from", 2), .state = &s});
    image_free(image);
}

static void do_ack(void)
{
    const struct state_ack_record ack = {.txn = word_number(1),
                                         .source = number_of("source", 101),
                                         .next = (uint32_t)word_number(2),
                                         .refused = (uint8_t)number_of("refused", 0)};

    step((struct host_event){
        .type = HOST_STATE_ACK, .peer = number_of("from", 2), .state_ack = &ack});
}

static void do_answer(void)
{
    const struct answer_record a = {
        .gateway = number_of("gateway", 900), .session = 1, .seq = word_number(1)};

    step((struct host_event){.type = HOST_ANSWER, .peer = 2, .answer = &a});
}

/* In steps of 50 ms; a line that comes again and again is printed once, with its count. */
static void do_tick(void)
{
    const uint64_t until = now_us + word_number(1) * 1000;
    FILE *whole = out;
    char *text = NULL;
    size_t size = 0;
    char *save = NULL;
    const char *last = NULL;
    unsigned count = 0;

    out = open_memstream(&text, &size);
    while (now_us < until) {
        now_us = now_us + 50000 < until ? now_us + 50000 : until;
        step((struct host_event){.type = HOST_TICK});
    }
    (void)fclose(out);
    out = whole;
    for (const char *line = strtok_r(text, "\n", &save); line != NULL || last != NULL;
         line = strtok_r(NULL, "\n", &save)) {
        if (last != NULL && line != NULL && strcmp(line, last) == 0) {
            count++;
            continue;
        }
        if (last != NULL) {
            (void)fprintf(out, "%s", last);
            if (count > 1) {
                (void)fprintf(out, "  (%u times)", count);
            }
            (void)fputc('\n', out);
        }
        last = line;
        count = 1;
        if (line == NULL) {
            break;
        }
    }
    free(text);
}

static void do_figures(void)
{
    struct host_figures f;

    host_figures(host, &f);
    (void)fprintf(out, "version=%" PRIu64 " actors=%" PRIu64, f.version, f.actors);
    (void)fprintf(out, " held=%" PRIu64 " executed=%" PRIu64, f.held, f.executed);
    (void)fprintf(out, " forwarded=%" PRIu64 " expired=%" PRIu64, f.forwarded, f.dropped_expired);
    (void)fprintf(
        out, " duplicate=%" PRIu64 " overflow=%" PRIu64, f.dropped_duplicate, f.dropped_overflow);
    (void)fprintf(out, " foreign=%" PRIu64 "\n", f.dropped_foreign);
}

/* What became of copies. */
static void do_copies(void)
{
    struct host_figures f;

    host_figures(host, &f);
    (void)fprintf(out, "attached=%" PRIu64 " again=%" PRIu64, f.attached, f.answered_again);
    (void)fprintf(out, " lost=%" PRIu64 " cold=%" PRIu64, f.answers_lost, f.refused_cold);
    (void)fprintf(out, " merged=%" PRIu64, f.dropped_duplicate);
    (void)fprintf(out, " abandoned=%" PRIu64, f.dropped_abandoned);
    (void)fprintf(out, " fenced=%" PRIu64 " saved=%" PRIu64 "\n", f.dropped_fenced, f.answers);
}

/* What the lease allows now. */
static void do_lease(void)
{
    struct host_figures f;

    host_figures(host, &f);
    (void)fprintf(
        out, "%s left=%" PRIu64 "ms", lease_state_name(f.lease), f.lease_margin_us / 1000);
    (void)fprintf(
        out, " least=%" PRIu64 "ms gated=%" PRIu64, f.lease_margin_min_us / 1000, f.lease_gated);
    (void)fprintf(out, " jumps=%" PRIu64 " lapses=%" PRIu64, f.lease_jumps, f.lease_lapses);
    (void)fprintf(out, " parked=%" PRIu64 "/%" PRIu64, f.leaseless, f.leaseless_total);
    (void)fprintf(out, " kept=%" PRIu64 "/%" PRIu64, f.gate_kept, f.gate_kept_total);
    (void)fprintf(out,
                  " dropped=%" PRIu64 ",%" PRIu64 ",%" PRIu64,
                  f.gate_dropped[HOST_DROP_BARRED],
                  f.gate_dropped[HOST_DROP_ERA],
                  f.gate_dropped[HOST_DROP_FULL]);
    if (host_running(host) > 0 && now_us >= host_hard_end_us(host)) {
        (void)fprintf(out, " OVERRUN running=%zu", host_running(host));
    }
    (void)fputc('\n', out);
}

/* stall MS: nothing happens for so long, not even a tick */
static void do_stall(void)
{
    now_us += word_number(1) * 1000;
}

/* slow MS: in the next step so long passes before each effect */
static void do_slow(void)
{
    slow_us = word_number(1) * 1000;
}

/* wall MS: the wall clock is set forward */
static void do_wall(void)
{
    wall_ahead_us += strtoll(words[1], NULL, 10) * 1000;
}

static void do_wipe(void)
{
    disk = (struct host_disk){0};
}

static void do_peerdown(void)
{
    step((struct host_event){.type = HOST_PEER_DOWN, .peer = word_number(1)});
}

static void do_persisted(void)
{
    step((struct host_event){.type = HOST_PERSISTED, .ticket = word_number(1)});
}

static void do_leave(void)
{
    step((struct host_event){.type = HOST_LEAVE});
}

static void do_activated(void)
{
    do_actor(HOST_ACTIVATED);
}

static void do_ran(void)
{
    do_actor(HOST_RAN);
}

/* full PEER, room PEER */
static void do_full(void)
{
    step((struct host_event){.type = HOST_PEER_FULL, .peer = word_number(1)});
}

static void do_room(void)
{
    step((struct host_event){.type = HOST_PEER_ROOM, .peer = word_number(1)});
}

static void do_more(void)
{
    (void)fprintf(out, host_has_more(host) ? "" : "no more\n");
    step((struct host_event){.type = HOST_GO_ON});
}

static void do_exported(void)
{
    do_actor(HOST_EXPORTED);
}

/* retired ID [failed | busy] */
static void do_retired(void)
{
    do_actor(HOST_RETIRED);
}

static void do_poke(void)
{
    do_actor(HOST_POKE);
}

static void do_passivate(void)
{
    do_actor(HOST_PASSIVATE);
}

/* broken ID: it says so itself */
static void do_broken(void)
{
    do_actor(HOST_FAILED);
}

/* wake ID */
static void do_wake(void)
{
    step((struct host_event){.type = HOST_WAKE, .kind = 0, .id = id_of(words[1])});
}

/* returned ID EFFECT [BODY]: the worker did not begin it in time */
static void do_returned(void)
{
    static const struct {
        const char *name;
        enum host_effect_type type;
    } types[] = {{"ACTIVATE", HOST_ACTIVATE},
                 {"RUN", HOST_RUN},
                 {"TURN", HOST_TURN},
                 {"EXPORT", HOST_EXPORT},
                 {"UNFREEZE", HOST_UNFREEZE},
                 {"RETIRE", HOST_RETIRE}};
    struct actor *a = actor_named(words[1]);
    struct host_event event = {.type = HOST_RETURNED, .actor = a, .bytes = body_of(3)};

    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(types[i].name, words[2]) == 0) {
            event.returned = types[i].type;
        }
    }
    event.ticket = a->busy == NULL ? 0 : a->busy->running.ticket;
    step(event);
}

/* What became of actors. */
static void do_lives(void)
{
    struct host_figures f;

    host_figures(host, &f);
    (void)fprintf(out, "records=%" PRIu64 " live=%" PRIu64, f.actors, f.live);
    (void)fprintf(out, " tasks=%zu turns=%" PRIu64, host_running(host), f.turns);
    (void)fprintf(out, " retired=%" PRIu64 " failed=%" PRIu64, f.retired_total, f.failed_total);
    (void)fprintf(out, " woken=%" PRIu64 " to wake=%" PRIu64, f.woken, f.wake_waiting);
    (void)fprintf(out, " mailbox=%" PRIu64, f.dropped_mailbox);
    if (f.cold + f.dropped_cold > 0) {
        (void)fprintf(out, " cold=%" PRIu64 " dropped=%" PRIu64, f.cold, f.dropped_cold);
    }
    if (f.refused_quarantine > 0) {
        (void)fprintf(out, " quarantine=%" PRIu64, f.refused_quarantine);
    }
    (void)fputc('\n', out);
}

static const struct {
    const char *name;
    void (*play)(void);
} commands[] = {
    {"new", do_new},
    {"leader", do_leader},
    {"regok", do_regok},
    {"refused", do_refused},
    {"prepare", do_prepare},
    {"commit", do_commit},
    {"cancel", do_cancel},
    {"polled", do_polled},
    {"config", do_config},
    {"grant", do_grant},
    {"barred", do_barred},
    {"peer", do_peer},
    {"adopted", do_adopted},
    {"request", do_request},
    {"state", do_state},
    {"ack", do_ack},
    {"answer", do_answer},
    {"tick", do_tick},
    {"figures", do_figures},
    {"wipe", do_wipe},
    {"peerdown", do_peerdown},
    {"leave", do_leave},
    {"persisted", do_persisted},
    {"activated", do_activated},
    {"ran", do_ran},
    {"exported", do_exported},
    {"lease", do_lease},
    {"stall", do_stall},
    {"slow", do_slow},
    {"wall", do_wall},
    {"full", do_full},
    {"room", do_room},
    {"more", do_more},
    {"copies", do_copies},
    {"missed", do_missed},
    {"retired", do_retired},
    {"poke", do_poke},
    {"passivate", do_passivate},
    {"broken", do_broken},
    {"quarantine", do_quarantine},
    {"release", do_release},
    {"wake", do_wake},
    {"returned", do_returned},
    {"lives", do_lives},
};

static void play(char *line)
{
    split(line);
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        if (strcmp(commands[i].name, words[0]) == 0) {
            commands[i].play();
            return;
        }
    }
    (void)fprintf(out, "unknown command\n");
}

static void begin(const char *file)
{
    story = file;
    now_us = 1000000;
    disk = (struct host_disk){0};
    asked_renew = 0;
    lost_count = 0;
    wall_ahead_us = 0;
}

static void play_line(char *line, FILE *to)
{
    out = to;
    play(line);
}

static void end(void)
{
    host_free(host);
    host = NULL;
}

static void quiet(void *context, enum log_level level, const char *line)
{
    (void)context;
    (void)level;
    (void)line;
}

static void every_story_plays_as_written(void **state)
{
    static const struct stories stories = {.begin = begin, .play = play_line, .end = end};

    (void)state;
    log_set_sink(quiet, NULL);
    stories_play(&stories, "host");
    host_effects_fini(&effects);
    view_fini(&cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_story_plays_as_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
