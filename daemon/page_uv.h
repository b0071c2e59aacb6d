/* SPDX-License-Identifier: Apache-2.0
 *
 * Pages that another thread asks a loop for: its metrics, if it is ready. The
 * loop writes them between two turns, so what is told is true at one instant and
 * no lock is on the way of a request. A loop that hangs answers nothing: the
 * asker gives up, and that is an answer, too.
 *
 *     pages_new()                              any thread
 *     pages_attach() … pages_detach()          the loop's thread
 *     pages_ask()                              other threads, one after the other
 *     pages_free()                             when neither is under way
 */
#ifndef DAEMON_PAGE_UV_H
#define DAEMON_PAGE_UV_H

#include "base/fleet_id.h"
#include "base/metrics.h"

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

enum page {
    PAGE_HEALTH,       /* nothing: that the loop turns is all */
    PAGE_READY,        /* a line for people; the return value says it */
    PAGE_METRICS,      /* for Prometheus */
    PAGE_METRICS_OPEN, /* likewise, as OpenMetrics, without its end */
    PAGE_STATUS,       /* JSON */
};

/* Append the page to `out`; called on the loop. False: the process is not ready, or not well. */
typedef bool pages_write(void *owner, enum page page, struct buffer *out);

/* Identity of the process that serves the pages. */
struct page_who {
    const char *role;
    const char *name;
    const char *cluster;
    struct fleet_id fleet; /* not known: it belongs to none yet */
    const char *not_ready; /* why; NULL: it is ready */
};
/* Render one page as `pages_write` does, from these arguments. `figures` puts all metrics. */
bool page_render(enum page page, const struct page_who *who,
                 void (*stats)(void *owner, struct metrics *m), void *owner, struct buffer *out);

struct pages *pages_new(void);
/* Takes NULL. */
void pages_free(struct pages *p);

/* From now on `write` answers. `p` may be NULL, here and at detach: nobody asks. */
void pages_attach(struct pages *p, uv_loop_t *loop, pages_write *write, void *owner);
/* Detach the pages from their loop: later requests get PAGES_GONE. The loop has to turn once more.
 */
void pages_detach(struct pages *p);

enum pages_result {
    PAGES_YES,
    PAGES_NO,     /* `write` said false */
    PAGES_SILENT, /* the loop did not come to it in time */
    PAGES_GONE,   /* there is none: not yet, or not any more */
};
/* Append the page to `out`, if the loop writes it within so many milliseconds. */
enum pages_result pages_ask(struct pages *p, enum page page, uint32_t ms, struct buffer *out);

#endif
