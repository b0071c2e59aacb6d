/* SPDX-License-Identifier: Apache-2.0
 *
 * What a host did, in words: the transcript of a story.
 */
#ifndef TESTS_NODE_HOST_STORY_EFFECTS_H
#define TESTS_NODE_HOST_STORY_EFFECTS_H

#include "tests/node/host_story.h"

static inline void print_text(const char *key, struct bytes b)
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

static inline void print_hops(struct bytes hops)
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
static inline void print_body(struct bytes body)
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

/* "+ID": it lives, "-ID": it has ended. */
static inline void print_remember(const Rh__Remember *m)
{
    (void)fprintf(out, " REMEMBER %" PRIu64, m->number);
    for (size_t i = 0; i < m->n_rows; i++) {
        const Rh__Actor *actor = m->rows[i]->actor;

        (void)fprintf(out,
                      " %s%s",
                      m->rows[i]->forget ? "-" : "+",
                      name_of(bytes_of(actor->id.data, actor->id.len)));
    }
}

static inline void print_recall(const Rh__Recall *m)
{
    (void)fprintf(out, " RECALL");
    if (m->after.len > 0) {
        (void)fprintf(out, " after=%s", name_of(bytes_of(m->after.data, m->after.len)));
    }
}

static inline void print_control(int coordinator, struct bytes b)
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
        if (c->renew->seen > FLOOR) {
            (void)fprintf(out, " seen=%" PRIu64, c->renew->seen);
        }
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
    case RH__CONTROL__BODY_REMEMBER:
        print_remember(c->remember);
        break;
    case RH__CONTROL__BODY_RECALL:
        print_recall(c->recall);
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

static inline void print_request(struct reader *in)
{
    struct request_record r;

    assert_int_equal(request_get(in, &r), ERR_OK);
    (void)fprintf(out, "request %s session=%" PRIu64, name_of(r.id), r.session);
    (void)fprintf(out, " seq=%" PRIu64 " version=%" PRIu64, r.seq, r.version);
    (void)fprintf(out, " hops=%u%s", r.hops, (r.flags & REQUEST_HELD) != 0 ? " held" : "");
    (void)fprintf(out, "%s", r.again ? " again" : "");
    if (r.ttl_ms < 1000) { // a story that is about it
        (void)fprintf(out, " ttl=%u", r.ttl_ms);
    }
    print_body(r.body);
}

static inline void print_answer(struct reader *in)
{
    static const char *const codes[] = {
        "OK", "APP_ERROR", "MOVED", "BUSY", "COLD", "EXPIRED", "NO_KIND", "LOST", "OVERLOAD"};
    struct answer_record a;

    assert_int_equal(answer_get(in, &a), ERR_OK);
    (void)fprintf(out, "answer session=%" PRIu64 " seq=%" PRIu64, a.session, a.seq);
    if (a.copy > 1) {
        (void)fprintf(out, " copy=%u", a.copy);
    }
    (void)fprintf(out, " %s", codes[a.code]);
    if (a.aux != 0) {
        (void)fprintf(out, " aux=%" PRIu64, a.aux);
    }
    if (a.fence != 0) {
        (void)fprintf(out, " token=%" PRIu64, a.fence);
    }
    if (hops_kept_size > 0 && a.body.size == hops_kept_size) {
        print_hops(a.body);
    } else if (a.body.size > 0) {
        print_text("body", a.body);
    }
}

static inline void print_state(struct reader *in)
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

static inline void print_record(const struct host_effect *e, struct bytes b)
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
        (void)fputs(ack.refused == STATE_UNREAD ? " UNREAD" : ack.refused ? " REFUSED" : "", out);
    }
    assert_int_equal(in.left, 0);
    (void)fputc('\n', out);
}

static inline void print_disk(const struct host_effect *e)
{
    disk = *e->disk;
    (void)fprintf(out, "PERSIST %" PRIu64 ": active", e->ticket);
    for (size_t i = 0; i < e->disk->active_count; i++) {
        (void)fprintf(out, " %" PRIu64, e->disk->active[i]);
    }
    (void)fputc('\n', out);
}

static inline void print_actor(const char *what, const struct host_effect *e)
{
    note_actor(e->actor);
    (void)fprintf(out, "%s %s", what, name_of(actor_id(e->actor)));
    if (e->type == HOST_MAILBOX_FULL) {
        (void)fprintf(out, " refused=%" PRIu64, e->count);
    }
    (void)fputc('\n', out);
}

static inline void print_submission(const struct host_effect *e, struct bytes b)
{
    static const char *const verbs[] = {[VERB_ACTIVATE] = "ACTIVATE",
                                        [VERB_RUN] = "RUN",
                                        [VERB_TURN] = "TURN",
                                        [VERB_EXPORT] = "EXPORT",
                                        [VERB_COPY] = "COPY",
                                        [VERB_RETIRE] = "RETIRE",
                                        [VERB_UNFREEZE] = "UNFREEZE",
                                        [VERB_DISCARD] = "DISCARD"};
    static const char *const retired[] = {"idle", "room", "asked"};
    static const char *const discarded[] = {"moved", "stop", "fenced", "broken", "era"};
    const struct submission *s = &e->submission;

    note_actor(e->actor);
    (void)fprintf(out, "%s %s", verbs[s->verb], name_of(actor_id(e->actor)));
    if (s->verb == VERB_RUN) {
        print_body(submission_rest(s, b));
    }
    if (s->verb == VERB_RUN && s->asked != ASKED_FIRST) {
        (void)fprintf(out,
                      " %s=%" PRIu64 "/%" PRIu64,
                      s->asked == ASKED_LATE ? "late" : "again",
                      s->name.asker,
                      s->name.number);
    }
    if (s->verb == VERB_ACTIVATE) {
        (void)fprintf(out, " token=%" PRIu64, s->fence);
    }
    if (s->verb == VERB_ACTIVATE && s->head_size > 0) {
        print_text("bond", submission_head(s, b));
    }
    if (s->has_state) {
        print_text("state", submission_rest(s, b));
    }
    if (s->verb == VERB_ACTIVATE && s->state_version != 0) {
        (void)fprintf(out, " version=%" PRIu32, s->state_version);
    }
    if (s->verb == VERB_RETIRE) {
        (void)fprintf(out, " %s", retired[s->why]);
    }
    if (s->verb == VERB_DISCARD) {
        (void)fprintf(out, " %s", discarded[s->why]);
        if (s->why != DISCARD_BROKEN) {
            forget_actor(e->actor);
        }
    }
    (void)fputc('\n', out);
}

static inline void print_effect(const struct host_effect *e)
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
    case HOST_DROP_PEER:
        (void)fprintf(out, "DROP peer %" PRIu64 ": %s\n", e->peer, e->why);
        break;
    case HOST_PERSIST:
        print_disk(e);
        break;
    case HOST_SUBMIT:
        print_submission(e, b);
        break;
    case HOST_FORMER:
        print_actor("FORMER", e);
        break;
    case HOST_LIST:
        (void)fprintf(out, "LIST kinds=%zu\n", e->kind_count);
        break;
    case HOST_DUE:
        (void)fprintf(out, "DUE kind=%u now=%" PRIu64 "\n", e->kinds[0], e->count);
        break;
    case HOST_MAILBOX_FULL:
        print_actor("MAILBOX_FULL", e);
        break;
    case HOST_REGISTERED:
        (void)fprintf(out, "REGISTERED %" PRIu64 "\n", e->incarnation);
        break;
    case HOST_EXIT:
        (void)fprintf(out, "EXIT %d %s\n", e->code, e->why);
        break;
    }
}

#endif
