/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions of a router: one client connection each, with the counter that
 * numbers its requests.
 */
#ifndef ROUTE_SESSION_H
#define ROUTE_SESSION_H

#include "base/table.h"

#include <stdbool.h>
#include <stdint.h>

struct session {
    struct table_link link;
    uint64_t id;
    uint64_t seq;        /* last one given; 0 for ever if the client numbers its requests */
    uint64_t base;       /* such a client has the answers of all below; 0 = not such a client */
    uint32_t epoch;      /* of such a client: grows with each of its connections */
    uint32_t unfinished; /* requests, … */
    uint32_t told;       /* … of which nobody waits for so many answers */
    uint64_t asked;      /* ring version by which such a client was asked if it is still here … */
    uint64_t vouched;    /* … and by which it said so */
    bool closed;         /* nobody listens; it goes with its last request */
};

struct sessions {
    struct table table;
    struct session *last; /* found last, or NULL: requests come in runs of one */
    uint64_t seed;        /* random, of this process */
    uint64_t drawn;       /* ids given so far */
};

void sessions_init(struct sessions *s, uint64_t seed);
void sessions_fini(struct sessions *s); /* frees those left */

/* Draw a fresh id: the upper 40 bits come from the seed, the lower 24 count. */
uint64_t sessions_draw(struct sessions *s);
/* The id that goes with a number which the caller counts: for one that names its own sessions. */
uint64_t sessions_number(const struct sessions *s, uint64_t number);

struct session *session_look_up(struct sessions *s, uint64_t id); /* NULL = none */
struct session *session_make(struct sessions *s, uint64_t id);
static inline struct session *session_find(struct sessions *s, uint64_t id) /* NULL = none */
{
    return s->last != NULL && s->last->id == id ? s->last : session_look_up(s, id);
}
static inline struct session *session_get(struct sessions *s,
                                          uint64_t id) /* made if there is none */
{
    struct session *session = session_find(s, id);

    return session != NULL ? session : session_make(s, id);
}

/* The session is free to go once it is closed and has nothing unfinished. */
void session_close(struct sessions *s, struct session *session);
void session_drop(struct sessions *s, struct session *session);
static inline void session_done(struct sessions *s, struct session *session)
{
    ASSERT(session->unfinished > 0);
    session->unfinished--;
    if (session->closed && session->unfinished == 0) {
        session_drop(s, session);
    }
}

#endif
