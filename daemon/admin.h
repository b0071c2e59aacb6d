/* SPDX-License-Identifier: Apache-2.0
 *
 * Asking the coordinators: one request, answered by the leader. Links to all
 * of them, tries each that says it leads, until a time-out.
 */
#ifndef DAEMON_ADMIN_H
#define DAEMON_ADMIN_H

#include "base/err.h"
#include "link/link.h"
#include "wire/control.pb-c.h"

#include <stdbool.h>

enum { ADMIN_ADDRESSES_SIZE = 1024, ADMIN_COORDINATORS_MAX = 10, ADMIN_DEFAULT_PORT = 7400 };

/* Where a command asks when nobody tells it where. */
#define ADMIN_HERE "127.0.0.1:7400"
/* How to tell it: said where nobody answers there. */
#define ADMIN_ELSEWHERE "; --coordinators names another place, `ringhold context` for all commands"

struct admin;

/* Where the coordinators are, and who asks. */
struct admin_where {
    const char *cluster;
    const char *coordinators; /* "host:port,host:port" */
    struct link_files tls;
};

/* Borrows `where` until it returns, but the files of TLS until admin_close(). Prints what is wrong;
 * NULL then. */
struct admin *admin_open(const struct admin_where *where);
void admin_close(struct admin *a);

/* Ask `what`, one of the messages that an Admin may carry (AdminStatus …). Returns the owned reply
 * (admin_free) or NULL after printing why not. The error of a reply is the caller's to print. Waits
 * at most timeout_ms, also for a leader that is not ready: a terminal is told so meanwhile. */
Rh__AdminReply *admin_ask(struct admin *a, ProtobufCMessage *what, uint32_t timeout_ms);
/* Like admin_ask(), but prints nothing. */
Rh__AdminReply *admin_try(struct admin *a, ProtobufCMessage *what, uint32_t timeout_ms);
void admin_free(Rh__AdminReply *reply);
/* Say, after a question without reply, why nobody answered. */
void admin_why_none(const struct admin *a, char *out, size_t size);

/* ---- for who talks with each coordinator: `at` is its place in the list ---- */

size_t admin_count(const struct admin *a);
const char *admin_address(const struct admin *a, size_t at);
bool admin_is_up(const struct admin *a, size_t at);
/* Say why the link to coordinator `at` went down or was refused last; "" = neither happened. */
const char *admin_reason(const struct admin *a, size_t at);
/* Hear every message of every coordinator; `message` is borrowed. Until admin_close(). */
void admin_watch(struct admin *a,
                 void (*hear)(void *context, size_t at, const Rh__Control *message), void *context);
/* False: its link is not up, or full. */
bool admin_tell(struct admin *a, size_t at, const Rh__Control *message);
/* Wait for messages, but only some milliseconds. */
void admin_turn(struct admin *a);

/* Split "a,b,c" into at most `max` addresses of 128 bytes. ERR_INVALID: empty part, too many or
 * no port. */
MUST_CHECK enum err admin_split(const char *text, char out[][128], size_t max, size_t *count);

/* "default" for the role without a name. */
const char *role_text(const char *role);

#endif
