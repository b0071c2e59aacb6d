/* SPDX-License-Identifier: Apache-2.0
 *
 * ASSERT: a statement about our own code that must be true. On in every build.
 *
 * It is for mistakes of ours only. What a peer, a disk or a user may do wrong
 * is an `enum err`, never an ASSERT.
 */
#ifndef BASE_ASSERT_H
#define BASE_ASSERT_H

#define ASSERT(cond) ((cond) ? (void)0 : assert_failed(#cond, __FILE__, __LINE__, __func__))

/* If `a` holds then `b` must: ASSERT(IMPLIES(m->role == LEADER, m->term > 0)). */
#define IMPLIES(a, b) (!(a) || (b))

#define UNREACHABLE() assert_failed("unreachable", __FILE__, __LINE__, __func__)

/* Print where and what, then abort(). */
_Noreturn void assert_failed(const char *what, const char *file, int line, const char *func);

#endif
