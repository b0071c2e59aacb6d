/* SPDX-License-Identifier: Apache-2.0
 *
 * Asks the remembered kinds for the ids that must be alive (rh_actor_ops.list),
 * each on a thread of its own, for it may block on a store.
 *
 *     IDLE -ask-> RUNNING -it returned-> GIVING ids to the host, some each turn -> IDLE
 *     RUNNING -asked meanwhile-> asked again when it is through;  it failed -> again a second later
 */
#ifndef NODE_LISTER_UV_H
#define NODE_LISTER_UV_H

#include "base/bytes.h"
#include "node/worker/kinds.h"

struct lister;

/* `on_listed`: from any thread, lister_take() has something. Kinds are borrowed. */
struct lister *lister_new(const struct kinds *kinds, void (*on_listed)(void *context),
                          void *context);
/* Ask this kind, soon. */
void lister_ask(struct lister *l, uint16_t kind, uint64_t now_us);
/* Ask the kinds that are due; every 10..50 ms. */
void lister_tick(struct lister *l, uint64_t now_us);
/* The next id that was told, borrowed until the next call; false = none now. */
bool lister_take(struct lister *l, uint64_t now_us, uint16_t *kind, struct bytes *id);
/* Wait for what runs, until then at most, and free it. False: a list callback is stuck, and what it
 * may touch has to stay, the kinds included. Takes NULL. */
bool lister_close(struct lister *l, uint64_t until_us);

#endif
