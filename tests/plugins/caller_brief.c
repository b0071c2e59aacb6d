/* SPDX-License-Identifier: Apache-2.0
 *
 * The caller, of a kind that says that it is brief. For bench/calls.
 */
#define CALLER_BRIEF 1

#include "tests/plugins/caller.c" // NOLINT: the same actor
