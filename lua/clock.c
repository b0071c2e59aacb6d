/* SPDX-License-Identifier: Apache-2.0
 *
 * The timers that scripts set by name.
 */
#include "base/mem.h"
#include "lua/actor.h"

#include <stdio.h>
#include <string.h>

struct clock {
    struct list_link in_lua_actor;
    uint64_t timer; /* of the library */
    bool once;
    char name[TASK_NAME_SIZE];
};

static void clock_free(struct clock *c)
{
    list_remove(&c->in_lua_actor);
    mem_free(c);
}

bool clock_set(struct lua_actor *p, const char *name, uint32_t ms, uint32_t every_ms)
{
    struct clock *c = mem_new(1, sizeof *c);

    (void)clock_stop(p, name);
    c->once = every_ms == 0;
    (void)snprintf(c->name, sizeof c->name, "%s", name);
    c->timer = rh_timer_start(p->actor, ms, every_ms, c);
    if (c->timer == 0) {
        mem_free(c);
        return false;
    }
    list_push_back(&p->clocks, &c->in_lua_actor);
    return true;
}

bool clock_stop(struct lua_actor *p, const char *name)
{
    struct list_link *at = list_front(&p->clocks);

    while (at != NULL) {
        struct clock *c = CONTAINER_OF(at, struct clock, in_lua_actor);

        if (strcmp(c->name, name) == 0) {
            (void)rh_timer_stop(p->actor, c->timer);
            clock_free(c);
            return true;
        }
        at = list_next(&p->clocks, at);
    }
    return false;
}

void clock_rang(struct lua_actor *p, void *argument, char name[TASK_NAME_SIZE])
{
    struct clock *c = argument;

    (void)p;
    memcpy(name, c->name, sizeof c->name);
    if (c->once) {
        clock_free(c);
    }
}

void clock_drop_all(struct lua_actor *p)
{
    struct list_link *at;

    while ((at = list_front(&p->clocks)) != NULL) {
        clock_free(CONTAINER_OF(at, struct clock, in_lua_actor)); // Its timer ends with the actor.
    }
}
