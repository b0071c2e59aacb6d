/* SPDX-License-Identifier: Apache-2.0
 *
 * What leaves the machine: messages, and commands for the log, each with a record until it came
 * out.
 */
#include "txn/leader/inside.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/mutant.h"

#include <string.h>

enum { QUIET_MS = 50 }; /* no proposal so long after one failed */

void proposal_fini(struct proposal *p)
{
    mem_free(p->ops);
    control_free(p->operator_request);
    *p = (struct proposal){0};
}

bool proposals_take(struct coordinator *c, uint64_t tag, struct proposal *p)
{
    struct proposals *own = &c->proposals;
    size_t at = 0;

    while (at < own->count && own->item[at].tag != tag) {
        at++;
    }
    if (at == own->count) {
        return false;
    }
    *p = own->item[at];
    own->count--;
    memmove(&own->item[at], &own->item[at + 1], (own->count - at) * sizeof *own->item);
    return true;
}

uint64_t proposals_next_tag(struct coordinator *c)
{
    return ++c->proposals.last_tag;
}

void proposals_pause(struct coordinator *c)
{
    c->proposals.quiet_us = c->now_us + (uint64_t)QUIET_MS * 1000;
}

void proposals_forget(struct coordinator *c)
{
    for (size_t i = 0; i < c->proposals.count; i++) {
        proposal_fini(&c->proposals.item[i]);
    }
    c->proposals.count = 0;
    c->proposals.quiet_us = 0;
}

void proposals_fini(struct coordinator *c)
{
    mem_free(c->proposals.item);
}

void coordinator_put(struct coordinator *c, enum coordinator_effect_type type, uint64_t tag,
                     size_t at)
{
    struct coordinator_effects *out = c->out;

    if (out->count == out->cap) {
        out->cap = out->cap == 0 ? 16 : 2 * out->cap;
        out->item = mem_resize(out->item, out->cap * sizeof *out->item);
    }
    out->item[out->count++] = (struct coordinator_effect){
        .type = type,
        .tag = type == COORDINATOR_SEND ? 0 : tag,
        .peer = type == COORDINATOR_SEND ? tag : 0,
        .at = at,
        .size = out->bytes.size - at,
    };
}

void coordinator_put_send(struct coordinator *c, uint64_t peer, const Rh__Control *message)
{
    const size_t at = c->out->bytes.size;

    control_put(&c->out->bytes, message);
    coordinator_put(c, COORDINATOR_SEND, peer, at);
}

void coordinator_put_again(struct coordinator *c, uint64_t peer)
{
    const struct coordinator_effect *last = &c->out->item[c->out->count - 1];
    const size_t at = last->at;

    ASSERT(last->type == COORDINATOR_SEND && at + last->size == c->out->bytes.size);
    coordinator_put(c, COORDINATOR_SEND, peer, at);
}

/* It draws a number, or decides what was perhaps decided before. */
static bool draws(enum proposal_kind kind)
{
    return kind != PROPOSAL_INIT && kind != PROPOSAL_VOTER && kind != PROPOSAL_LEASE &&
           kind != PROPOSAL_SETTLE && kind != PROPOSAL_NOTE && kind != PROPOSAL_REPAIR &&
           kind != PROPOSAL_OPERATOR_REQUEST && kind != PROPOSAL_PIN && kind != PROPOSAL_REMEMBER &&
           kind != PROPOSAL_FORGET;
}

struct proposal *coordinator_propose(struct coordinator *c, enum proposal_kind kind,
                                     Rh__Command *command)
{
    struct proposals *own = &c->proposals;
    size_t at;

    // One of the past draws no number: with a greater version its old ring would be taken (hole
    // 54).
    if (!c->leading || c->now_us < own->quiet_us || past_found(c) ||
        (draws(kind) && past_unsure(c))) {
        return NULL;
    }
    // Whoever reads only older formats must never find it in the log.
    ASSERT(IMPLIES(command->body_case == RH__COMMAND__BODY_AHEAD,
                   c->state->format >= FLEET_FORMAT_AHEAD));
    ASSERT(IMPLIES(command->body_case == RH__COMMAND__BODY_PIN ||
                       command->body_case == RH__COMMAND__BODY_REMEMBER,
                   c->state->format >= FLEET_FORMAT_PLACEMENT));
    command->time_us = c->wall_us;
    command->proposer = c->config.id;
    if (mutant(M_LOCALNUM) && command->body_case == RH__COMMAND__BODY_BEGIN) {
        planted_localnum(c, command->begin);
    }
    at = c->out->bytes.size;
    command_put(&c->out->bytes, command);
    coordinator_put(c, COORDINATOR_PROPOSE, proposals_next_tag(c), at);
    own->item = mem_resize(own->item, (own->count + 1) * sizeof *own->item);
    own->item[own->count] = (struct proposal){.kind = kind, .tag = own->last_tag};
    return &own->item[own->count++];
}

struct proposal *coordinator_propose_note(struct coordinator *c, enum proposal_kind kind,
                                          const struct history_note *note)
{
    Rh__Command command = RH__COMMAND__INIT;
    Rh__CommandNote body = RH__COMMAND_NOTE__INIT;

    body.subject = proto_text(note->subject);
    body.what = proto_text(note->what);
    body.action = proto_text(note->action);
    command.body_case = RH__COMMAND__BODY_NOTE;
    command.note = &body;
    command.by = proto_text(note->by);
    command.reason = proto_text(note->reason);
    return coordinator_propose(c, kind, &command);
}

static bool is_about(const struct proposal *p, uint64_t about)
{
    switch (p->kind) {
    case PROPOSAL_INIT:
    case PROPOSAL_LEASE:
    case PROPOSAL_SETTLE:
    case PROPOSAL_NOTE:
    case PROPOSAL_OPERATOR_REQUEST:
    case PROPOSAL_REPAIR:
    case PROPOSAL_DAEMONS:
    case PROPOSAL_QUARANTINE:
    case PROPOSAL_PIN:
    case PROPOSAL_FORGET:
    case PROPOSAL_FORMAT:
    case PROPOSAL_AHEAD:
        return true;
    case PROPOSAL_REGISTER:
        return p->nonce == about;
    case PROPOSAL_BEGIN:
    case PROPOSAL_DECIDE:
        return p->txn == about;
    case PROPOSAL_DESIRE:
    case PROPOSAL_FENCE:
    case PROPOSAL_REMEMBER:
    case PROPOSAL_REASSIGN:
    case PROPOSAL_DEREGISTER:
    case PROPOSAL_VOTER:
        return p->slot == about;
    }
    UNREACHABLE();
}

const struct proposal *coordinator_proposal(const struct coordinator *c, enum proposal_kind kind,
                                            uint64_t about)
{
    for (size_t i = 0; i < c->proposals.count; i++) {
        if (c->proposals.item[i].kind == kind && is_about(&c->proposals.item[i], about)) {
            return &c->proposals.item[i];
        }
    }
    return NULL;
}
