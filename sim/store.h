/* SPDX-License-Identifier: Apache-2.0
 *
 * The store of actors that keep their state outside: specification §4.5. One row an
 * entity; a write counts only with the token of the last claim.
 *
 *     actor --claim, some time--> row: token raised and state read, in one step --> actor
 *     actor --write, some time--> row: taken if the token is equal, else refused --> actor
 *
 * What is on its way arrives whatever becomes of the sender: that is what the
 * token is for.
 */
#ifndef SIM_STORE_H
#define SIM_STORE_H

#include <stdint.h>

struct fleet;
struct instance;

/* Ask for the entity's row; actors_claimed() is told. */
void store_claim(struct fleet *f, const struct instance *i);
/* Write what the instance has and `uid`; actors_wrote() is told. */
void store_write(struct fleet *f, const struct instance *i, uint64_t uid);

#endif
