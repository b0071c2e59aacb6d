/* SPDX-License-Identifier: Apache-2.0
 *
 * An actor as the host sees it: a record with a queue. What the game's code
 * does with it happens in the shell.
 *
 *     state       what                                         instance in the shell
 *     ABSENT      only a record; maybe state handed over       no
 *     FAILING     it failed and is not started before its time no
 *     ACTIVATING  ACTIVATE was given, its answer is to come    maybe
 *     IDLE        nothing to do                                yes
 *     RUNNING     RUN or TURN was given, RAN is to come        yes
 *     EXPORTING   EXPORT was given, EXPORTED is to come        yes
 *     BUSY        its arc is held; it said "not now"           yes
 *     FROZEN      its arc is held and its image is made        if `live`
 *                 (or was sent ahead of the hold: `copied`)
 *     RETIRING    RETIRE was given, RETIRED is to come         yes
 *
 * There may be millions of idle ones. So an actor is named by a handle of 32
 * bits in lists and tables, and what it needs only while something waits or goes
 * on stands in a part of its own, lent to it.
 */
#ifndef NODE_BOOKS_ACTOR_H
#define NODE_BOOKS_ACTOR_H

#include "base/list.h"
#include "base/lookup.h"
#include "base/machine.h"
#include "base/mutant.h"
#include "base/strand.h"
#include "node/books/delay.h"
#include "node/books/image_name.h"
#include "node/books/waiting.h"

struct hold;
struct image;
struct order;

/* States of an actor. actor_machine in actor.c says which may follow which. */
enum actor_state {
    ACTOR_ABSENT,
    ACTOR_FAILING,
    ACTOR_ACTIVATING,
    ACTOR_IDLE,
    ACTOR_RUNNING,
    ACTOR_EXPORTING,
    ACTOR_BUSY,
    ACTOR_FROZEN,
    ACTOR_RETIRING,
};

/* What the fleet remembers of an actor: node/host/remember.h. */
enum actor_memory { MEMORY_NONE, MEMORY_ASKED, MEMORY_KNOWN, MEMORY_LEAVING };

/* How an actor shall end, as soon as it can. */
enum actor_wish {
    WISH_NONE,
    WISH_IDLE, /* unless a request comes before */
    WISH_ROOM, /* likewise */
    WISH_ASKED,
};

/* Parts of the running request that its answer needs. */
struct running {
    uint64_t ticket;
    uint64_t gateway; /* of a stream's request: who asked first, and `seq` is that one's number */
    uint64_t session;
    uint64_t seq;
    uint64_t peer;
    uint64_t before;      /* the order's last, before it */
    uint64_t deadline_us; /* kept at the gate until then, it is not run */
    uint64_t came_us;     /* to this node */
    uint64_t waited_us;   /* so long it was in the actor's queue */
    struct order *order;  /* where its answer will be saved; NULL = it is no record's */
    struct stream_mark mark;
    uint32_t epoch;
    uint8_t copy; /* the last that came: it is answered */
    bool request; /* else it is a turn */
    bool read;
    bool traced;   /* an operator follows it */
    uint8_t asked; /* enum asked */
};

/* Lent to an actor that is not just idle. */
struct actor_work {
    struct queue queue; /* admitted, in order of arrival */
    struct running running;
    struct actor *actor; /* whose it is */
    struct image *image; /* owned; without instance: handed over, unless the actor is packed;
                            FROZEN: exported; or NULL */
    struct hold *hold;   /* its arc is held: it has to freeze or is frozen; NULL = free */
    uint64_t since_us;   /* in its state since; BUSY: EXPORTING for the first time */
    struct delay delay;  /* FAILING, BUSY: until when; else: its failures are forgotten then */
    struct list_link leaseless; /* in the host's list: it wants a turn, or to retire */
    struct list_link to_export; /* in the host's list: EXPORTING, but not asked for its state yet;
                                   ABSENT: in its line of those to be activated */
    bool unready;               /* asked to hand over, it said "not now" */
    bool saving_later;          /* asked to retire, it could not save: not before `delay` */
    uint8_t failures;           /* in a row: it was broken, did not start, or could not save */
    uint32_t refused;           /* requests for which its mailbox had no room, since it lives */
    size_t early_count;         /* requests in the early queues of its orders */
    struct actor_work *spare;   /* in the list of those that are lent to nobody */
};

enum { ACTOR_HANDLE_MAX = INT32_MAX };

struct actor {
    uint64_t position;
    uint64_t fence; /* that its instance was given */
    union {
        void *instance;      /* the shell's */
        struct image *image; /* owned; `packed`: handed over */
    };
    struct actor_work *work; /* NULL = just idle */
    uint32_t handle : 31;    /* of the record, in its pool */
    bool came : 1;           /* it began with what a move brought: it has lived on since then */
    uint32_t same;           /* in the table by position */
    struct strand_link cell; /* in the list of its cell; of the dead, when discarded */
    struct strand_link idle; /* live: in its kind's wheel; ABSENT: in a list of those to wake */
    uint32_t orders;         /* first struct order; 0 = none */
    uint32_t used_ms;        /* last request; modulo 2^32 */
    uint16_t kind;
    uint8_t state : 4;  /* enum actor_state */
    uint8_t wish : 2;   /* enum actor_wish */
    uint8_t memory : 2; /* enum actor_memory */
    uint8_t id_size;
    bool live : 1;   /* the shell has an instance */
    bool poked : 1;  /* it wants a turn */
    bool turned : 1; /* what it did last was a turn: a request is next */
    bool broken : 1; /* it failed: its instance ends with what it does now */
    bool wanted : 1; /* it shall live without being asked */
    bool sent : 1;   /* an image of it went ahead of the hold that is to come, … */
    bool copied : 1; /* … and nothing has happened to it since. FROZEN: so it is frozen as it is,
                        and the shell, which made the copy, was not told */
    bool packed : 1; /* ABSENT, without work: nothing has happened to it since it was handed over */
    uint8_t id[];    /* flexible */
};

extern const struct machine actor_machine;

static inline void actor_enter(struct actor *a, enum actor_state state)
{
    a->state = machine_enter(&actor_machine, a->state, state) & 15u; // as many bits as it has
    a->copied = a->copied && mutant(M_STALEIMAGE);
}

/* The actor's image would be another than before: what went ahead of a hold is stale. Once it is
 * frozen its image was made, and is what moves. */
static inline void actor_changed(struct actor *a)
{
    if (__builtin_expect(a->copied, false)) {
        a->copied = a->state == ACTOR_FROZEN || mutant(M_STALEIMAGE);
    }
}

/* Some actors, by their `idle`: one leaves without anybody knowing which list it is in. */
struct actor_list {
    uint32_t head; /* a record for that alone */
};

/* All actors of a node, by id and by cell. */
struct actors {
    struct pool pool; /* of actors and orders */
    struct lookup table;
    uint32_t *began; /* owned; by handle, beside the records, which requests touch: when it last
                        began to live, in tenths of a second */
    size_t began_cap;
    uint32_t *cell; /* owned; first of each */
    uint32_t cell_count;
    uint8_t grid;
    size_t waiting; /* requests in all queues */
    uint32_t dead;  /* discarded; freed at the next step, when the shell is done with them */
    struct actor_work *spare; /* owned; lent to nobody, clean */
    size_t spare_count;
};

void actors_init(struct actors *a);
/* Make the book empty, with the cells of a ring of that grid, segments included; there are no
 * actors. */
void actors_set_grid(struct actors *a, uint8_t grid, uint32_t cell_count);
/* The ring got more cells: room for `cell_count`. Every actor stays in its own. */
void actors_grow(struct actors *a, uint32_t cell_count);
void actors_fini(struct actors *a); /* there are no actors; frees the dead */

/* Any RUNNING actor at this position, or NULL. */
struct actor *actor_running_at(const struct actors *a, uint64_t position);
/* Make a new record, ABSENT; there is none of that name. */
struct actor *actor_new(struct actors *a, struct image_name name);
/* Note that the actor begins to live at `now_us`. */
void actor_note_began(struct actors *a, const struct actor *actor, uint64_t now_us);
/* Return when the actor began to live, or up to a tenth of a second before; 0 = it never has. */
uint64_t actor_began_us(const struct actors *a, const struct actor *actor);
/* Out of all lists, to be freed by actors_bury(). Queue and orders are empty, and it has no image.
 */
void actor_discard(struct actors *a, struct actor *actor);
void actors_bury(struct actors *a);

static inline uint64_t actor_position(const struct actor *a)
{
    return a->position;
}

static inline bool actor_is(const struct actor *a, const struct image_name *name)
{
    return a->position == name->position && a->kind == name->kind && a->id_size == name->id.size &&
           bytes_match(a->id, name->id.data, a->id_size);
}

/* The actor of that handle; 0 = none: NULL. */
static inline struct actor *actor_at(const struct actors *a, uint32_t handle)
{
    return handle == 0 ? NULL : pool_at(&a->pool, handle);
}

/* NULL = none. */
static inline struct actor *actor_find(const struct actors *a, struct image_name name)
{
    struct actor *actor = actor_at(a, lookup_first(&a->table, name.position));

    while (actor != NULL && !actor_is(actor, &name)) {
        actor = actor_at(a, actor->same);
    }
    return actor;
}

static inline struct image_name actor_name(const struct actor *a)
{
    return (struct image_name){.position = a->position, .kind = a->kind, .id = {a->id, a->id_size}};
}

/* The actor's work part; one is lent to it if it has none. */
struct actor_work *actor_work(struct actors *a, struct actor *actor);
/* Give it back if it says nothing that has to be remembered. */
void actor_calm(struct actors *a, struct actor *actor);

/* Number of requests that wait, from the work part; without one nothing waits. */
static inline size_t actor_waiting(const struct actor *a)
{
    return a->work == NULL ? 0 : a->work->queue.count;
}
static inline size_t actor_early(const struct actor *a)
{
    return a->work == NULL ? 0 : a->work->early_count;
}
static inline struct hold *actor_held(const struct actor *a)
{
    return a->work == NULL ? NULL : a->work->hold;
}
static inline struct image *actor_image(const struct actor *a)
{
    if (a->packed) {
        return a->image;
    }
    return a->work == NULL ? NULL : a->work->image;
}
/* Hand the image over to the actor, which is new, ABSENT: it has no work before it has something to
 * do. */
void actor_pack(struct actor *a, struct image *image);
/* True if a submission was given out whose completion is to come. */
static inline bool actor_has_task(const struct actor *a)
{
    return a->state == ACTOR_ACTIVATING || a->state == ACTOR_RUNNING ||
           a->state == ACTOR_EXPORTING || a->state == ACTOR_RETIRING;
}

/* Begin an empty list. Its record goes with the actors; a list that has been begun before has to be
 * empty. */
void actor_list_begin(struct actors *a, struct actor_list *list);
void actor_list_add(struct actors *a, struct actor_list *list, struct actor *actor);
/* NULL = none. */
struct actor *actor_list_front(const struct actors *a, const struct actor_list *list);
static inline bool actor_listed(const struct actor *actor)
{
    return strand_linked(&actor->idle);
}
/* Out of the list it is in. */
void actor_unlist(struct actors *a, struct actor *actor);

/* First actor of a cell, and the one after it; NULL = no more. */
struct actor *cell_first(const struct actors *a, uint32_t cell);
struct actor *cell_next(const struct actors *a, uint32_t cell, const struct actor *actor);

#endif
