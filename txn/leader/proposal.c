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

void coordinator_drop_proposal(struct coordinator *c, size_t at)
{
    mem_free(c->proposal[at].ops);
    control_free(c->proposal[at].operator_request);
    c->proposal_count--;
    memmove(&c->proposal[at], &c->proposal[at + 1], (c->proposal_count - at) * sizeof *c->proposal);
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

struct proposal *coordinator_propose(struct coordinator *c, enum proposal_kind kind,
                                     Rh__Command *command)
{
    size_t at;

    // One of the past draws no number: with a greater version its old ring would be taken (hole
    // 54).
    if (!c->leading || c->now_us < c->quiet_us || past_found(c)) {
        return NULL;
    }
    // Whoever reads only older formats must never find it in the log.
    ASSERT(IMPLIES(command->body_case == RH__COMMAND__BODY_AHEAD,
                   c->state->format >= FLEET_FORMAT_AHEAD));
    command->time_us = c->wall_us;
    command->proposer = c->config.id;
    if (mutant(M_LOCALNUM) && command->body_case == RH__COMMAND__BODY_BEGIN) {
        planted_localnum(c, command->begin);
    }
    at = c->out->bytes.size;
    command_put(&c->out->bytes, command);
    coordinator_put(c, COORDINATOR_PROPOSE, ++c->last_tag, at);
    c->proposal = mem_resize(c->proposal, (c->proposal_count + 1) * sizeof *c->proposal);
    c->proposal[c->proposal_count] = (struct proposal){.kind = kind, .tag = c->last_tag};
    return &c->proposal[c->proposal_count++];
}

struct proposal *coordinator_propose_note(struct coordinator *c, enum proposal_kind kind,
                                          const struct history_note *note)
{
    Rh__Command command = RH__COMMAND__INIT;
    Rh__CommandNote body = RH__COMMAND_NOTE__INIT;

    body.subject = proto_text(note->subject);
    body.what = proto_text(note->what);
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
    for (size_t i = 0; i < c->proposal_count; i++) {
        if (c->proposal[i].kind == kind && is_about(&c->proposal[i], about)) {
            return &c->proposal[i];
        }
    }
    return NULL;
}

size_t coordinator_proposal_at(const struct coordinator *c, uint64_t tag)
{
    size_t at = 0;

    while (at < c->proposal_count && c->proposal[at].tag != tag) {
        at++;
    }
    return at;
}
