/* SPDX-License-Identifier: Apache-2.0
 *
 * Named places at which a crash test kills this process, in a build with
 * INJECT=1; in any other the calls are empty.
 *
 *     RINGHOLD_INJECT=NAME[:N]     in the environment: die there, the Nth time
 *     RINGHOLD_INJECT_ONCE=FILE    only the first process to make that file dies
 *     RINGHOLD_INJECT_FILE=FILE    NAME[:N] stands in FILE, may be written at any time,
 *                                  and goes with the process that dies of it
 *
 *     RINGHOLD_INJECT_LOSE=FILE    frames whose places stand in FILE, one a line, are lost;
 *                                  FILE may come, change and go at any time
 *
 * A place is a step of the coordinator (begin-applied, commit-proposed, …) or a
 * frame of any process: MESSAGE-sent, MESSAGE-received, with the names of
 * wire/control.proto (prepare, prepared, commit, cancel, poll, grant, …) and
 * request, answer, state, state_ack; requests and answers of streams likewise, of
 * which what leaves is lost with its link. A process dies of what it sent when the
 * frame has left. Of COMMITs only those that move vnodes count.
 *
 * Some places are faults to plant (spoil-ring, stray): the process does not die
 * of them, inject_asked() says that its time has come.
 */
#ifndef LINK_INJECT_H
#define LINK_INJECT_H

#include "base/bytes.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef RINGHOLD_INJECT
/* Kill this process with SIGKILL if this place is named. */
void inject_point(const char *name);
/* A frame came in, or is about to leave (`type`: enum frame_type). True: lose it. */
bool inject_frame(bool sent, uint8_t type, struct bytes body);
/* True, once, when that fault is named. */
bool inject_asked(const char *name);
/* Begin a new turn of the loop: what was sent in the last one has left. */
void inject_turn(void);
#else
static inline void inject_point(const char *name)
{
    (void)name;
}
static inline bool inject_frame(bool sent, uint8_t type, struct bytes body)
{
    (void)sent;
    (void)type;
    (void)body;
    return false;
}
static inline bool inject_asked(const char *name)
{
    (void)name;
    return false;
}
static inline void inject_turn(void)
{
}
#endif

#endif
