/* SPDX-License-Identifier: Apache-2.0
 *
 * Is this database one of the past? Put back as a whole its files agree with each other, and only
 * others can tell: a registered node knows a number that was never drawn here (hole 54). Asked of
 * what came before a barrier of my own, so that it is no newer leader who drew it.
 */
#include "txn/leader/inside.h"

#include "base/log.h"
#include "base/mutant.h"
#include "base/stamp.h"

#include <string.h>

/* The newest ring that its sender has, or had. */
static uint64_t version_of(const Rh__Control *message)
{
    const uint64_t told = message->body_case == RH__CONTROL__BODY_RENEW ? message->renew->version
                          : message->body_case == RH__CONTROL__BODY_GET_CONFIG
                              ? message->get_config->have_version
                              : 0;

    return told > message->version ? told : message->version;
}

/* The greatest number of a transaction that its sender saw, or waits for. */
static uint64_t number_of(const Rh__Control *message)
{
    const bool told = message->body_case == RH__CONTROL__BODY_RENEW && !mutant(M_SEENUNTOLD);
    uint64_t highest = told ? message->renew->seen : 0;

    for (size_t i = 0; message->body_case == RH__CONTROL__BODY_POLL && i < message->poll->n_txns;
         i++) {
        highest = message->poll->txns[i] > highest ? message->poll->txns[i] : highest;
    }
    return highest;
}

enum { SAY_AGAIN_US = 60 * 1000 * 1000 }; /* a liar's greater and greater numbers fill no log */

static bool leases_are_over(const struct coordinator *c)
{
    return (c->now_us >= c->past.born_us + lease_wait_us(c) && c->now_us >= c->fence.told_us) ||
           lease_longest_us(c) == 0;
}

void past_note(struct coordinator *c, enum past_teller teller, const char *name, uint64_t knows)
{
    static const struct {
        const char *role;
        const char *effect;
    } of[] = {
        [PAST_NODE] = {"node", "no changes, registrations, or leases for nodes that know more"},
        [PAST_GATEWAY] = {"gateway", "no changes before the leases of this start are over"},
    };
    struct past_word *word = &c->past.word[teller];

    word->told++;
    if (knows <= word->newer) {
        return;
    }
    word->newer = knows;
    if (word->said_us != 0 && c->now_us - word->said_us < SAY_AGAIN_US) {
        return;
    }
    word->said_us = c->now_us;
    log_error(
        "txn",
        "database_went_back",
        "%s=%s knows=%s number=%s effect=\"%s\" reason=\"an older copy of the folder was put "
        "back\" remedy=\"stop the coordinators and restore again (docs/recovery.md#went-back)\"",
        of[teller].role,
        name,
        STAMP(knows),
        STAMP(c->state->number),
        of[teller].effect);
}

struct drawn past_drawn(const struct coordinator *c)
{
    return (struct drawn){.version = c->state->view.ring.version, .number = c->state->number};
}

bool past_knows_more(const struct drawn *drawn, const Rh__Control *message)
{
    const bool tells = message->body_case == RH__CONTROL__BODY_RENEW ||
                       message->body_case == RH__CONTROL__BODY_POLL ||
                       message->body_case == RH__CONTROL__BODY_GET_CONFIG;

    return tells && (version_of(message) > drawn->version || number_of(message) > drawn->number);
}

bool past_shows(struct coordinator *c, struct leader_peer *peer, const Rh__Control *message,
                const struct drawn *drawn)
{
    const struct drawn now = past_drawn(c);
    const struct state_node *node = peers_node(c, peer, message->source_incarnation);
    const uint64_t version = version_of(message);
    const uint64_t number = number_of(message);

    if (mutant(M_OLDCOPY)) {
        return false;
    }
    if (!past_knows_more(mutant(M_JUDGEDLATE) ? &now : drawn, message)) {
        if (node != NULL && message->body_case == RH__CONTROL__BODY_RENEW) {
            past_denied(c, node);
        }
        return false;
    }
    past_note(c,
              peer->role == ROLE_GATEWAY ? PAST_GATEWAY : PAST_NODE,
              peer->name,
              version > number ? version : number);
    if (node != NULL) {
        struct seen *seen = peers_heard(c, node); // alive, and not to be fenced by who knows less

        if (message->body_case == RH__CONTROL__BODY_RENEW) {
            register_note(seen, message->renew);
        }
    }
    return true;
}

static bool told(const struct coordinator *c, enum past_teller teller)
{
    const uint64_t newer = c->past.word[teller].newer;

    return newer != 0 && newer >> STATE_NUMBER_BITS >= c->state->view.era;
}

bool past_stays(const struct coordinator *c)
{
    return told(c, PAST_NODE);
}

bool past_found(const struct coordinator *c)
{
    return past_stays(c) || (told(c, PAST_GATEWAY) && !leases_are_over(c));
}

void past_denied(struct coordinator *c, const struct state_node *node)
{
    c->past.denied[node->slot] = node->incarnation;
}

/* Where no node is registered none can deny it: the copy may be older than the first one. */
static bool all_denied(const struct coordinator *c)
{
    bool asked = false;

    for (size_t i = 0; i < c->state->node_count; i++) {
        const struct state_node *node = &c->state->node[i];

        if (!node->barred && c->past.denied[node->slot] != node->incarnation) {
            return false;
        }
        asked = asked || !node->barred;
    }
    return asked || mutant(M_UNASKED);
}

/* After a restore the wait for the leases of before, hole 52, and this one cover each other. */
static bool is_planted(void)
{
    return mutant(M_TOOSURE) || mutant(M_OLDCOPY) || mutant(M_RESTORE);
}

bool past_unsure(struct coordinator *c)
{
    if (!c->past.sure &&
        (!c->state->begun || leases_are_over(c) || all_denied(c) || is_planted())) {
        c->past.sure = c->state->begun;
        return false;
    }
    return !c->past.sure;
}

void past_born(struct coordinator *c)
{
    c->past.born_us = c->now_us;
}

void past_founded(struct coordinator *c)
{
    c->past.sure = true;
}

void past_forget(struct coordinator *c)
{
    memset(c->past.denied, 0, sizeof c->past.denied);
}
