/* SPDX-License-Identifier: Apache-2.0
 *
 * Asks all processes of a fleet at once, and keeps the best answer of each.
 */
#include "cli/check/collector.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/random.h"
#include "link/link.h"
#include "wire/control.h"

#include <stdio.h>
#include <string.h>

enum { IDS_WANTED_MAX = 256 /* ranges */ };

struct collector {
    struct admin *admin;
    char cluster[64];
    char addresses[ADMIN_ADDRESSES_SIZE];
    struct collection *out; /* of the question that is on */
    uint64_t tag;
    bool asked[ADMIN_COORDINATORS_MAX];
    struct link_files tls;
};

void collection_fini(struct collection *s)
{
    for (size_t i = 0; i < s->coordinator_count; i++) {
        admin_free(s->coordinator[i].reply);
    }
    for (size_t i = 0; i < s->process_count; i++) {
        proto_free(&s->process[i]->base);
    }
    mem_free(s->process);
    *s = (struct collection){0};
}

static bool is_better(const Rh__AdminReply *a, const Rh__AdminReply *b)
{
    if (b == NULL || a->leading != b->leading) {
        return b == NULL || a->leading;
    }
    if (a->leading && a->term != b->term) {
        return a->term > b->term;
    }
    return a->number > b->number || (a->number == b->number && a->applied_index > b->applied_index);
}

const Rh__AdminReply *collection_reference(const struct collection *s)
{
    const Rh__AdminReply *best = NULL;

    for (size_t i = 0; i < s->coordinator_count; i++) {
        const Rh__AdminReply *reply = s->coordinator[i].reply;

        if (reply != NULL && is_better(reply, best)) {
            best = reply;
        }
    }
    return best;
}

static bool is_same(const Rh__InspectAnswer *p, uint32_t role, const char *name,
                    uint64_t incarnation)
{
    return p->role == role && strcmp(p->name, name) == 0 && p->incarnation == incarnation;
}

/* By role, name, incarnation: so that two surveys of the same fleet read alike. */
static int compare(const Rh__InspectAnswer *a, const Rh__InspectAnswer *b)
{
    const int names = strcmp(a->name, b->name);

    if (a->role != b->role) {
        return a->role < b->role ? -1 : 1;
    }
    if (names != 0) {
        return names;
    }
    return a->incarnation < b->incarnation ? -1 : a->incarnation > b->incarnation;
}

void collection_put_process(struct collection *s, Rh__InspectAnswer *answer)
{
    size_t at = 0;

    while (at < s->process_count && compare(s->process[at], answer) < 0) {
        at++;
    }
    if (at < s->process_count && compare(s->process[at], answer) == 0) {
        proto_free(&s->process[at]->base);
        s->process[at] = answer;
        return;
    }
    s->process = mem_resize(s->process, (s->process_count + 1) * sizeof(Rh__InspectAnswer *));
    memmove(&s->process[at + 1],
            &s->process[at],
            (s->process_count - at) * sizeof(Rh__InspectAnswer *));
    s->process[at] = answer;
    s->process_count++;
}

bool collection_has(const struct collection *s, const Rh__LinkRow *link)
{
    for (size_t i = 0; i < s->process_count; i++) {
        const Rh__InspectAnswer *p = s->process[i];

        if (is_same(p, link->role, link->name, link->incarnation) ||
            (link->incarnation == 0 && p->role == link->role && strcmp(p->name, link->name) == 0)) {
            return true;
        }
    }
    return false;
}

bool collection_linked(const struct collection *s, uint32_t role, const char *name,
                       uint64_t incarnation)
{
    for (size_t i = 0; i < s->coordinator_count; i++) {
        const Rh__AdminReply *reply = s->coordinator[i].reply;

        for (size_t j = 0; reply != NULL && j < reply->inspection->n_links; j++) {
            const Rh__LinkRow *link = reply->inspection->links[j];

            if (link->role == role && link->incarnation == incarnation &&
                strcmp(link->name, name) == 0) {
                return true;
            }
        }
    }
    return false;
}

/* ---- asking ---- */

/* Out of the borrowed message, by way of its bytes. */
static ProtobufCMessage *copy_of(const ProtobufCMessage *message)
{
    struct buffer bytes = {0};
    ProtobufCMessage *copy = NULL;

    proto_put(&bytes, message);
    copy = proto_get(message->descriptor, buffer_bytes(&bytes));
    buffer_fini(&bytes);
    return copy;
}

static void on_reply(struct collector *v, size_t at, const Rh__AdminReply *reply)
{
    struct collection_coordinator *c = &v->out->coordinator[at];

    if (reply->inspection == NULL) {
        (void)snprintf(c->why, sizeof c->why, "the process's version can't be inspected");
    } else if (c->reply == NULL) {
        c->reply = (Rh__AdminReply *)copy_of(&reply->base);
    }
}

static void on_message(void *context, size_t at, const Rh__Control *message)
{
    struct collector *v = context;

    if (v->out == NULL || at >= v->out->coordinator_count) {
        return;
    }
    if (message->body_case == RH__CONTROL__BODY_ADMIN_REPLY &&
        message->admin_reply->tag == v->tag) {
        on_reply(v, at, message->admin_reply);
    } else if (message->body_case == RH__CONTROL__BODY_INSPECT_ANSWER &&
               message->inspect_answer->tag == v->tag) {
        Rh__InspectAnswer *copy = (Rh__InspectAnswer *)copy_of(&message->inspect_answer->base);

        if (copy != NULL) {
            collection_put_process(v->out, copy);
        }
    }
}

static bool dial(struct collector *v)
{
    const struct admin_where where = {
        .cluster = v->cluster, .coordinators = v->addresses, .tls = v->tls};

    v->admin = admin_open(&where);
    if (v->admin != NULL) {
        admin_watch(v->admin, on_message, v);
    }
    return v->admin != NULL;
}

struct collector *collector_new(const struct admin_where *where)
{
    struct collector *v = mem_new(1, sizeof *v);

    (void)snprintf(v->cluster, sizeof v->cluster, "%s", where->cluster);
    (void)snprintf(v->addresses, sizeof v->addresses, "%s", where->coordinators);
    v->tls = where->tls;
    v->tag = random_u64() >> 1;
    if (!dial(v)) {
        mem_free(v);
        return NULL;
    }
    return v;
}

void collector_free(struct collector *v)
{
    if (v != NULL) {
        admin_close(v->admin);
        mem_free(v);
    }
}

static bool all_answered(const struct collector *v)
{
    for (size_t i = 0; i < v->out->coordinator_count; i++) {
        const Rh__AdminReply *reply = v->out->coordinator[i].reply;

        if (reply == NULL && v->out->coordinator[i].why[0] == '\0') {
            return false;
        }
        for (size_t j = 0; reply != NULL && j < reply->inspection->n_links; j++) {
            if (!collection_has(v->out, reply->inspection->links[j])) {
                return false;
            }
        }
    }
    return true;
}

static void ask_all(struct collector *v, Rh__AdminInspect *what, uint32_t timeout_ms)
{
    const uint64_t end_us = clock_boottime_us() + (uint64_t)timeout_ms * 1000;
    Rh__Control control = RH__CONTROL__INIT;
    Rh__Admin request = RH__ADMIN__INIT;

    request.tag = ++v->tag;
    request.what_case = RH__ADMIN__WHAT_INSPECT;
    request.inspect = what;
    control.body_case = RH__CONTROL__BODY_ADMIN;
    control.admin = &request;
    memset(v->asked, 0, sizeof v->asked);
    while (!all_answered(v) && clock_boottime_us() < end_us) {
        for (size_t i = 0; i < v->out->coordinator_count; i++) {
            v->asked[i] = v->asked[i] || admin_tell(v->admin, i, &control);
        }
        admin_turn(v->admin);
    }
}

/* ---- voters that the list left out ---- */

static bool has_answered(const struct collection *s, uint32_t voter)
{
    for (size_t i = 0; i < s->coordinator_count; i++) {
        const Rh__AdminReply *reply = s->coordinator[i].reply;

        if (reply != NULL && reply->inspection->id == voter) {
            return true;
        }
    }
    return false;
}

static bool is_asked(const struct collection *s, const char *address)
{
    for (size_t i = 0; i < s->coordinator_count; i++) {
        if (strcmp(s->coordinator[i].address, address) == 0) {
            return true;
        }
    }
    return false;
}

static bool can_be_asked(const struct collection *s, const Rh__VoterRow *voter)
{
    char address[1][128];
    size_t count = 0;

    return !has_answered(s, voter->id) && !is_asked(s, voter->address) &&
           admin_split(voter->address, address, 1, &count) == ERR_OK;
}

/* Dial those too, from now on; false: there are none. */
static bool add_voters(struct collector *v)
{
    const Rh__AdminReply *reference = collection_reference(v->out);
    size_t count = v->out->coordinator_count;

    for (size_t i = 0; reference != NULL && i < reference->n_voters; i++) {
        const Rh__VoterRow *voter = reference->voters[i];
        const size_t used = strlen(v->addresses);

        if (count < ADMIN_COORDINATORS_MAX && can_be_asked(v->out, voter)) {
            (void)snprintf(v->addresses + used, sizeof v->addresses - used, ",%s", voter->address);
            count++;
        }
    }
    if (count == v->out->coordinator_count) {
        return false;
    }
    admin_close(v->admin);
    if (!dial(v)) {
        UNREACHABLE();
    }
    return true;
}

/* ---- who lives twice? ---- */

static bool overlap(const Rh__LiveRow *a, const Rh__LiveRow *b)
{
    return a->from < b->to && b->from < a->to;
}

static bool lives_elsewhere_too(const struct collection *s, const Rh__InspectAnswer *me,
                                const Rh__LiveRow *row)
{
    for (size_t i = 0; i < s->process_count; i++) {
        for (size_t j = 0; s->process[i] != me && j < s->process[i]->n_live; j++) {
            if (overlap(row, s->process[i]->live[j])) {
                return true;
            }
        }
    }
    return false;
}

/* Where two processes have actors, their ids are asked for. */
static size_t find_shared(const struct collection *s, Rh__Cells *cells)
{
    size_t count = 0;

    for (size_t i = 0; i < s->process_count; i++) {
        const Rh__InspectAnswer *p = s->process[i];

        for (size_t j = 0; j < p->n_live && count < IDS_WANTED_MAX; j++) {
            if (lives_elsewhere_too(s, p, p->live[j])) {
                cells[count] = (Rh__Cells)RH__CELLS__INIT;
                cells[count].from = p->live[j]->from;
                cells[count].to = p->live[j]->to;
                count++;
            }
        }
    }
    return count;
}

static void begin(struct collector *v, struct collection *out)
{
    *out = (struct collection){.coordinator_count = admin_count(v->admin)};
    for (size_t i = 0; i < out->coordinator_count; i++) {
        (void)snprintf(out->coordinator[i].address,
                       sizeof out->coordinator[i].address,
                       "%s",
                       admin_address(v->admin, i));
    }
}

/* Once, and where two live in one place once more for their ids. */
static void ask_twice(struct collector *v, uint32_t timeout_ms, struct collection *out)
{
    Rh__AdminInspect what = RH__ADMIN_INSPECT__INIT;
    Rh__Cells cells[IDS_WANTED_MAX];
    Rh__Cells *wanted[IDS_WANTED_MAX];

    begin(v, out);
    v->out = out;
    ask_all(v, &what, timeout_ms);
    what.n_ids_of = find_shared(out, cells);
    what.ids_of = wanted;
    for (size_t i = 0; i < what.n_ids_of; i++) {
        wanted[i] = &cells[i];
    }
    if (what.n_ids_of > 0) {
        collection_fini(out);
        begin(v, out);
        ask_all(v, &what, timeout_ms);
    }
    for (size_t i = 0; i < out->coordinator_count; i++) {
        struct collection_coordinator *c = &out->coordinator[i];

        if (c->reply == NULL && c->why[0] == '\0') {
            (void)snprintf(c->why,
                           sizeof c->why,
                           "%s",
                           admin_is_up(v->admin, i) ? "its link is up" : admin_reason(v->admin, i));
        }
    }
}

void collector_ask(struct collector *v, uint32_t timeout_ms, struct collection *out)
{
    ask_twice(v, timeout_ms, out);
    if (add_voters(v)) {
        collection_fini(out);
        ask_twice(v, timeout_ms, out);
    }
    v->out = NULL;
}
