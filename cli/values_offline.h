/* SPDX-License-Identifier: Apache-2.0
 *
 * The values of one actor in a store that nobody else has open: read, and changed as its owner
 * would, by one commit under the fence that it had last.
 */
#ifndef CLI_VALUES_OFFLINE_H
#define CLI_VALUES_OFFLINE_H

#include "wire/control.pb-c.h"
#include "wire/values_ask.h"

struct values_offline;

enum { VALUES_OFFLINE_WHY_SIZE = 320 };

/* `store`: as `ringhold node --store` names it, or the path of a file. NULL: `why`. */
struct values_offline *values_offline_open(const char *store, const Rh__Actor *actor,
                                           char why[VALUES_OFFLINE_WHY_SIZE]);
void values_offline_close(struct values_offline *o);
/* Answer the question as an actor does; borrowed until the next. Empty: it could not be saved. */
struct bytes values_offline_ask(struct values_offline *o, const struct values_ask *ask);

#endif
