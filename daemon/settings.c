/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads a daemon's settings, checks them, and runs it.
 */
#include "daemon/settings.h"

#include "base/assert.h"
#include "base/mem.h"
#include "daemon/fault.h"

#include <string.h>

int settings_read(struct settings *s, const struct settings_kind *kind, int argc, char **argv)
{
    const char *arguments[8];
    int count = 0;

    s->kind = kind;
    kind->init(s);
    s->command.options = s->table.row;
    s->command.places = &s->places;
    const int code = options_parse(&s->command, argc, argv, arguments, &count);
    if (code >= 0) {
        return code;
    }
    fault_places(&s->places);
    const int checked = kind->check(s);
    fault_places(NULL);
    return checked == OPTIONS_RUN ? code : checked;
}

int settings_run(const struct settings_kind *kind, int argc, char **argv)
{
    struct settings *s = mem_new(1, kind->size);
    int code = settings_read(s, kind, argc, argv);

    if (code == OPTIONS_CHECK) {
        code = options_checked(&s->command);
    } else if (code == OPTIONS_RUN) {
        code = kind->run(s, argc, argv);
    }
    mem_free(s);
    return code;
}

const char *settings_level(const struct settings *s)
{
    for (size_t i = 0; i < s->table.count; i++) {
        if (strcmp(s->table.row[i].key, "log-level") == 0) {
            return s->table.row[i].target;
        }
    }
    ASSERT(!"a daemon has a log");
    return "";
}
