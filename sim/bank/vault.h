/* SPDX-License-Identifier: Apache-2.0
 *
 * What a store has of one durable actor, in virtual time: its five tables, the fence of its owner
 * and the number of its last commit (storage/actors/store.h). How it gets there is sim/store.h's.
 */
#ifndef SIM_BANK_VAULT_H
#define SIM_BANK_VAULT_H

#include "node/durable/values.h"
#include "storage/actors/changes.h"
#include "storage/actors/store.h"

/* All zero but for vault_init(). */
struct vault {
    uint64_t fence;
    uint64_t number;
    struct named_values table[CHANGE_COUNT]; /* bytes of an alarm: its times first */
};

void vault_init(struct vault *v);
void vault_fini(struct vault *v);

/* The row of that key. False: there is none. */
bool vault_get(const struct vault *v, enum change_of of, struct bytes key,
               struct store_change *out);
/* The first row whose key is greater. */
bool vault_next(const struct vault *v, enum change_of of, struct bytes after,
                struct store_change *out);

/* Do a claim. */
void vault_claim(struct vault *v, struct store_task *t);
/* May this commit be done? */
bool vault_takes(const struct vault *v, const struct store_task *t);
/* Do it. */
void vault_commit(struct vault *v, const struct store_task *t);
/* The line to the store broke amidst this commit: say what became of it, and see to it that it is
 * done later no more (decision 086). */
enum store_result vault_settle(struct vault *v, const struct store_task *t);

#endif
