/* SPDX-License-Identifier: Apache-2.0
 *
 * The program that `ringhold conform client` tests: started, typed to, and heard line by line.
 */
#ifndef CONFORM_TESTED_H
#define CONFORM_TESTED_H

#include "base/bytes.h"

#include <stdbool.h>
#include <sys/types.h>

enum { TESTED_LINES_MAX = 4096 };

struct tested {
    pid_t pid;
    int in;  /* what is typed; -1: no more is */
    int out; /* what it says; -1: it says no more */
    struct buffer text;
    char *line[TESTED_LINES_MAX]; /* owned; NULL: it was taken */
    size_t count;
};

/* Start `program`, a list of words that ends with NULL, found by PATH. False: errno says why. */
bool tested_start(struct tested *t, char *const *program);

/* Write a line to its stdin. */
void tested_type(struct tested *t, const char *line);

/* Read what it has said; call it when `out` can be read. A line's blanks in a row become one. */
void tested_read(struct tested *t);

/* End its stdin. */
void tested_ends_input(struct tested *t);

/* Wait up to 10 s for its end when `out` is -1, kill it else, and free all. Returns its exit code,
 * -1 = a signal. */
int tested_fini(struct tested *t);

#endif
