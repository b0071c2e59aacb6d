/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a daemon's spans go: to a collector by OTLP/HTTP, or appended to a file,
 * from a thread of its own.
 *
 *     any thread --put--> queue, bounded --thread--> daemon/otlp.h --> collector or file
 *
 * Nobody waits for it: what finds the queue full is dropped, and each drop is
 * counted by its reason.
 */
#ifndef DAEMON_TRACES_H
#define DAEMON_TRACES_H

#include "base/span.h"
#include "daemon/options.h"
#include "daemon/otlp.h"

enum { TRACES_WHERE_SIZE = 512 };

struct traces;

/* `--traces`. `where`: TRACES_WHERE_SIZE bytes. */
struct option traces_option(char *where);

/* Start the thread. `where`: "http://HOST:PORT", "https://…", "file:PATH"; "" = none: `out` is
 * NULL. The texts of `who` are borrowed until traces_close(). False after printing what is wrong.
 */
bool traces_open(const char *where, const struct otlp_resource *who, struct traces **out);
/* Send what waits, for two seconds at most, and end. NULL is fine. */
void traces_close(struct traces *t);

/* What cores note their spans in; NULL of NULL. */
const struct tracing *traces_tracing(struct traces *t);
#endif
