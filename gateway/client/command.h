/* SPDX-License-Identifier: Apache-2.0
 *
 * The commands that a gateway knows, by name.
 */
#ifndef GATEWAY_CLIENT_COMMAND_H
#define GATEWAY_CLIENT_COMMAND_H

#include "base/bytes.h"
#include "gateway/protocol/resp.h"
#include "wire/cursor.h"

#include <stdbool.h>
#include <stddef.h>

struct client;

enum { COMMAND_NAME_MAX = 15 };

struct client_command {
    const char *name; /* upper case */
    uint8_t name_size;
    int arity; /* arguments with the name; negative: at least so many */
    bool writes;
    int first_key; /* 0 = no key */
    int last_key;  /* negative: counted from the end */
    int step;
    bool in_multi; /* it runs behind a MULTI, too, which is refused */
    /* Run it: the number of arguments was checked. */
    void (*run)(struct client *c, const struct client_command *command,
                const struct resp_command *line);
    const char *each; /* what the owner of one key is asked, when there are several keys */
};

/* Find a command by its name, in upper or lower case. NULL = none. */
const struct client_command *command_find(struct bytes name);

/* Names that were looked for last, as they were written: clients use a handful. All zero is a valid
 * empty one. */
enum { COMMAND_MEMO = 16 };
struct command_memo {
    struct {
        uint64_t name; /* up to 8 bytes */
        size_t size;
        const struct client_command *found;
    } of[COMMAND_MEMO];
};
/* What a command asks for: keys_run() knows it, or it is OTHER. */
enum command_asks {
    COMMAND_ASKS_OTHER,
    COMMAND_ASKS_KEY,   /* run_key(), of a key alone */
    COMMAND_ASKS_VALUE, /* run_key(), of a key and one word more */
    COMMAND_ASKS_CALL,  /* run_call(), of an id and a text */
};
/* Commands by how they began. */
struct command_head {
    struct resp_head head;
    const struct client_command *found; /* NULL = none is noted */
    uint8_t asks;                       /* enum command_asks */
};
enum { COMMAND_HEADS = 16 };
struct command_heads {
    struct command_head of[COMMAND_HEADS];
};
/* Note how one begins that was parsed whole from `in`, and takes so many arguments. */
void command_note(struct command_heads *heads, struct bytes in, const struct resp_command *line,
                  const struct client_command *found);
/* Where one that begins like that is noted: by the first letters of its name and by its count. */
static inline struct command_head *command_noted(struct command_heads *heads, struct bytes in)
{
    const uint32_t letters = load_u32(in.data + 8) + ((uint32_t)in.data[1] << 24);

    return &heads->of[(letters * 0x9E3779B1u) >> 28];
}
/* Like command_find(), with a memory of the last names. */
const struct client_command *command_recall(struct command_memo *memo, struct bytes name);

bool command_takes(const struct client_command *command, size_t count);

size_t command_count(void);
const struct client_command *command_at(size_t i); /* in the order of their names */

/* True if `text` is `word`, in any case. */
bool word_is(struct bytes text, const char *word);

/* ---- what runs ---- */

/* Commands to entities (keys.c). */
void run_call(struct client *c, const struct client_command *command,
              const struct resp_command *line);
void run_tell(struct client *c, const struct client_command *command,
              const struct resp_command *line);
void run_key(struct client *c, const struct client_command *command,
             const struct resp_command *line);
void run_sum(struct client *c, const struct client_command *command,
             const struct resp_command *line);
void run_mget(struct client *c, const struct client_command *command,
              const struct resp_command *line);
void run_mset(struct client *c, const struct client_command *command,
              const struct resp_command *line);

/* Commands about its session with an actor (bind*.c). */
void run_bind(struct client *c, const struct client_command *command,
              const struct resp_command *line);
void run_unbind(struct client *c, const struct client_command *command,
                const struct resp_command *line);

/* Commands about the connection (local.c). */
void run_auth(struct client *c, const struct client_command *command,
              const struct resp_command *line);
void run_client(struct client *c, const struct client_command *command,
                const struct resp_command *line);
void run_config(struct client *c, const struct client_command *command,
                const struct resp_command *line);
void run_discard(struct client *c, const struct client_command *command,
                 const struct resp_command *line);
void run_echo(struct client *c, const struct client_command *command,
              const struct resp_command *line);
void run_exec(struct client *c, const struct client_command *command,
              const struct resp_command *line);
void run_hello(struct client *c, const struct client_command *command,
               const struct resp_command *line);
void run_multi(struct client *c, const struct client_command *command,
               const struct resp_command *line);
void run_ping(struct client *c, const struct client_command *command,
              const struct resp_command *line);
void run_quit(struct client *c, const struct client_command *command,
              const struct resp_command *line);
void run_reset(struct client *c, const struct client_command *command,
               const struct resp_command *line);
void run_select(struct client *c, const struct client_command *command,
                const struct resp_command *line);
void run_unwatch(struct client *c, const struct client_command *command,
                 const struct resp_command *line);
void run_watch(struct client *c, const struct client_command *command,
               const struct resp_command *line);

/* Commands about the gateway and the fleet (info.c). */
void run_command(struct client *c, const struct client_command *command,
                 const struct resp_command *line);
void run_info(struct client *c, const struct client_command *command,
              const struct resp_command *line);
void run_where(struct client *c, const struct client_command *command,
               const struct resp_command *line);

#endif
