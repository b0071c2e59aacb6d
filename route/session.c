/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions by id, and the numbers they give their requests.
 */
#include "route/session.h"

#include "base/assert.h"
#include "base/list.h"
#include "base/mem.h"

enum { COUNTER_BITS = 24 };

void sessions_init(struct sessions *s, uint64_t seed)
{
    *s = (struct sessions){.seed = seed};
}

void sessions_fini(struct sessions *s)
{
    struct table_walk at = {0};

    for (struct table_link *l = table_walk(&s->table, &at); l != NULL;
         l = table_walk(&s->table, &at)) {
        struct session *session = CONTAINER_OF(l, struct session, link);

        table_remove(&s->table, l);
        mem_free(session);
    }
    table_fini(&s->table);
}

uint64_t sessions_number(const struct sessions *s, uint64_t number)
{
    const uint64_t low = ((uint64_t)1 << COUNTER_BITS) - 1;

    // When the counter wraps the upper bits change too, so no id comes twice in a process's life.
    return (table_mix(s->seed + (number >> COUNTER_BITS)) & ~low) | (number & low);
}

uint64_t sessions_draw(struct sessions *s)
{
    return sessions_number(s, ++s->drawn);
}

struct session *session_look_up(struct sessions *s, uint64_t id)
{
    struct table_link *l = table_first(&s->table, table_mix(id));

    // table_mix() is a bijection: equal hashes are equal ids.
    if (l != NULL) {
        s->last = CONTAINER_OF(l, struct session, link);
    }
    return l == NULL ? NULL : s->last;
}

struct session *session_make(struct sessions *s, uint64_t id)
{
    struct session *session = mem_new(1, sizeof *session);

    session->id = id;
    table_put(&s->table, &session->link, table_mix(id));
    return session;
}

void session_drop(struct sessions *s, struct session *session)
{
    ASSERT(session->closed && session->unfinished == 0);
    table_remove(&s->table, &session->link);
    s->last = s->last == session ? NULL : s->last;
    mem_free(session);
}

void session_close(struct sessions *s, struct session *session)
{
    session->closed = true;
    if (session->unfinished == 0) {
        session_drop(s, session);
    }
}
