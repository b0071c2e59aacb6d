/* SPDX-License-Identifier: Apache-2.0
 *
 * Gateways tell which actors of a dead node left their requests unanswered. The
 * actors get their strikes in the REASSIGN of the node's vnodes, so that no new
 * owner runs them before it knows of the strikes.
 */
#include "txn/leader/inside.h"

#include "base/mem.h"
#include "txn/state/suspect.h"
#include "wire/versions.h"

void unanswered_told(struct coordinator *c, struct leader_peer *peer, Rh__Unanswered *const *told,
                     size_t count)
{
    unanswered_read(&peer->unanswered, told, count);
    peer->unanswered_us = c->now_us;
}

static const struct unanswered_node *find(const struct leader_peer *peer, uint64_t incarnation)
{
    for (size_t i = 0; i < peer->unanswered.count; i++) {
        if (peer->unanswered.node[i].incarnation == incarnation) {
            return &peer->unanswered.node[i];
        }
    }
    return NULL;
}

/* False: the node was heard of after this was told, so only a link broke then, and nobody died. */
static bool is_of_the_death(const struct coordinator *c, const struct leader_peer *peer,
                            const struct state_node *node)
{
    const struct seen *seen = peers_seen(c, node);

    return seen == NULL || peer->unanswered_us >= seen->heard_us;
}

static void add(Rh__Suspect **list, size_t *count, const struct unanswered_actor *a)
{
    for (size_t i = 0; i < *count; i++) {
        struct unanswered_actor other;

        if (unanswered_read_suspect(&other, list[i]) &&
            quarantine_compare(&other.actor, &a->actor) == 0) {
            list[i]->before = other.before != 0 ? other.before : a->before;
            return;
        }
    }
    list[(*count)++] = unanswered_suspect(a);
}

/* Takes one actor of each gateway's list at a time, the oldest first, so that no gateway's list can
 * keep out those of the others. */
Rh__Suspect **unanswered_suspects(struct coordinator *c, const struct state_node *node,
                                  size_t *count)
{
    // NOLINTNEXTLINE(bugprone-sizeof-expression): an array of pointers
    Rh__Suspect **list = mem_new(SUSPECTS_UNANSWERED_MAX, sizeof *list);

    *count = 0;
    for (size_t turn = 0; turn < UNANSWERED_ACTORS_MAX && c->state->format >= FLEET_FORMAT_STRIKES;
         turn++) {
        for (size_t i = 0; i < c->peers.count && *count < SUSPECTS_UNANSWERED_MAX; i++) {
            const struct unanswered_node *n = find(c->peers.item[i], node->incarnation);

            if (n != NULL && turn < n->count && is_of_the_death(c, c->peers.item[i], node)) {
                add(list, count, &n->actor[turn]);
            }
        }
    }
    return list;
}
