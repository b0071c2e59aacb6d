/* SPDX-License-Identifier: Apache-2.0
 *
 * Colours for terminals, and the escape codes behind them.
 */
#include "cli/paint.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_wanted(void)
{
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");

    return isatty(STDOUT_FILENO) != 0 && (no_color == NULL || no_color[0] == '\0') &&
           term != NULL && strcmp(term, "dumb") != 0;
}

const char *paint_on(enum paint paint)
{
    static const char *const codes[] = {[PAINT_NONE] = "",
                                        [PAINT_HEAD] = "\033[1m",
                                        [PAINT_GOOD] = "\033[32m",
                                        [PAINT_DOUBT] = "\033[33m",
                                        [PAINT_BAD] = "\033[31m"};

    return is_wanted() ? codes[paint] : "";
}

const char *paint_off(enum paint paint)
{
    return paint != PAINT_NONE && is_wanted() ? "\033[0m" : "";
}

enum paint paint_of_word(const char *word)
{
    static const struct {
        const char *word;
        enum paint paint;
    } words[] = {
        {"live", PAINT_GOOD},
        {"ok", PAINT_GOOD},
        {"HEALTHY", PAINT_GOOD},
        {"leader", PAINT_GOOD},
        {"committed", PAINT_GOOD},
        {"leaving", PAINT_DOUBT},
        {"suspect", PAINT_DOUBT},
        {"pending", PAINT_DOUBT},
        {"problem", PAINT_BAD},
        {"PROBLEM", PAINT_BAD},
        {"fenced", PAINT_BAD},
        {"dead", PAINT_BAD},
        {"unreachable", PAINT_BAD},
        {"aborted", PAINT_BAD},
    };

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(word, words[i].word) == 0) {
            return words[i].paint;
        }
    }
    return PAINT_NONE;
}
