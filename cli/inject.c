/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/inject.h"

#ifdef RINGHOLD_INJECT

#include "ring/ring.h"
#include "wire/control.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static unsigned hits;
static bool dying;

/* Of a fleet that shares RINGHOLD_INJECT_ONCE=FILE only the first to come here dies. */
static bool first_of_all(void)
{
    const char *path = getenv("RINGHOLD_INJECT_ONCE");

    return path == NULL || open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) >= 0;
}

static bool hit(const char *name)
{
    const char *wanted = getenv("RINGHOLD_INJECT");
    const size_t size = strlen(name);

    if (wanted == NULL || strncmp(wanted, name, size) != 0 ||
        (wanted[size] != '\0' && wanted[size] != ':')) {
        return false;
    }
    const unsigned nth = wanted[size] == ':' ? (unsigned)strtoul(wanted + size + 1, NULL, 10) : 1;
    return ++hits == nth && first_of_all();
}

static bool moves(const Rh__Delta *delta)
{
    for (size_t i = 0; delta != NULL && delta->txn != 0 && i < delta->n_ops; i++) {
        if (delta->ops[i]->kind == RING_MOVE) {
            return true;
        }
    }
    return false;
}

static void die(void)
{
    (void)fprintf(stderr, "inject: killing myself at %s\n", getenv("RINGHOLD_INJECT"));
    (void)kill(getpid(), SIGKILL);
}

void inject_point(const char *name)
{
    if (hit(name)) {
        die();
    }
}

void inject_sent(struct bytes message)
{
    Rh__Control *control = control_get(message);

    if (control == NULL) {
        return;
    }
    dying = dying || (control->body_case == RH__CONTROL__BODY_PREPARE && hit("prepare-sent")) ||
            (control->body_case == RH__CONTROL__BODY_COMMIT && moves(control->commit->delta) &&
             hit("commit-sent")) ||
            (control->body_case == RH__CONTROL__BODY_CANCEL && hit("cancel-sent"));
    control_free(control);
}

void inject_turn(void)
{
    if (dying) {
        die();
    }
}

#else

typedef int inject_is_compiled_out;

#endif
