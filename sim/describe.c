/* SPDX-License-Identifier: Apache-2.0
 *
 * Puts control messages into words, for --trace.
 */
#include "sim/describe.h"

#include <stdio.h>

static char text[160];

#define SAY(...) (void)snprintf(text, sizeof text, __VA_ARGS__)
#define N(x)     ((unsigned long long)(x))

static void describe_from_node(const Rh__Control *m)
{
    switch ((int)m->body_case) {
    case RH__CONTROL__BODY_REGISTER_:
        SAY("REGISTER nonce %llx, seen %llu, %zu active",
            N(m->register_->nonce),
            N(m->register_->disk_seen),
            m->register_->n_disk_active);
        break;
    case RH__CONTROL__BODY_RENEW:
        SAY("RENEW version %llu%s", N(m->renew->version), m->renew->stopping ? ", stopping" : "");
        break;
    case RH__CONTROL__BODY_POLL:
        SAY("POLL %zu, first %llu", m->poll->n_txns, N(m->poll->n_txns ? m->poll->txns[0] : 0));
        break;
    case RH__CONTROL__BODY_PREPARED:
        SAY("PREPARED %llu, %llu actors", N(m->prepared->txn), N(m->prepared->actors));
        break;
    case RH__CONTROL__BODY_REFUSED:
        SAY("REFUSED %llu: %s", N(m->refused->txn), m->refused->why);
        break;
    case RH__CONTROL__BODY_STALE:
        SAY("STALE %llu", N(m->stale->txn));
        break;
    case RH__CONTROL__BODY_DRAINING:
        SAY("DRAINING %llu, %u busy", N(m->draining->txn), m->draining->busy);
        break;
    case RH__CONTROL__BODY_GET_CONFIG:
        SAY("GET_CONFIG have %llu", N(m->get_config->have_version));
        break;
    case RH__CONTROL__BODY_ADOPTED:
        SAY("ADOPTED %llu", N(m->adopted->version));
        break;
    case RH__CONTROL__BODY_PROBE:
        SAY("PROBE along %llu/%llu, %u hops",
            N(m->probe->call == NULL ? 0 : m->probe->call->session),
            N(m->probe->call == NULL ? 0 : m->probe->call->seq),
            m->probe->hops);
        break;
    case RH__CONTROL__BODY_REMEMBER:
        SAY("REMEMBER %llu, %zu rows", N(m->remember->number), m->remember->n_rows);
        break;
    case RH__CONTROL__BODY_RECALL:
        SAY("RECALL of kind %u", m->recall->kind);
        break;
    case RH__CONTROL__BODY_SETTLE:
        SAY("SETTLE %llx", N(m->settle->session));
        break;
    case RH__CONTROL__BODY_SETTLED:
        SAY("SETTLED %llx", N(m->settled->session));
        break;
    default:
        SAY("message %d", (int)m->body_case);
        break;
    }
}

const char *describe_control(const Rh__Control *m)
{
    switch ((int)m->body_case) {
    case RH__CONTROL__BODY_REG_OK:
        SAY("REG_OK incarnation %llu, slot %u, floor %llu, %zu pending",
            N(m->reg_ok->incarnation),
            m->reg_ok->slot,
            N(m->reg_ok->floor),
            m->reg_ok->n_pending);
        break;
    case RH__CONTROL__BODY_REG_REFUSED:
        SAY("REG_REFUSED %s%s", m->reg_refused->reason, m->reg_refused->fatal ? ", fatal" : "");
        break;
    case RH__CONTROL__BODY_GRANT:
        SAY("GRANT version %llu%s%s, lease %llu%s",
            N(m->grant->version),
            m->grant->leave ? ", leave" : "",
            m->grant->last ? ", last" : "",
            N(m->grant->lease_us),
            m->grant->instead ? " instead" : "");
        break;
    case RH__CONTROL__BODY_BARRED:
        SAY("BARRED %s", m->barred->why);
        break;
    case RH__CONTROL__BODY_PREPARE:
        SAY("PREPARE %llu, base %llu, supersedes %llu, %zu arcs, first %s",
            N(m->prepare->txn),
            N(m->prepare->base_version),
            N(m->prepare->supersedes),
            m->prepare->n_arcs,
            m->prepare->n_arcs > 0 && m->prepare->arcs[0]->out ? "out" : "in");
        break;
    case RH__CONTROL__BODY_COMMIT:
        SAY("COMMIT %llu: version %llu to %llu",
            N(m->commit->txn),
            N(m->commit->delta == NULL ? 0 : m->commit->delta->prev_version),
            N(m->commit->delta == NULL ? 0 : m->commit->delta->version));
        break;
    case RH__CONTROL__BODY_CANCEL:
        SAY("CANCEL %llu: %s", N(m->cancel->txn), m->cancel->why);
        break;
    case RH__CONTROL__BODY_POLL_ANSWER:
        SAY("POLL_ANSWER version %llu, first %llu %s",
            N(m->poll_answer->version),
            N(m->poll_answer->n_txns > 0 ? m->poll_answer->txns[0]->txn : 0),
            m->poll_answer->n_txns > 0 && m->poll_answer->txns[0]->pending ? "pending" : "over");
        break;
    case RH__CONTROL__BODY_CONFIG:
        SAY("CONFIG version %llu, %s, %zu deltas",
            N(m->config->version),
            m->config->config == NULL ? "no whole" : "whole",
            m->config->n_deltas);
        break;
    case RH__CONTROL__BODY_LEADER:
        SAY("LEADER %s term %llu, leader %u",
            m->leader->leading ? "me," : "",
            N(m->leader->term),
            m->leader->id);
        break;
    case RH__CONTROL__BODY_NOT_LEADER:
        SAY("NOT_LEADER");
        break;
    case RH__CONTROL__BODY_ADMIN:
        SAY("ADMIN %llu", N(m->admin->tag));
        break;
    case RH__CONTROL__BODY_ADMIN_REPLY:
        SAY("ADMIN_REPLY %llu: %s", N(m->admin_reply->tag), m->admin_reply->error);
        break;
    default:
        describe_from_node(m);
        break;
    }
    return text;
}
