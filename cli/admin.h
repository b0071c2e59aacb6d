/* SPDX-License-Identifier: Apache-2.0
 *
 * Asking the coordinators: one request, answered by the leader. Links to all
 * of them, tries each that says it leads, until a time-out.
 */
#ifndef CLI_ADMIN_H
#define CLI_ADMIN_H

#include "base/err.h"
#include "wire/control.pb-c.h"

enum { ADMIN_ADDRESSES_SIZE = 1024, ADMIN_COORDINATORS_MAX = 5, ADMIN_DEFAULT_PORT = 7400 };

struct admin;

/* `coordinators` is "host:port,host:port". Prints what is wrong with it; NULL then. */
struct admin *admin_open(const char *cluster, const char *coordinators);
void admin_close(struct admin *a);

/* Ask; returns the owned reply (admin_free) or NULL after printing why not. The error of a reply is
 * the caller's to print. Waits at most timeout_ms. */
Rh__AdminReply *admin_ask(struct admin *a, Rh__Admin *request, uint32_t timeout_ms);
/* The same, but says nothing on failure. */
Rh__AdminReply *admin_try(struct admin *a, Rh__Admin *request, uint32_t timeout_ms);
void admin_free(Rh__AdminReply *reply);

/* Split "a,b,c" into at most `max` addresses of 128 bytes. ERR_INVALID: empty part, too many or
 * no port. */
MUST_CHECK enum err admin_split(const char *text, char out[][128], size_t max, size_t *count);

#endif
