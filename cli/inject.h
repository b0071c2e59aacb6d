/* SPDX-License-Identifier: Apache-2.0
 *
 * Named places at which a crash test kills this process: RINGHOLD_INJECT=NAME
 * or NAME:N (the Nth time) in the environment of a build with INJECT=1. With
 * RINGHOLD_INJECT_ONCE=FILE only the first process to make that file dies. Only
 * transactions that move vnodes count. Other builds ignore both: the calls are
 * empty.
 */
#ifndef CLI_INJECT_H
#define CLI_INJECT_H

#include "base/bytes.h"

#ifdef RINGHOLD_INJECT
/* kill -9 myself if the environment names this place. */
void inject_point(const char *name);
/* The place "NAME-sent", NAME from the packed Control in `message`; the kill comes at the next
 * inject_turn(), when the frame has left. */
void inject_sent(struct bytes message);
void inject_turn(void);
#else
static inline void inject_point(const char *name)
{
    (void)name;
}
static inline void inject_sent(struct bytes message)
{
    (void)message;
}
static inline void inject_turn(void)
{
}
#endif

#endif
