/* SPDX-License-Identifier: Apache-2.0
 *
 * A list of moves, as a program writes it: [{"vnode":7,"node":"n2"}, …].
 */
#ifndef CLI_MOVE_LIST_H
#define CLI_MOVE_LIST_H

#include "wire/control.pb-c.h"

#include <stdbool.h>

/* Read it from a file; "-": from stdin. Fills `moves`, which move_list_free() frees, also after an
 * error. False after printing what is wrong, and where. */
bool move_list_read(const char *path, Rh__AdminMove *moves);
void move_list_free(Rh__AdminMove *moves);

/* Append one move; the name is copied. */
void move_list_add(Rh__AdminMove *moves, uint32_t vnode, const char *node);

#endif
