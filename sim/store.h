/* SPDX-License-Identifier: Apache-2.0
 *
 * The store of durable actors in virtual time: specification §4.5. One row an entity, with the
 * fence of its owner and the number of its last commit; the tasks are the shipped ones
 * (storage/actors/store.h).
 *
 *     node --CLAIM, some time--> row: fence raised and values read, in one step --> node
 *     node --COMMIT, some time--> row: taken if fence and number fit, else refused --> node
 *
 * A node's tasks come in their order, and so do their results. What is on its way when its node
 * dies arrives all the same, or not. In some fleets the store crashes now and then, with nothing
 * lost: until it is back it can do nothing, and of the commit that it was about to do its owner may
 * never hear whether it was done.
 */
#ifndef SIM_STORE_H
#define SIM_STORE_H

#include "storage/actors/store.h"

#include <stdint.h>

struct fleet;
struct sim_node;

/* Take a task of the node's; sim_durable_stored() is told, if the node lives. */
void store_ask(struct fleet *f, struct sim_node *n, struct store_task *task);

/* Keys of values. An effect's is its place in the list, whose order keys have; one tells that the
 * actor lived. */
enum { STORE_PLACE_SIZE = 4 };

static inline void store_place_put(uint8_t key[STORE_PLACE_SIZE], size_t place)
{
    for (size_t i = 0; i < STORE_PLACE_SIZE; i++) {
        key[i] = (uint8_t)(place >> 8 * (STORE_PLACE_SIZE - 1 - i));
    }
}

static inline size_t store_place(const uint8_t *key)
{
    size_t place = 0;

    for (size_t i = 0; i < STORE_PLACE_SIZE; i++) {
        place = place << 8 | key[i];
    }
    return place;
}

#define STORE_BORN "born"

#endif
