/* SPDX-License-Identifier: Apache-2.0
 *
 * What lines to all databases say in the same way.
 */
#include "storage/actors/remote/line.h"

#include "base/log.h"

const char *line_take_version(struct store_line *l, uint64_t version)
{
    l->version = version;
    return version == STORE_UNFINISHED && l->use == LINE_TARGET ? NULL
                                                                : store_version_fault(version);
}

void line_complain_of(const struct store_task *t)
{
    log_error("store",
              "bad_value",
              "kind=%u remedy=\"a row is over its limits, so somebody else wrote it: delete it\"",
              t->kind);
}

void line_explain(struct store_line *l, const char *text)
{
    size_t size = 0;

    for (; *text != '\0' && size + 1 < sizeof l->why; text++) {
        const bool space = *text == '\n' || *text == '\t' || *text == ' ';

        if (*text == '"') {
            l->why[size++] = '\'';
        } else if (!space) {
            l->why[size++] = *text;
        } else if (size > 0 && l->why[size - 1] != ' ') {
            l->why[size++] = ' ';
        }
    }
    while (size > 0 && l->why[size - 1] == ' ') {
        size--;
    }
    l->why[size] = '\0';
}
