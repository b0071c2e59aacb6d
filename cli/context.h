/* SPDX-License-Identifier: Apache-2.0
 *
 * Which fleet does a command ask? A context has a name, and says where a fleet's coordinators and
 * gateways are, and which files show who asks. Contexts are files of their own:
 *
 *     $XDG_CONFIG_HOME/ringhold/context/NAME     lines "key = value"
 *     $XDG_CONFIG_HOME/ringhold/current          the name of the one in use
 *
 * Without the variable they are in ~/.config.
 *
 * They hold paths of secrets, never a secret. Each file has mode 0600.
 */
#ifndef CLI_CONTEXT_H
#define CLI_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>

enum {
    CONTEXT_NAME_SIZE = 65,
    CONTEXT_VALUE_SIZE = 1024,
    CONTEXT_PATH_SIZE = 4096,
};

enum context_key {
    CONTEXT_COORDINATORS,
    CONTEXT_CLUSTER,
    CONTEXT_GATEWAY,
    CONTEXT_TLS_CA,
    CONTEXT_TLS_CERTIFICATE,
    CONTEXT_TLS_KEY,
    CONTEXT_TOKEN,
    CONTEXT_KEYS
};

struct context {
    char name[CONTEXT_NAME_SIZE];
    char value[CONTEXT_KEYS][CONTEXT_VALUE_SIZE]; /* "" = not set */
};

/* Return the key's name: of the option, and of the line in the file. */
const char *context_key_name(enum context_key key);

/* Return true if it can name a context: 1 to 64 of a-z A-Z 0-9 . _ -, and no dot or '-' first. */
bool context_is_name(const char *name);

/* Read the context of that name. False after printing "ringhold: …". */
bool context_load(const char *name, struct context *out);

/* Say which context is in use, "" = none. False after printing why that can't be known. */
bool context_current(char name[CONTEXT_NAME_SIZE]);

/* The context that a command without --context has: that of RINGHOLD_CONTEXT, else the one in use.
 * `name` "" and true: none. False after printing. */
bool context_default(struct context *out);

/* Write it, as a whole. False after printing. */
bool context_save(const struct context *c);

/* Have it used from now on; "": none. False after printing. */
bool context_use(const char *name);

/* Remove it; if it was in use, none is. False after printing. */
bool context_remove(const char *name);

/* Call `each` for each name, in order. False after printing. */
bool context_list(void (*each)(void *context, const char *name), void *context);

#endif
