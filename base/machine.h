/* SPDX-License-Identifier: Apache-2.0
 *
 * A state machine as a table: its states, and which may follow which. The table is the drawing, and
 * machine_enter() is the only way from one state to another, so that the two cannot differ: a step
 * that is not in the table ends the program with the names of both states.
 *
 *     static const struct machine_state door_states[] = {
 *         [DOOR_OPEN] = {"open", TO(DOOR_SHUT)},
 *         [DOOR_SHUT] = {"shut", TO(DOOR_OPEN)},
 *     };
 *     const struct machine door_machine = {"door", door_states};
 *
 *     door->state = machine_enter(&door_machine, door->state, DOOR_SHUT);
 *
 * tools/states, which `make lint` runs, looks for states that are set in another way.
 */
#ifndef BASE_MACHINE_H
#define BASE_MACHINE_H

#include <stddef.h>
#include <stdint.h>

struct machine_state {
    const char *name; /* for logs and people */
    uint32_t next;    /* TO() of each state that may follow */
};

/* At most 32 states, from 0 on. */
struct machine {
    const char *name;
    const struct machine_state *state;
};

#define TO(next) (UINT32_C(1) << (next))

/* Called for each step when it is not NULL; of one thread's programs (simulators, tests) alone. */
extern void (*machine_trace)(const struct machine *m, unsigned from, unsigned to);

/* Print which step is wrong, then abort(). */
_Noreturn void machine_refuse(const struct machine *m, unsigned from, unsigned to);

/* Returns `to`. Aborts if it may not follow `from`. */
static inline uint8_t machine_enter(const struct machine *m, unsigned from, unsigned to)
{
    if ((m->state[from].next & TO(to)) == 0) {
        machine_refuse(m, from, to);
    }
    if (machine_trace != NULL) {
        machine_trace(m, from, to);
    }
    return (uint8_t)to;
}

static inline const char *machine_name(const struct machine *m, unsigned state)
{
    return m->state[state].name;
}

#endif
