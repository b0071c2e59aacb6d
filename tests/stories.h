/* SPDX-License-Identifier: Apache-2.0
 *
 * Stories: files tests/story/MACHINE/NAME.txt of blocks "command, ----, what happened,
 * an empty line", and of lines that begin with "# ". A test plays the commands;
 * what happens has to be what is written. REWRITE=1 writes what happened.
 */
#ifndef TESTS_STORIES_H
#define TESTS_STORIES_H

#include "tests/test.h"

#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct stories {
    void (*begin)(const char *file); /* of one story; may be NULL */
    /* Do what the line says; print to `out` what happens. It may change the line. */
    void (*play)(char *line, FILE *out);
    void (*end)(void); /* may be NULL */
};

/* The whole file with every expected part replaced by what happened; owned. */
static inline char *story_replay(const struct stories *s, FILE *in)
{
    char *text = NULL;
    size_t size = 0;
    char line[2048];
    bool expected = false;
    FILE *out = open_memstream(&text, &size);

    assert_non_null(out);
    while (fgets(line, sizeof line, in) != NULL) {
        expected = expected && line[0] != '\n';
        if (expected) {
            continue;
        }
        (void)fputs(line, out);
        if (strncmp(line, "# ", 2) == 0 || line[0] == '\n') {
            continue;
        }
        (void)fputs("----\n", out);
        s->play(line, out);
        expected = true;
    }
    (void)fclose(out);
    return text;
}

static inline void story_play(const struct stories *s, const char *path)
{
    static char want[1 << 18];
    FILE *file = fopen(path, "r+");

    assert_non_null(file);
    want[fread(want, 1, sizeof want - 1, file)] = '\0';
    rewind(file);
    if (s->begin != NULL) {
        s->begin(path);
    }
    char *got = story_replay(s, file);
    if (s->end != NULL) {
        s->end();
    }
    if (getenv("REWRITE") != NULL) {
        rewind(file);
        (void)fputs(got, file);
        (void)fflush(file);
        assert_int_equal(ftruncate(fileno(file), (off_t)strlen(got)), 0);
    } else if (strcmp(got, want) != 0) {
        print_message("%s", got);
        fail_msg("%s plays as above, not as written: REWRITE=1, then git diff", path);
    }
    (void)fclose(file);
    free(got);
}

/* All stories of this machine: of the folder tests/story/`machine`. */
static inline void stories_play(const struct stories *s, const char *machine)
{
    char pattern[128];
    glob_t found;

    (void)snprintf(pattern, sizeof pattern, "tests/story/%s/*.txt", machine);
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        story_play(s, found.gl_pathv[i]);
    }
    globfree(&found);
}

#endif
