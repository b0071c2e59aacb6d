/* SPDX-License-Identifier: Apache-2.0
 *
 * `ringhold check`'s judgement, by hand-made answers: three coordinators, two
 * nodes, one gateway, all well; each test spoils one thing.
 */
#include "cli/check/check.h"

#include "base/mem.h"
#include "link/link.h"
#include "wire/control.h"
#include "wire/gateway_id.h"

#include "tests/test.h"

#include <stdio.h>
#include <string.h>

enum {
    COORDINATORS = 3,
    NODES = 2,
    VNODES = 4,
    VERSION = 50,
    NUMBER = 60,
    PREPARE_MS = 10000,
    LATE_US = 16000000
};

struct fleet {
    struct collection collection;
    Rh__AdminReply *c[COORDINATORS];
    Rh__InspectAnswer *n[NODES];
    Rh__InspectAnswer *g;
    struct findings found;
};

static void set(char **field, const char *text)
{
    if (*field != protobuf_c_empty_string) {
        mem_free(*field);
    }
    *field = mem_string(text);
}

static Rh__Member *new_member(unsigned i)
{
    Rh__Member *m = mem_new(1, sizeof *m);

    *m = (Rh__Member)RH__MEMBER__INIT;
    m->slot = i + 1;
    m->incarnation = 10 + i;
    m->name = mem_string(i == 0 ? "n1" : "n2");
    m->address = mem_string("h:1");
    return m;
}

static Rh__NodeRow *new_node(unsigned i)
{
    Rh__NodeRow *n = mem_new(1, sizeof *n);

    *n = (Rh__NodeRow)RH__NODE_ROW__INIT;
    n->member = new_member(i);
    n->live = true;
    n->vnodes = VNODES / NODES;
    return n;
}

static Rh__VnodeRow *new_vnode(unsigned i)
{
    Rh__VnodeRow *v = mem_new(1, sizeof *v);

    *v = (Rh__VnodeRow)RH__VNODE_ROW__INIT;
    v->id = i;
    v->from = 16 * i;
    v->to = 16 * (i + 1);
    v->owner = mem_string(i % 2 == 0 ? "n1" : "n2");
    v->generation = 40 + i;
    v->cold = 30;
    return v;
}

static Rh__VoterRow *new_voter(unsigned i)
{
    Rh__VoterRow *v = mem_new(1, sizeof *v);
    char address[16];

    *v = (Rh__VoterRow)RH__VOTER_ROW__INIT;
    (void)snprintf(address, sizeof address, "c:%u", i + 1);
    v->id = i + 1;
    v->address = mem_string(address);
    v->linked = true;
    return v;
}

static Rh__LinkRow *new_link(uint32_t role, const char *name, uint64_t incarnation)
{
    Rh__LinkRow *l = mem_new(1, sizeof *l);

    *l = (Rh__LinkRow)RH__LINK_ROW__INIT;
    l->role = role;
    l->name = mem_string(name);
    l->incarnation = incarnation;
    return l;
}

static Rh__Inspection *new_inspection(unsigned i)
{
    Rh__Inspection *in = mem_new(1, sizeof *in);

    *in = (Rh__Inspection)RH__INSPECTION__INIT;
    in->id = i + 1;
    in->members = 5;
    in->state = 6;
    in->ring0 = 1;
    in->ring1 = 2;
    in->wall_us = 1000000000;
    in->prepare_ms = PREPARE_MS;
    in->links = mem_new(3, sizeof(Rh__LinkRow *));
    in->links[0] = new_link(ROLE_NODE, "n1", 10);
    in->links[1] = new_link(ROLE_NODE, "n2", 11);
    in->links[2] = new_link(ROLE_GATEWAY, "g1", 77);
    in->n_links = 3;
    return in;
}

static Rh__AdminReply *new_coordinator(unsigned i)
{
    Rh__AdminReply *r = mem_new(1, sizeof *r);

    *r = (Rh__AdminReply)RH__ADMIN_REPLY__INIT;
    r->cluster = mem_string("t");
    r->leading = i == 1;
    r->leader = 2;
    r->term = 7;
    r->version = VERSION;
    r->digest0 = 1;
    r->digest1 = 2;
    r->number = NUMBER;
    r->era = 1;
    r->applied_index = 90;
    r->nodes = mem_new(NODES, sizeof(Rh__NodeRow *));
    r->vnodes = mem_new(VNODES, sizeof(Rh__VnodeRow *));
    r->voters = mem_new(COORDINATORS, sizeof(Rh__VoterRow *));
    for (unsigned j = 0; j < NODES; j++) {
        r->nodes[r->n_nodes++] = new_node(j);
    }
    for (unsigned j = 0; j < VNODES; j++) {
        r->vnodes[r->n_vnodes++] = new_vnode(j);
    }
    for (unsigned j = 0; j < COORDINATORS; j++) {
        r->voters[r->n_voters++] = new_voter(j);
    }
    r->inspection = new_inspection(i);
    return r;
}

static Rh__InspectAnswer *new_process(uint32_t role, const char *name, uint64_t incarnation)
{
    Rh__InspectAnswer *p = mem_new(1, sizeof *p);

    *p = (Rh__InspectAnswer)RH__INSPECT_ANSWER__INIT;
    p->role = role;
    p->name = mem_string(name);
    p->incarnation = incarnation;
    p->life = mem_string("serving");
    p->era = 1;
    p->version = VERSION;
    p->digest0 = p->ring0 = 1;
    p->digest1 = p->ring1 = 2;
    p->members = 5;
    p->disk_era = 1;
    p->disk_seen = NUMBER;
    p->leases = true;
    p->lease_us = 2000000;
    p->lease_state = mem_string("active");
    return p;
}

static void start(struct fleet *f)
{
    *f = (struct fleet){.collection.coordinator_count = COORDINATORS};
    for (unsigned i = 0; i < COORDINATORS; i++) {
        struct collection_coordinator *c = &f->collection.coordinator[i];

        (void)snprintf(c->address, sizeof c->address, "c:%u", i + 1);
        c->reply = f->c[i] = new_coordinator(i);
    }
    f->n[0] = new_process(ROLE_NODE, "n1", 10);
    f->n[1] = new_process(ROLE_NODE, "n2", 11);
    f->g = new_process(ROLE_GATEWAY, "g1", 77);
    collection_put_process(&f->collection, f->n[0]);
    collection_put_process(&f->collection, f->n[1]);
    collection_put_process(&f->collection, f->g);
}

static void stop(struct fleet *f)
{
    findings_fini(&f->found);
    collection_fini(&f->collection);
}

/* The process is gone, and so are its links. */
static void drop_process(struct fleet *f, size_t at)
{
    struct collection *s = &f->collection;
    const char *name = s->process[at]->name;

    for (size_t i = 0; i < COORDINATORS; i++) {
        Rh__Inspection *in = f->c[i]->inspection;

        for (size_t j = 0; j < in->n_links; j++) {
            if (strcmp(in->links[j]->name, name) == 0) {
                proto_free(&in->links[j]->base);
                in->links[j] = in->links[--in->n_links];
            }
        }
    }
    proto_free(&s->process[at]->base);
    s->process[at] = s->process[--s->process_count];
}

/* Exactly one finding: of that check, with these words. */
static const struct finding *only(struct fleet *f, enum check check, const char *words)
{
    findings_fini(&f->found);
    check_collection(&f->collection, &f->found);
    for (size_t i = 0; i < f->found.count; i++) {
        if (f->found.count != 1 || strstr(f->found.item[i].what, words) == NULL) {
            print_message("%s: %s\n", check_name(f->found.item[i].check), f->found.item[i].what);
        }
    }
    assert_int_equal(f->found.count, 1);
    assert_int_equal(f->found.item[0].check, check);
    assert_non_null(strstr(f->found.item[0].what, words));
    assert_true(f->found.item[0].todo[0] != '\0' && f->found.item[0].subject[0] != '\0');
    return &f->found.item[0];
}

/* ---- cases ---- */

static void a_healthy_fleet_has_no_findings(void **state)
{
    struct fleet f;
    char text[160];

    (void)state;
    start(&f);
    check_collection(&f.collection, &f.found);
    assert_int_equal(f.found.count, 0);
    assert_ptr_equal(collection_reference(&f.collection), f.c[1]);
    for (int c = 0; c < CHECK_COUNT; c++) {
        assert_true(check_detail(&f.collection, (enum check)c, text, sizeof text)[0] != '\0');
        assert_true(check_name((enum check)c)[0] != '\0');
    }
    stop(&f);
}

static void coordinators_must_answer_and_agree(void **state)
{
    struct fleet f;

    (void)state;
    start(&f);
    admin_free(f.c[0]);
    f.collection.coordinator[0].reply = NULL;
    (void)only(&f, CHECK_COORDINATORS, "c:1 does not answer");
    stop(&f);

    start(&f);
    f.c[0]->inspection->state = 9;
    (void)only(&f, CHECK_COORDINATORS, "coordinator 1 and the leader (2) have applied the same");
    f.c[0]->applied_index = 80;
    (void)only(&f, CHECK_COORDINATORS, "coordinator 1 lags behind: it has applied 80 of 90");
    f.c[0]->era = 2;
    (void)only(&f, CHECK_COORDINATORS, "era 2");
    stop(&f);

    start(&f);
    f.c[2]->leading = true;
    f.c[2]->term = 6;
    (void)only(&f, CHECK_COORDINATORS, "2 (term 7) and 3 (term 6) both lead");
    f.c[2]->leading = f.c[1]->leading = false;
    (void)only(&f, CHECK_COORDINATORS, "no coordinator leads");
    stop(&f);

    start(&f);
    set(&f.c[2]->inspection->ring_fault, "cell 4 is odd");
    (void)only(&f, CHECK_COORDINATORS, "coordinator 3's ring contradicts itself: cell 4");
    stop(&f);

    start(&f);
    f.c[1]->inspection->settling = true;
    (void)only(&f, CHECK_COORDINATORS, "still settling");
    stop(&f);
}

static void a_voter_nobody_asked_must_be_linked(void **state)
{
    struct fleet f;

    (void)state;
    start(&f);
    admin_free(f.c[2]);
    f.collection.coordinator_count = 2;
    check_collection(&f.collection, &f.found);
    assert_int_equal(f.found.count, 0);
    f.c[1]->voters[2]->linked = false;
    (void)only(&f, CHECK_COORDINATORS, "coordinator 3 (c:3) is not linked");
    stop(&f);
}

static void every_cell_must_be_covered_once(void **state)
{
    struct fleet f;

    (void)state;
    start(&f);
    f.c[1]->vnodes[1]->from = 20;
    (void)only(&f, CHECK_RING, "cells 16 to 20 are covered by no vnode");
    f.c[1]->vnodes[1]->from = 10;
    (void)only(&f, CHECK_RING, "cells 10 to 16 are covered twice");
    stop(&f);

    start(&f);
    f.c[1]->vnodes[3]->to = 60;
    (void)only(&f, CHECK_RING, "the cells after 60 are covered by no vnode");
    stop(&f);

    start(&f);
    f.c[1]->vnodes[3]->id = 0;
    (void)only(&f, CHECK_RING, "two vnodes have the id 0");
    stop(&f);
}

static void owners_are_registered_and_generations_sane(void **state)
{
    struct fleet f;

    (void)state;
    start(&f);
    set(&f.c[1]->vnodes[2]->owner, "n9");
    (void)only(&f, CHECK_RING, "vnode 2 is owned by no registered node");
    set(&f.c[1]->vnodes[2]->owner, "");
    (void)only(&f, CHECK_RING, "vnode 2 is owned by no registered node");
    stop(&f);

    start(&f);
    f.c[1]->vnodes[2]->generation = VERSION + 1;
    (void)only(&f, CHECK_RING, "vnode 2 has generation 51");
    f.c[1]->vnodes[2]->generation = 0;
    (void)only(&f, CHECK_RING, "vnode 2 has generation 0");
    f.c[1]->vnodes[2]->generation = 40;
    f.c[1]->vnodes[2]->cold = 41;
    (void)only(&f, CHECK_RING, "cold 41");
    stop(&f);

    start(&f);
    f.c[1]->number = VERSION - 1;
    f.n[0]->disk_seen = f.n[1]->disk_seen = 0;
    (void)only(&f, CHECK_RING, "was never drawn");
    stop(&f);
}

static void a_dead_node_is_named_and_an_empty_one_removed(void **state)
{
    const struct finding *found = NULL;
    struct fleet f;

    (void)state;
    start(&f);
    drop_process(&f, 1);
    f.c[1]->nodes[1]->heard_us_ago = 4100000;
    found =
        only(&f, CHECK_NODES, "n2 is unreachable (last heard 4.1 s ago) and still owns 2 vnodes");
    assert_int_equal(found->plan.repair, REPAIR_NONE);
    f.c[1]->nodes[1]->vnodes = 0;
    found = only(&f, CHECK_NODES, "n2 is unreachable (last heard 4.1 s ago); it owns nothing");
    assert_int_equal(found->plan.repair, REPAIR_REMOVE);
    assert_string_equal(found->plan.name, "n2");
    stop(&f);

    start(&f);
    f.c[1]->inspection->barred = mem_new(1, sizeof(char *));
    f.c[1]->inspection->barred[0] = mem_string("n2");
    f.c[1]->inspection->n_barred = 1;
    drop_process(&f, 1);
    (void)only(&f, CHECK_NODES, "n2 is fenced and still owns 2 vnodes");
    stop(&f);
}

static void a_silent_or_unheard_node_is_named(void **state)
{
    struct fleet f;

    (void)state;
    start(&f);
    proto_free(&f.n[0]->base);
    f.collection.process[0] = f.collection.process[2];
    f.collection.process_count = 2;
    (void)only(&f, CHECK_NODES, "n1 has a link but does not answer");
    stop(&f);

    start(&f);
    f.c[1]->nodes[0]->live = false;
    (void)only(&f, CHECK_NODES, "n1 answers, but the leader does not receive its lease renewals");
    stop(&f);
}

static void a_process_that_is_no_member_is_told_to_exit(void **state)
{
    const struct finding *found = NULL;
    struct fleet f;

    (void)state;
    start(&f);
    collection_put_process(&f.collection, new_process(ROLE_NODE, "n1", 3)); // sorted: the first
    found = only(&f, CHECK_NODES, "n1: a process of incarnation 3 serves");
    assert_int_equal(found->plan.repair, REPAIR_EXIT);
    assert_int_equal(found->plan.incarnation, 3);
    set(&f.collection.process[0]->life, "parting");
    findings_fini(&f.found);
    check_collection(&f.collection, &f.found);
    assert_int_equal(f.found.count, 0);
    set(&f.collection.process[0]->life, "joining");
    found = only(&f, CHECK_NODES, "n1 runs, but is not registered");
    assert_int_equal(found->plan.repair, REPAIR_NONE);
    stop(&f);
}

static void every_process_has_the_leaders_configuration(void **state)
{
    const struct finding *found = NULL;
    struct fleet f;

    (void)state;
    start(&f);
    f.n[0]->version = VERSION - 1;
    found = only(&f, CHECK_CONFIGURATION, "node n1 has ring version 49, the leader 50");
    assert_int_equal(found->plan.repair, REPAIR_FETCH);
    assert_int_equal(found->plan.role, ROLE_NODE);
    f.n[0]->version = VERSION + 1;
    found = only(&f, CHECK_CONFIGURATION, "node n1 has ring version 51, the leader 50");
    assert_int_equal(found->plan.repair, REPAIR_NONE);
    stop(&f);

    start(&f);
    f.g->ring0 = 8;
    found = only(&f, CHECK_CONFIGURATION, "gateway g1 has a ring that differs from the leader");
    assert_int_equal(found->plan.repair, REPAIR_FETCH);
    assert_int_equal(found->plan.role, ROLE_GATEWAY);
    assert_int_equal(found->plan.incarnation, 77);
    set(&f.g->ring_fault, "cell 4 is odd");
    (void)only(&f, CHECK_CONFIGURATION, "gateway g1: its ring contradicts itself: cell 4 is odd");
    stop(&f);

    start(&f);
    f.n[1]->members = 1;
    (void)only(&f, CHECK_CONFIGURATION, "node n2 has a node directory that differs");
    f.n[1]->era = 2;
    (void)only(&f, CHECK_CONFIGURATION, "node n2 is of era 2");
    stop(&f);
}

static void a_gateway_reaches_every_owner(void **state)
{
    static uint32_t slots[] = {2};
    struct fleet f;

    (void)state;
    start(&f);
    f.g->unlinked = mem_copy(slots, sizeof slots);
    f.g->n_unlinked = 1;
    (void)only(&f, CHECK_GATEWAYS, "g1 has no link to node n2 (h:1), which owns 2 vnodes");
    drop_process(&f, 1);
    (void)only(&f, CHECK_NODES, "n2 is unreachable"); // which says it all
    stop(&f);

    start(&f);
    proto_free(&f.g->base);
    f.collection.process_count = 2;
    findings_fini(&f.found);
    check_collection(&f.collection, &f.found);
    assert_int_equal(f.found.count, COORDINATORS); // each has a link
    assert_non_null(strstr(f.found.item[0].what, "g1 has a link to coordinator 1 but does not"));
    stop(&f);
}

/* Make g1 one of three threads, and let these answer and be linked, by their number from 1. */
static void add_thread(struct fleet *f, unsigned number, bool answers, bool linked)
{
    const uint64_t id = gateway_id_process(f->g->incarnation) + number - 1;

    f->g->threads = 3;
    if (answers) {
        Rh__InspectAnswer *p = new_process(ROLE_GATEWAY, "g1", id);

        p->threads = 3;
        collection_put_process(&f->collection, p);
    }
    for (size_t i = 0; linked && i < COORDINATORS; i++) {
        Rh__Inspection *in = f->c[i]->inspection;

        in->links = mem_resize(in->links, (in->n_links + 1) * sizeof(Rh__LinkRow *));
        in->links[in->n_links++] = new_link(ROLE_GATEWAY, "g1", id);
    }
}

/* As start(), where g1 is the first of three threads. */
static void start_threads(struct fleet *f)
{
    start(f);
    f->g->incarnation = gateway_id_process(f->g->incarnation);
    for (size_t i = 0; i < COORDINATORS; i++) {
        f->c[i]->inspection->links[2]->incarnation = f->g->incarnation;
    }
}

static void the_threads_of_a_gateway_are_one_gateway(void **state)
{
    static uint32_t slots[] = {2};
    struct fleet f;
    char text[160];

    (void)state;
    start_threads(&f);
    add_thread(&f, 2, true, true);
    add_thread(&f, 3, true, true);
    check_collection(&f.collection, &f.found);
    assert_int_equal(f.found.count, 0);
    assert_non_null(strstr(check_detail(&f.collection, CHECK_CONFIGURATION, text, sizeof text),
                           "and 1 gateways"));
    // One thread that is behind is the gateway's finding, and repaired by itself.
    f.collection.process[f.collection.process_count - 1]->version = VERSION - 1;
    assert_int_equal(
        only(&f, CHECK_CONFIGURATION, "gateway g1 thread 3 has ring version")->plan.incarnation,
        f.g->incarnation + 2);
    f.collection.process[f.collection.process_count - 1]->version = VERSION;
    f.g->unlinked = mem_copy(slots, sizeof slots);
    f.g->n_unlinked = 1;
    (void)only(&f, CHECK_GATEWAYS, "gateway g1 thread 1 has no link to node n2");
    stop(&f);

    start_threads(&f);
    add_thread(&f, 2, true, true);
    (void)only(&f, CHECK_GATEWAYS, "gateway g1 thread 3 of 3 has no link to any coordinator");
    add_thread(&f, 3, false, true);
    findings_fini(&f.found);
    check_collection(&f.collection, &f.found);
    assert_int_equal(f.found.count, COORDINATORS);
    assert_non_null(
        strstr(f.found.item[0].what, "g1 thread 3 has a link to coordinator 1 but does not"));
    stop(&f);

    // Stopped as a whole it is one finding for each link of the process.
    start_threads(&f);
    add_thread(&f, 2, false, true);
    add_thread(&f, 3, false, true);
    proto_free(&f.g->base);
    f.collection.process_count = 2;
    findings_fini(&f.found);
    check_collection(&f.collection, &f.found);
    assert_int_equal(f.found.count, COORDINATORS);
    assert_non_null(strstr(f.found.item[0].what, "gateway g1 has a link to coordinator 1"));
    stop(&f);
}

static void leases_are_active_and_disks_not_ahead(void **state)
{
    struct fleet f;

    (void)state;
    start(&f);
    set(&f.n[0]->lease_state, "gated");
    (void)only(&f, CHECK_LEASES, "n1 has no valid lease (gated)");
    f.n[0]->leases = false;
    f.n[0]->disk_seen = NUMBER + 1;
    (void)only(&f, CHECK_DISKS, "n1 has seen number 61 of era 1");
    f.n[0]->disk_seen = 0;
    f.n[0]->disk_era = 2;
    (void)only(&f, CHECK_DISKS, "of era 2; the coordinators are at 60 of era 1");
    stop(&f);
}

static void leases_that_nobody_tells_of_are_not_taken_for_granted(void **state)
{
    struct fleet f;
    char text[160];
    size_t leases = 0;

    (void)state;
    start(&f);
    assert_string_equal(check_detail(&f.collection, CHECK_LEASES, text, sizeof text),
                        "in force at 2 of 2 nodes that own vnodes, the shortest for another 2.0 s");
    f.c[1]->inspection->lease_us = 3000000;
    drop_process(&f, 0);
    (void)only(&f, CHECK_NODES, "n1 is unreachable");
    assert_non_null(
        strstr(check_detail(&f.collection, CHECK_LEASES, text, sizeof text), "in force at 1 of 2"));
    for (size_t i = 0; i < f.collection.process_count; i++) { // suspect all: none takes over
        if (f.collection.process[i]->role == ROLE_NODE) {
            drop_process(&f, i);
        }
    }
    findings_fini(&f.found);
    check_collection(&f.collection, &f.found);
    for (size_t i = 0; i < f.found.count; i++) {
        if (f.found.item[i].check == CHECK_LEASES) {
            assert_non_null(
                strstr(f.found.item[i].what, "none of the nodes that own vnodes answers (2)"));
            leases++;
        }
    }
    assert_int_equal(leases, 1);
    stop(&f);
}

static void add_txn(struct fleet *f, uint64_t age_us)
{
    Rh__TxnRow *t = mem_new(1, sizeof *t);

    *t = (Rh__TxnRow)RH__TXN_ROW__INIT;
    t->txn = 55;
    t->created_us = f->c[1]->inspection->wall_us - age_us;
    t->waiting_for = mem_string("for n2");
    f->c[1]->txns = mem_new(1, sizeof(Rh__TxnRow *));
    f->c[1]->txns[0] = t;
    f->c[1]->n_txns = 1;
}

static void add_hold(struct fleet *f, uint64_t txn, uint64_t held_us)
{
    Rh__HoldRow *h = mem_new(1, sizeof *h);

    *h = (Rh__HoldRow)RH__HOLD_ROW__INIT;
    h->txn = txn;
    h->held_us = held_us;
    h->n_vnodes = 2;
    h->vnodes = mem_new(2, sizeof *h->vnodes);
    f->n[0]->holds = mem_new(1, sizeof(Rh__HoldRow *));
    f->n[0]->holds[0] = h;
    f->n[0]->n_holds = 1;
}

static void a_hold_needs_a_pending_transaction(void **state)
{
    const struct finding *found = NULL;
    struct fleet f;

    (void)state;
    start(&f);
    add_txn(&f, 1000);
    add_hold(&f, 55, 1000);
    check_collection(&f.collection, &f.found);
    assert_int_equal(f.found.count, 0);
    f.n[0]->holds[0]->txn = 54;
    found = only(&f, CHECK_HOLDS, "n1 holds 2 vnodes for transaction 54, which is not pending");
    assert_int_equal(found->plan.repair, REPAIR_OUTCOME);
    assert_int_equal(found->plan.txn, 54);
    assert_int_equal(found->plan.incarnation, 10);
    f.n[0]->holds[0]->txn = 55;
    f.n[0]->holds[0]->held_us = LATE_US;
    found = only(&f, CHECK_HOLDS, "transaction 55, which is past its deadline, for 16.0 s");
    assert_int_equal(found->plan.repair, REPAIR_ABORT);
    stop(&f);
}

static void a_transaction_past_its_deadline_is_in_doubt(void **state)
{
    const struct finding *found = NULL;
    struct fleet f;

    (void)state;
    start(&f);
    add_txn(&f, LATE_US);
    found = only(&f, CHECK_TRANSACTIONS, "55 has been in doubt for 16.0 s; it waits for n2");
    assert_int_equal(found->plan.repair, REPAIR_ABORT);
    assert_int_equal(found->plan.txn, 55);
    stop(&f);
}

static void add_live(Rh__InspectAnswer *p, bool stray)
{
    Rh__LiveRow *row = mem_new(1, sizeof *row);

    *row = (Rh__LiveRow)RH__LIVE_ROW__INIT;
    row->vnode = 1;
    row->from = 16;
    row->to = 32;
    row->count = 1;
    row->stray = stray;
    p->live = mem_new(1, sizeof(Rh__LiveRow *));
    p->live[0] = row;
    p->n_live = 1;
    p->strays = stray ? 1 : 0;
}

static void add_id(Rh__InspectAnswer *p, const char *id)
{
    Rh__LiveId *row = mem_new(1, sizeof *row);

    *row = (Rh__LiveId)RH__LIVE_ID__INIT;
    row->cell = 17;
    row->id.len = strlen(id);
    row->id.data = mem_copy(id, strlen(id));
    p->ids = mem_new(1, sizeof(Rh__LiveId *));
    p->ids[0] = row;
    p->n_ids = 1;
}

static void no_actor_lives_outside_its_vnodes(void **state)
{
    const struct finding *found = NULL;
    struct fleet f;

    (void)state;
    start(&f);
    add_live(f.n[0], true);
    found = only(&f, CHECK_ACTORS, "n1 has 1 actors outside its vnodes (vnode 1)");
    assert_int_equal(found->plan.repair, REPAIR_STRAYS);
    assert_int_equal(found->plan.incarnation, 10);
    stop(&f);
}

static void no_id_lives_twice(void **state)
{
    struct fleet f;

    (void)state;
    start(&f);
    add_live(f.n[0], false);
    add_live(f.n[1], false);
    add_id(f.n[0], "anna");
    add_id(f.n[1], "bert");
    check_collection(&f.collection, &f.found);
    assert_int_equal(f.found.count, 0);
    memcpy(f.n[1]->ids[0]->id.data, "anna", 4);
    (void)only(&f, CHECK_ACTORS, "1 ids live at both n1 and n2, one of them 'anna'");
    f.n[1]->ids[0]->kind = 3;
    findings_fini(&f.found);
    check_collection(&f.collection, &f.found);
    assert_int_equal(f.found.count, 0);
    stop(&f);
}

/* ---- what stands and what passes ---- */

static void put(struct findings *f, const char *subject, unsigned mark)
{
    struct finding *added = findings_add(f, CHECK_NODES);

    finding_subject(added, "%s", subject);
    finding_mark(added, "%u", mark);
}

static void only_what_stands_unchanged_counts(void **state)
{
    struct findings first = {0};
    struct findings second = {0};

    (void)state;
    put(&first, "n1", 1);
    put(&first, "n2", 1);
    findings_age(&first, &second, 1000);
    put(&second, "n1", 1);
    put(&second, "n2", 2); // it moved on
    findings_age(&second, &first, 3000);
    assert_int_equal(second.item[0].since_us, 1000);
    assert_int_equal(second.item[1].since_us, 3000);
    assert_false(findings_settled(&second, 3000, 2000));
    assert_int_equal(findings_drop_young(&second, 3000, 2000), 1);
    assert_int_equal(second.count, 1);
    assert_string_equal(second.item[0].subject, "n1");
    assert_true(findings_settled(&second, 3000, 2000));
    findings_fini(&first);
    findings_fini(&second);
}

static void each_repair_has_words(void **state)
{
    struct repair_plan plan = {.name = "n1", .txn = 7};
    char text[128];

    (void)state;
    assert_string_equal(repair_text(&plan, text, sizeof text), "");
    for (int r = REPAIR_FETCH; r <= REPAIR_REMOVE; r++) {
        plan.repair = (enum repair)r;
        assert_non_null(
            strstr(repair_text(&plan, text, sizeof text), r == REPAIR_ABORT ? "7" : "n1"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_healthy_fleet_has_no_findings),
        cmocka_unit_test(coordinators_must_answer_and_agree),
        cmocka_unit_test(a_voter_nobody_asked_must_be_linked),
        cmocka_unit_test(every_cell_must_be_covered_once),
        cmocka_unit_test(owners_are_registered_and_generations_sane),
        cmocka_unit_test(a_dead_node_is_named_and_an_empty_one_removed),
        cmocka_unit_test(a_silent_or_unheard_node_is_named),
        cmocka_unit_test(a_process_that_is_no_member_is_told_to_exit),
        cmocka_unit_test(every_process_has_the_leaders_configuration),
        cmocka_unit_test(a_gateway_reaches_every_owner),
        cmocka_unit_test(the_threads_of_a_gateway_are_one_gateway),
        cmocka_unit_test(leases_are_active_and_disks_not_ahead),
        cmocka_unit_test(leases_that_nobody_tells_of_are_not_taken_for_granted),
        cmocka_unit_test(a_hold_needs_a_pending_transaction),
        cmocka_unit_test(a_transaction_past_its_deadline_is_in_doubt),
        cmocka_unit_test(no_actor_lives_outside_its_vnodes),
        cmocka_unit_test(no_id_lives_twice),
        cmocka_unit_test(only_what_stands_unchanged_counts),
        cmocka_unit_test(each_repair_has_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
