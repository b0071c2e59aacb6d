/* SPDX-License-Identifier: Apache-2.0
 *
 * Which coordinators there are: links to each voter, and an operator's change of
 * the group.
 */
#include "coordinator/daemon.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "ring/hash.h"
#include "wire/control.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ANSWER_MS = 3000, WHY_SIZE = 256 };

/* In place of a digest: I wait to be taken into a group. */
static const uint64_t waits = UINT64_MAX;

/* ---- links ---- */

struct link *daemon_voter_link(const struct daemon *d, uint64_t voter)
{
    for (size_t i = 0; i < d->dialled_count; i++) {
        if (d->dialled[i].id == voter && link_is_up(d->dialled[i].link)) {
            return d->dialled[i].link;
        }
    }
    struct table_walk at = {0};
    for (struct table_link *l = table_walk(&d->peers, &at); l != NULL;
         l = table_walk(&d->peers, &at)) {
        const struct daemon_peer *p = CONTAINER_OF(l, struct daemon_peer, by_id);

        if (p->voter == voter) {
            return p->link;
        }
    }
    return NULL;
}

static void dial(struct daemon *d, uint64_t id, const char *address)
{
    for (size_t i = 0; i < d->dialled_count; i++) {
        if (d->dialled[i].id == id && strcmp(d->dialled[i].address, address) == 0) {
            return;
        }
    }
    const bool mine = id == d->options->id;
    struct link *link =
        !mine && d->dialled_count < DIALLED_MAX ? links_dial(d->links, address) : NULL;
    if (link == NULL) {
        return;
    }
    struct dialled *new = &d->dialled[d->dialled_count++];
    *new = (struct dialled){.id = id, .link = link};
    (void)snprintf(new->address, sizeof new->address, "%s", address);
}

static bool is_wanted(const struct daemon *d, const struct dialled *dialled)
{
    const struct generation_voter *voter =
        generation_voter(replica_generation(d->replica), dialled->id);

    for (size_t i = 0; d->wish.peer != 0 && i < d->wish.count; i++) {
        if (d->wish.wish[i].id == dialled->id) {
            return true;
        }
    }
    return voter != NULL && strcmp(voter->address, dialled->address) == 0;
}

void daemon_dial_voters(struct daemon *d)
{
    const struct generation *g = replica_generation(d->replica);
    size_t kept = 0;

    for (size_t i = 0; i < d->dialled_count; i++) {
        if (is_wanted(d, &d->dialled[i])) {
            d->dialled[kept++] = d->dialled[i];
        } else {
            daemon_forget(d, d->dialled[i].link);
        }
    }
    d->dialled_count = kept;
    for (size_t i = 0; i < g->voter_count; i++) {
        dial(d, g->voter[i].id, g->voter[i].address);
    }
}

/* ---- hellos ---- */

/* Coordinators must be told the same list: one that counts other voters could elect on its own. */
static uint64_t voters_digest(const struct coordinator_options *o)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < o->voter_count; i++) {
        const struct ring_key key = {o->voter[i], o->voter_count};

        sum += ring_position(key, bytes_of(o->address[i], strlen(o->address[i])));
    }
    return o->voter_count == 1 ? 0 : sum;
}

uint64_t daemon_voter_id(const struct hello *hello)
{
    char *end = NULL;
    const unsigned long id = strtoul(hello->name, &end, 10);

    return end != hello->name && *end == '\0' && id <= GENERATION_ID_MAX ? id : 0;
}

void daemon_hello(const struct daemon *d, struct hello *self)
{
    self->voters = replica_part(d->replica) == REPLICA_WAITS ? waits : voters_digest(d->options);
    self->incarnation = replica_generation(d->replica)->number;
    self->fleet = d->state.view.fleet;
}

/* Both of the group as it was founded: the lists must be the same. */
static const char *meet_founder(struct daemon *d, uint64_t id, const struct hello *peer)
{
    if (generation_voter(replica_generation(d->replica), id) == NULL ||
        peer->voters != voters_digest(d->options)) {
        return "the coordinators' --peers lists disagree";
    }
    return replica_meet(d->replica, id, peer->identity, peer->pristine) == ERR_OK
               ? NULL
               : "this voter's data folder was wiped or replaced: it could vote twice; see "
                 "docs/raft.md, 'A voter that lost its folder'";
}

const char *daemon_meet(struct daemon *d, const struct hello *peer)
{
    const struct generation *g = replica_generation(d->replica);
    const uint64_t id = daemon_voter_id(peer);
    const bool vote = replica_part(d->replica) == REPLICA_VOTES;
    const bool joins = peer->incarnation == 0 && peer->voters == waits;
    enum err e;

    if (id == d->options->id) {
        return peer->identity == replica_identity(d->replica)
                   ? "the peer uses this coordinator's own --id"
                   : "another coordinator has my --id";
    }
    if (vote && g->number == 0 && peer->incarnation == 0 && !joins) {
        return meet_founder(d, id, peer);
    }
    if (vote && g->number == peer->incarnation && generation_voter(g, id) != NULL) {
        e = replica_meet(d->replica, id, peer->identity, peer->pristine);
    } else {
        e = replica_meet_stranger(d->replica, id, peer->identity, peer->incarnation);
    }
    return e == ERR_OK ? NULL
                       : "the coordinators know another folder for this id: the folder was wiped, "
                         "or the id was used before; see docs/operating.md, 'Coordinators'";
}

/* ---- other voters ---- */

void daemon_tell_voters(struct daemon *d)
{
    const struct generation *g = replica_generation(d->replica);
    struct state_voter voter[GENERATION_VOTERS_MAX] = {0};
    struct coordinator_event event = {
        .type = COORDINATOR_VOTERS, .voter = voter, .voter_count = g->voter_count};

    for (size_t i = 0; i < g->voter_count; i++) {
        voter[i].id = g->voter[i].id;
        (void)snprintf(voter[i].address, sizeof voter[i].address, "%s", g->voter[i].address);
    }
    daemon_step(d, &event);
    char text[OVERVIEW_COORDINATORS_SIZE] = "";
    size_t used = 0;
    for (size_t i = 0; i < g->voter_count && used < sizeof text; i++) {
        used += (size_t)snprintf(
            text + used, sizeof text - used, "%s%s", i == 0 ? "" : ",", g->voter[i].address);
    }
    overview_set_coordinators(d->options->overview, text);
}

void daemon_on_generation(void *context, const struct generation *generation)
{
    struct daemon *d = context;

    if (replica_part(d->replica) == REPLICA_RETIRED) {
        log_warn("coordinator",
                 "retired",
                 "coordinator=%u generation=%" PRIu64
                 " reason=\"this coordinator is no longer a voter\" "
                 "remedy=\"stop it when ringhold coordinators list shows all of the others linked; "
                 "its folder may go then (docs/operating.md#coordinators)\"",
                 d->options->id,
                 generation->number);
    }
    links_set_incarnation(d->links, generation->number);
    daemon_dial_voters(d);
    daemon_tell_voters(d);
}

/* ---- the history ---- */

enum {
    VOTERS_TEXT_SIZE = GENERATION_VOTERS_MAX * (GENERATION_ADDRESS_MAX + 8),
    NOTE_EACH_MS = 1000
};

static const char note_subject[] = "coordinators";

/* `wish`: whose it is; NULL = nobody asked for this. */
static void put_note(struct daemon *d, const char *what, const struct voters_wish *wish)
{
    const struct history_note note = {.action = note_subject,
                                      .subject = note_subject,
                                      .what = what,
                                      .by = wish == NULL ? "" : wish->by,
                                      .reason = wish == NULL ? "" : wish->reason};
    struct coordinator_event event = {.type = COORDINATOR_NOTE, .note = &note};

    daemon_step(d, &event);
}

/* Append "1=host:port", behind a comma unless it is the first. */
static void add_voter(char *text, size_t size, bool first, uint64_t id, const char *address)
{
    const size_t used = strlen(text);

    (void)snprintf(text + used, size - used, "%s%" PRIu64 "=%s", first ? "" : ",", id, address);
}

/* Are entries in the log that this coordinator has yet to apply? A note may be one of them. */
static bool is_behind(const struct daemon *d)
{
    struct replica_status status;

    replica_status(d->replica, &status);
    return status.applied_index < status.last_index;
}

/* "wished: 1=host:port,2=host:port". The question comes again to the next leader, when the one who
 * noted it leads no more; so the leader looks for the note once it has applied its whole log. */
static void note_wish(struct daemon *d)
{
    struct voters_wish *w = &d->wish;
    char what[VOTERS_TEXT_SIZE + 16] = "wished: ";

    for (size_t i = 0; i < w->count; i++) {
        add_voter(what, sizeof what, i == 0, w->wish[i].id, w->wish[i].address);
    }
    if (!state_db_ends_with_note(d->db, note_subject, what)) {
        put_note(d, what, w);
    }
}

/* The generation before could not say it: nothing is behind its seal. So whoever leads the new one
 * does, unless somebody did before him. */
void daemon_note_generation(struct daemon *d)
{
    const struct generation *g = replica_generation(d->replica);
    const uint64_t now_us = clock_boottime_us();
    char what[VOTERS_TEXT_SIZE + 32];

    if (!d->leading || g->number == d->noted || is_behind(d) ||
        now_us - d->noted_us < (uint64_t)NOTE_EACH_MS * 1000) {
        return;
    }
    (void)snprintf(what, sizeof what, "generation %" PRIu64 ": ", g->number);
    for (size_t i = 0; i < g->voter_count; i++) {
        add_voter(what, sizeof what, i == 0, g->voter[i].id, g->voter[i].address);
    }
    d->noted_us = now_us;
    if (state_db_has_note(d->db, note_subject, what)) {
        d->noted = g->number;
    } else {
        put_note(d, what, NULL);
    }
}

/* ---- an operator's wish ---- */

static void answer(struct daemon *d, uint64_t peer, uint64_t tag, const char *error)
{
    const struct generation *g = replica_generation(d->replica);
    struct daemon_peer *p = daemon_peer(d, peer);
    Rh__Control out = RH__CONTROL__INIT;
    Rh__AdminReply reply = RH__ADMIN_REPLY__INIT;
    Rh__VoterRow row[GENERATION_VOTERS_MAX];
    Rh__VoterRow *rows[GENERATION_VOTERS_MAX];
    struct buffer bytes = {0};

    if (p == NULL) {
        return; // it has gone
    }
    p->answered = tag;
    for (size_t i = 0; i < g->voter_count; i++) {
        const uint64_t id = g->voter[i].id;

        row[i] = (Rh__VoterRow)RH__VOTER_ROW__INIT;
        row[i].id = (uint32_t)id;
        row[i].address = proto_text(g->voter[i].address);
        row[i].linked = id == d->options->id || daemon_voter_link(d, id) != NULL;
        row[i].leader = id == daemon_leader(d);
        rows[i] = &row[i];
    }
    reply.tag = tag;
    reply.error = proto_text(error);
    reply.generation = g->number;
    reply.voters = rows;
    reply.n_voters = g->voter_count;
    out.body_case = RH__CONTROL__BODY_ADMIN_REPLY;
    out.admin_reply = &reply;
    control_put(&bytes, &out);
    if (link_send(p->link, FRAME_CONTROL, buffer_bytes(&bytes)) != ERR_OK) {
        log_warn("coordinator", "send_failed", "peer=%s", link_peer(p->link)->name);
    }
    buffer_fini(&bytes);
}

static void end_wish(struct daemon *d, const char *error)
{
    if (d->wish.peer != 0) {
        answer(d, d->wish.peer, d->wish.tag, error);
        d->wish.peer = 0;
        daemon_dial_voters(d);
    }
}

static bool read_wish(struct voters_wish *w, const Rh__AdminCoordinators *in)
{
    if (in->n_voters > GENERATION_VOTERS_MAX) {
        return false;
    }
    w->count = in->n_voters;
    for (size_t i = 0; i < w->count; i++) {
        w->wish[i] = (struct generation_wish){.id = in->voters[i]->id};
        if (strlen(in->voters[i]->address) > GENERATION_ADDRESS_MAX) {
            return false;
        }
        (void)snprintf(w->wish[i].address, sizeof w->wish[i].address, "%s", in->voters[i]->address);
    }
    return true;
}

/* The question may come again, also to the one who leads after the change. */
static bool is_done(const struct daemon *d, const struct voters_wish *w)
{
    const struct generation *g = replica_generation(d->replica);

    for (size_t i = 0; i < w->count; i++) {
        const struct generation_voter *voter = generation_voter(g, w->wish[i].id);

        if (voter == NULL || strcmp(voter->address, w->wish[i].address) != 0) {
            return false;
        }
    }
    return w->count == 0 || w->count == g->voter_count;
}

void daemon_take_wish(struct daemon *d, struct link *link, const Rh__Admin *in)
{
    const struct daemon_peer *p = link_user(link);
    struct voters_wish w = {.peer = p->id, .tag = in->tag};
    char why[WHY_SIZE] = "";

    if (d->wish.peer == w.peer && d->wish.tag == w.tag) {
        return; // on its way
    }
    if (w.tag != 0 && w.tag == p->answered) {
        return; // asked again before the answer came: it is no second wish
    }
    if (strlen(in->coordinators->reason) > ADMIN_REASON_MAX) {
        answer(d, w.peer, w.tag, "the reason is longer than 200 bytes");
    } else if (!read_wish(&w, in->coordinators)) {
        answer(d,
               w.peer,
               w.tag,
               "a group has at most 5 coordinators, with addresses of at most 127 bytes");
    } else if (is_done(d, &w)) {
        answer(d, w.peer, w.tag, "");
    } else if (d->wish.peer != 0) {
        answer(d, w.peer, w.tag, "another change of the coordinators is in progress");
    } else if (!generation_judge(
                   replica_generation(d->replica), w.wish, w.count, why, sizeof why)) {
        answer(d, w.peer, w.tag, why);
    } else {
        log_info("coordinator",
                 "coordinators_wished",
                 "count=%zu by=\"%s\"",
                 w.count,
                 in->coordinators->by);
        (void)snprintf(w.by, sizeof w.by, "%s", in->coordinators->by);
        (void)snprintf(w.reason, sizeof w.reason, "%s", in->coordinators->reason);
        w.until_us = clock_boottime_us() + (uint64_t)ANSWER_MS * 1000;
        d->wish = w;
        for (size_t i = 0; i < w.count; i++) {
            dial(d, w.wish[i].id, w.wish[i].address);
        }
    }
}

/* How each of them is linked now. True: all are. */
static bool look_at_links(struct daemon *d)
{
    bool all = true;

    for (size_t i = 0; i < d->wish.count; i++) {
        struct generation_wish *wish = &d->wish.wish[i];
        const struct link *link = daemon_voter_link(d, wish->id);
        const struct hello *hello = link == NULL ? NULL : link_peer(link);

        wish->linked = hello != NULL || wish->id == d->options->id;
        wish->empty = hello != NULL && hello->incarnation == 0 && hello->voters == waits;
        all = all && wish->linked;
    }
    return all;
}

void daemon_drive_wish(struct daemon *d)
{
    struct voters_wish *w = &d->wish;
    char why[WHY_SIZE] = "";

    if (w->peer == 0 || w->proposed) {
        return;
    }
    if (!d->leading) {
        w->peer = 0; // it is asked again, of the next leader
        daemon_dial_voters(d);
        return;
    }
    const bool early = clock_boottime_us() < w->until_us;
    // Behind the seal nobody would write that this generation was; and it was before it was wished
    // to end.
    if (early && d->noted != replica_generation(d->replica)->number) {
        return;
    }
    w->applied = w->applied || !is_behind(d);
    if ((!look_at_links(d) || !w->applied) && early) {
        return;
    }
    w->proposed = true;
    if (replica_may_change(d->replica, w->wish, w->count, why, sizeof why) != ERR_OK) {
        end_wish(d, why);
        return;
    }
    note_wish(d); // it comes before its seal, and what is refused is not told
    if (replica_change(d->replica, WISH_TAG, w->wish, w->count, why, sizeof why) != ERR_OK) {
        end_wish(d, why);
    }
}

void daemon_wish_done(struct daemon *d, enum err error)
{
    if (error == ERR_OK) {
        end_wish(d, "");
    } else {
        d->wish.peer = 0; // whoever leads next is asked again, and knows
        daemon_dial_voters(d);
    }
}
