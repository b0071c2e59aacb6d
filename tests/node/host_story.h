/* SPDX-License-Identifier: Apache-2.0
 *
 * A host in a story: the words of its commands, and the fleet around it.
 */
#ifndef TESTS_NODE_HOST_STORY_H
#define TESTS_NODE_HOST_STORY_H

#include "tests/stories.h"

#include "base/crc.h"
#include "base/log.h"
#include "base/mem.h"
#include "node/host/host.h"
#include "node/host/inside.h"
#include "wire/control.h"
#include "wire/frame.h"
#include "wire/session.h"
#include "wire/trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VNODES = 4, WORDS_MAX = 16, ACTORS_MAX = 64, DELTAS_MAX = 8, WALL_AT_0_US = 1000000000 };
enum { FLOOR = 30 }; /* of a registration, if no other is said: no number up to there is news */

static struct host *host;
static struct host_effects effects;
static uint64_t now_us;
static struct host_kind kinds[] = {{.number = 0}};
static struct view cluster; /* as the coordinators see it */
static struct actor *seen[ACTORS_MAX];
static FILE *out;
static const char *story; /* its file */
static struct host_disk disk;
static Rh__Delta lost[DELTAS_MAX]; /* changes that the node did not hear of */
static size_t lost_count;
static uint64_t asked_nonce;       /* of the last REGISTER */
static uint64_t asked_renew;       /* seq of the last RENEW */
static int64_t wall_ahead_us;      /* the wall clock, against the other */
static struct quarantined suspect; /* ran in the process before */
static uint64_t slow_us;           /* before each effect of the next step so much time passes */

/* ---- words of a command ---- */

static char *words[WORDS_MAX];
static size_t word_count;

static inline void split(char *line)
{
    char *save = NULL;

    word_count = 0;
    for (char *w = strtok_r(line, " \n", &save); w != NULL && word_count < WORDS_MAX;
         w = strtok_r(NULL, " \n", &save)) {
        words[word_count++] = w;
    }
}

static inline const char *text_of(const char *key)
{
    const size_t size = strlen(key);

    for (size_t i = 1; i < word_count; i++) {
        if (strncmp(words[i], key, size) == 0 && words[i][size] == '=') {
            return words[i] + size + 1;
        }
    }
    return NULL;
}

static inline uint64_t number_of(const char *key, uint64_t otherwise)
{
    const char *text = text_of(key);

    return text == NULL ? otherwise : strtoull(text, NULL, 10);
}

static inline uint64_t word_number(size_t at)
{
    return at < word_count ? strtoull(words[at], NULL, 10) : 0;
}

/* ---- the world around ---- */

static inline void set_member(uint16_t slot)
{
    struct view_member *m = NULL;

    cluster.member =
        mem_resize(cluster.member, (cluster.member_count + 1) * sizeof *cluster.member);
    m = &cluster.member[cluster.member_count++];
    *m = (struct view_member){.slot = slot, .incarnation = 100u + slot, .weight = 1};
    (void)snprintf(m->name, sizeof m->name, "n%u", slot);
    (void)snprintf(m->address, sizeof m->address, "10.0.0.%u:7000", slot);
}

/* owners: "1122" */
static inline void set_cluster(const char *owners, uint64_t version)
{
    if (cluster.ring.cell != NULL) {
        view_fini(&cluster);
    }
    view_init(&cluster, RING_GRID_MIN);
    cluster.key = (struct ring_key){1, 2};
    ring_create(&cluster.ring, VNODES, 1, 10);
    for (uint32_t v = 0; v < VNODES; v++) {
        const struct ring_op move = {
            .kind = RING_MOVE, .vnode = v, .from = 1, .to = (uint16_t)(owners[v] - '0')};

        if (owners[v] != '1') {
            ring_apply(&cluster.ring, &move, 1, 10, 0);
        }
    }
    ring_set_version(&cluster.ring, version);
    for (uint16_t slot = 1; slot <= 3; slot++) {
        set_member(slot);
    }
}

/* An id that begins with `name` and lies in the vnode its first digit says, or said before a merge.
 */
static inline struct bytes id_of(const char *name)
{
    static char id[64];

    for (unsigned i = 0;; i++) {
        (void)snprintf(id, sizeof id, i == 0 ? "%s" : "%s.%u", name, i);
        const struct bytes b = bytes_of(id, strlen(id));
        const uint32_t cell =
            ring_point_cell(ring_point(&cluster.ring, 0, ring_key_of_kind(cluster.key, 0), b));
        if (cell / ((1u << RING_GRID_MIN) / VNODES) == (uint32_t)(name[0] - '0')) {
            return b;
        }
    }
}

/* Without the suffix that id_of() added. */
static inline const char *name_of(struct bytes id)
{
    static char name[64];
    size_t size = 0;

    while (size < id.size && id.data[size] != '.') {
        size++;
    }
    (void)snprintf(name, sizeof name, "%.*s", (int)size, (const char *)id.data);
    return name;
}

static inline struct actor *actor_named(const char *name)
{
    for (size_t i = 0; i < ACTORS_MAX; i++) {
        if (seen[i] != NULL && strcmp(name_of(actor_id(seen[i])), name) == 0) {
            return seen[i];
        }
    }
    fail_msg("%s: no actor %s", story, name);
    return NULL;
}

static inline void note_actor(struct actor *a)
{
    size_t free_place = ACTORS_MAX;

    for (size_t i = 0; i < ACTORS_MAX; i++) {
        if (seen[i] == a) {
            return;
        }
        free_place = i < free_place && seen[i] == NULL ? i : free_place;
    }
    assert_true(free_place < ACTORS_MAX);
    seen[free_place] = a;
}

static inline void forget_actor(const struct actor *a)
{
    for (size_t i = 0; i < ACTORS_MAX; i++) {
        if (seen[i] == a) {
            seen[i] = NULL;
        }
    }
}

#endif
