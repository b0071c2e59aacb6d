/* SPDX-License-Identifier: Apache-2.0
 *
 * What is wrong with the values of a daemon's keys, taken together, and where in its
 * file those keys stand. A fault of one line alone is said by daemon/options_file.c.
 */
#ifndef DAEMON_FAULT_H
#define DAEMON_FAULT_H

#include "daemon/options.h"

/* Name the places of the keys that later messages of this thread are about, until it is called with
 * NULL. Borrowed. */
void fault_places(const struct option_places *places);

/* "ringhold DAEMON: FILE:LINE: text" to stderr: the places are those of each --key that the text
 * names and the file set. Any thread. */
void fault_print(const char *daemon, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
