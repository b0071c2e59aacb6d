/* SPDX-License-Identifier: Apache-2.0
 *
 * Alarms as members of a sorted set, whose order by bytes is that of ids and then names:
 *
 *     id, each 00 of it as 00 01;  00 00;  name
 *
 * Pure.
 */
#ifndef STORAGE_ACTORS_REMOTE_DUE_MEMBER_H
#define STORAGE_ACTORS_REMOTE_DUE_MEMBER_H

#include "storage/actors/due.h"

/* Append what all members of an actor begin with; its names follow. */
void due_member_put(struct buffer *out, struct bytes id);
/* Split a member: `id` is filled, the name borrows. False: it is none, or over the limits. */
bool due_member_split(struct bytes member, struct buffer *id, struct bytes *name);

#endif
