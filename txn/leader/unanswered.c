/* SPDX-License-Identifier: Apache-2.0
 *
 * Whom dead nodes were asked for, as others tell: its actors are struck with the
 * REASSIGN of its vnodes, so that nobody runs them between the two.
 */
#include "txn/leader/inside.h"

#include "base/mem.h"
#include "txn/state/suspect.h"
#include "wire/versions.h"

void unanswered_told(struct coordinator *c, struct peer *peer, Rh__Unanswered *const *told,
                     size_t count)
{
    unanswered_read(&peer->unanswered, told, count);
    peer->unanswered_us = c->now_us;
}

static const struct unanswered_node *find(const struct peer *peer, uint64_t incarnation)
{
    for (size_t i = 0; i < peer->unanswered.count; i++) {
        if (peer->unanswered.node[i].incarnation == incarnation) {
            return &peer->unanswered.node[i];
        }
    }
    return NULL;
}

/* Its link may have broken while the node went on. */
static bool is_of_the_death(const struct coordinator *c, const struct peer *peer,
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

/* By turns, those first that each asked first: nobody's list keeps out the others'. */
Rh__Suspect **unanswered_suspects(struct coordinator *c, const struct state_node *node,
                                  size_t *count)
{
    // NOLINTNEXTLINE(bugprone-sizeof-expression): an array of pointers
    Rh__Suspect **list = mem_new(SUSPECTS_UNANSWERED_MAX, sizeof *list);

    *count = 0;
    for (size_t turn = 0; turn < UNANSWERED_ACTORS_MAX && c->state->format >= FLEET_FORMAT_STRIKES;
         turn++) {
        for (size_t i = 0; i < c->peer_count && *count < SUSPECTS_UNANSWERED_MAX; i++) {
            const struct unanswered_node *n = find(c->peer[i], node->incarnation);

            if (n != NULL && turn < n->count && is_of_the_death(c, c->peer[i], node)) {
                add(list, count, &n->actor[turn]);
            }
        }
    }
    return list;
}
