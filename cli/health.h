/* SPDX-License-Identifier: Apache-2.0
 *
 * What is wrong with a fleet at a glance, by the leader's answer alone; `ringhold check` asks every
 * process.
 *
 * Pure.
 */
#ifndef CLI_HEALTH_H
#define CLI_HEALTH_H

#include "wire/control.pb-c.h"

#include <stddef.h>

enum { HEALTH_PROBLEMS_MAX = 64, HEALTH_TEXT_SIZE = 320 };

struct health_problem {
    char what[HEALTH_TEXT_SIZE]; /* "node n2 is dead" */
    char todo[HEALTH_TEXT_SIZE]; /* "start it again, or: ringhold node remove n2" */
};

struct health {
    struct health_problem problem[HEALTH_PROBLEMS_MAX]; /* the worst kinds first */
    size_t count;                                       /* in all; those beyond are not kept */
};

/* Look at an answer to AdminStatus. A fleet that moves vnodes, or drains a node, has no problem. */
void health_of(const Rh__AdminReply *reply, struct health *out);

#endif
