/* SPDX-License-Identifier: Apache-2.0
 *
 * Colour for people: only on a terminal, and not if NO_COLOR is set or TERM is
 * "dumb" (https://no-color.org).
 */
#ifndef CLI_PAINT_H
#define CLI_PAINT_H

enum paint { PAINT_NONE, PAINT_HEAD, PAINT_GOOD, PAINT_DOUBT, PAINT_BAD };

/* Escape sequences that go before a text on stdout and after it; "" where there is to be no colour.
 */
const char *paint_on(enum paint paint);
const char *paint_off(enum paint paint);

/* Return how a word that a table may show is meant: "live", "fenced", "problem" … */
enum paint paint_of_word(const char *word);

#endif
