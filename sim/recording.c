/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes a simulated history in the public format.
 */
#include "sim/recording.h"

#include "node/books/actor.h"
#include "sim/fleet.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { NAME_SIZE = 64 };

/* "n1.3" */
static const char *name_of(const struct process *p, char out[NAME_SIZE])
{
    (void)snprintf(out, NAME_SIZE, "%.40s.%" PRIu64, p->name, p->life);
    return out;
}

/* The process of that name, as it lives now. */
static const char *name_now(struct fleet *f, const char *who, char out[NAME_SIZE])
{
    for (unsigned i = 0; i < f->coordinators + f->nodes + f->gateways; i++) {
        const struct process *p = fleet_process(f, i);

        if (strcmp(p->name, who) == 0) {
            return name_of(p, out);
        }
    }
    (void)snprintf(out, NAME_SIZE, "%.40s", who);
    return out;
}

/* Durable actors are judged by their store, which decides which of their runs count. */
static bool is_told(const struct fleet *f, const struct entity *e)
{
    return f->history != NULL && !e->durable;
}

static bool is_ask_told(struct fleet *f, uint64_t uid)
{
    const struct sim_ask *a = ledger_find(f, uid);

    return a != NULL && is_told(f, &f->ledger.entity[a->entity]);
}

void record_life(struct fleet *f, enum history_event_type type, const struct instance *i)
{
    char name[NAME_SIZE];

    if (!is_told(f, i->entity)) {
        return;
    }
    (void)name_of(&i->node->process, name);
    if (type == HISTORY_ACTIVATE) {
        history_write(f->history,
                      f->world.now_us,
                      name,
                      type,
                      "entity=%s fence=%" PRIu64 " effects=%zu",
                      i->entity->id,
                      i->actor->fence,
                      i->list.count);
    } else {
        history_write(f->history,
                      f->world.now_us,
                      name,
                      type,
                      "entity=%s%s",
                      i->entity->id,
                      type == HISTORY_STOP && i->broken ? " why=broken" : "");
    }
}

/* "session=s3 entity=hot1 seq=7"; a request of a kind that nobody hosts has an entity of its own.
 */
static const char *request_text(struct fleet *f, uint64_t uid, char *out, size_t size)
{
    const struct sim_ask *a = ledger_find(f, uid);

    if (a->foreign) {
        (void)snprintf(out,
                       size,
                       "session=s%" PRIu64 " entity=foreign%" PRIu64 " seq=1",
                       a->session->number,
                       uid);
    } else {
        (void)snprintf(out,
                       size,
                       "session=s%" PRIu64 " entity=%s seq=%u",
                       a->session->number,
                       f->ledger.entity[a->entity].id,
                       a->seq);
    }
    return out;
}

/* Something about a request, at that process; `more` stands behind it. */
static void put_request(struct fleet *f, const struct process *at, enum history_event_type type,
                        uint64_t uid, const char *more)
{
    char name[NAME_SIZE];
    char text[128];

    history_write(f->history,
                  f->world.now_us,
                  name_of(at, name),
                  type,
                  "%s%s",
                  request_text(f, uid, text, sizeof text),
                  more);
}

void record_run(struct fleet *f, enum history_event_type type, const struct instance *i,
                uint64_t uid)
{
    if (is_ask_told(f, uid)) {
        put_request(f, &i->node->process, type, uid, "");
    }
}

void record_send(struct fleet *f, uint64_t uid)
{
    if (is_ask_told(f, uid)) {
        const struct sim_ask *a = ledger_find(f, uid);

        put_request(f,
                    session_process(a->session),
                    HISTORY_SEND,
                    uid,
                    a->idempotent ? " idempotent=yes" : "");
    }
}

void record_answer(struct fleet *f, uint64_t uid, enum reply_code code)
{
    static const char *const names[] = {
        [REPLY_OK] = " code=OK",
        [REPLY_APP_ERROR] = " code=APPERR",
        [REPLY_UNKNOWN] = " code=UNKNOWN",
        [REPLY_TIMEOUT] = " code=TIMEOUT",
        [REPLY_REJECTED] = " code=REJECTED",
        [REPLY_NO_KIND] = " code=NOKIND",
        [REPLY_OVERLOADED] = " code=REJECTED",
        [REPLY_QUARANTINED] = " code=REJECTED",
        [REPLY_DEADLOCK] = " code=REJECTED",
    };
    if (is_ask_told(f, uid)) {
        put_request(
            f, session_process(ledger_find(f, uid)->session), HISTORY_ANSWER, uid, names[code]);
    }
}

void record_close(struct fleet *f, const struct sim_session *s)
{
    char name[NAME_SIZE];

    if (f->history != NULL) {
        history_write(f->history,
                      f->world.now_us,
                      name_of(session_process(s), name),
                      HISTORY_CLOSE,
                      "session=s%" PRIu64,
                      s->number);
    }
}

void record_process(struct fleet *f, enum history_event_type type, const struct process *p)
{
    char name[NAME_SIZE];

    if (f->history != NULL) {
        history_write(f->history, f->world.now_us, "world", type, "of=%s", name_of(p, name));
    }
}

void record_registered(struct fleet *f, const struct sim_node *n, uint64_t incarnation)
{
    char name[NAME_SIZE];

    if (f->history != NULL) {
        history_write(f->history,
                      f->world.now_us,
                      name_of(&n->process, name),
                      HISTORY_REGISTERED,
                      "inc=%" PRIu64,
                      incarnation);
    }
}

void record_lease(struct fleet *f, const struct sim_node *n)
{
    uint64_t *told_us = &f->lease_told_us[n - f->node];
    char name[NAME_SIZE];

    if (f->history == NULL) {
        return;
    }
    const uint64_t gate_us = host_gate_us(n->core);
    // In virtual time: all events are of one clock.
    if (gate_us == *told_us || gate_us == 0 || gate_us == UINT64_MAX) {
        return;
    }
    *told_us = gate_us;
    history_write(f->history,
                  f->world.now_us,
                  name_of(&n->process, name),
                  HISTORY_LEASE,
                  "until=%" PRIu64,
                  sim_clock_when(&n->process.clock, gate_us, f->world.now_us));
}

void record_output(struct fleet *f, const struct sim_node *n)
{
    char name[NAME_SIZE];

    if (f->history != NULL) {
        history_write(
            f->history, f->world.now_us, name_of(&n->process, name), HISTORY_OUTPUT, "kind=record");
    }
}

void record_committed(struct fleet *f, const Rh__Command *command,
                      const struct state_result *result)
{
    const uint64_t digest = f->raft.truth.view.ring.digest[0];

    if (f->history == NULL) {
        return;
    }
    for (size_t i = 0; i < result->aborted_count; i++) {
        history_write(f->history,
                      f->world.now_us,
                      "log",
                      HISTORY_ABORTED,
                      "txn=%" PRIu64,
                      result->aborted[i]);
    }
    if (result->accepted && command->body_case == RH__COMMAND__BODY_COMMIT) {
        history_write(f->history,
                      f->world.now_us,
                      "log",
                      HISTORY_COMMITTED,
                      "txn=%" PRIu64 " version=%" PRIu64 " digest=%016" PRIx64,
                      result->txn,
                      result->stamp,
                      digest);
    }
    if (result->accepted && command->body_case == RH__COMMAND__BODY_REASSIGN) {
        history_write(f->history,
                      f->world.now_us,
                      "log",
                      HISTORY_REASSIGN,
                      "inc=%" PRIu64 " version=%" PRIu64 " digest=%016" PRIx64,
                      command->reassign->incarnation,
                      result->stamp,
                      digest);
    }
}

void record_outcome(struct fleet *f, const char *who, uint64_t txn, bool committed)
{
    char name[NAME_SIZE];

    if (f->history != NULL && txn != 0) {
        history_write(f->history,
                      f->world.now_us,
                      name_now(f, who, name),
                      HISTORY_OUTCOME,
                      "txn=%" PRIu64 " is=%s",
                      txn,
                      committed ? "commit" : "abort");
    }
}

void record_view(struct fleet *f, const char *who, const struct view *view)
{
    char name[NAME_SIZE];

    if (f->history != NULL) {
        history_write(f->history,
                      f->world.now_us,
                      name_now(f, who, name),
                      HISTORY_VIEW,
                      "version=%" PRIu64 " digest=%016" PRIx64,
                      view->ring.version,
                      view->ring.digest[0]);
    }
}
