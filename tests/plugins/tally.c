/* SPDX-License-Identifier: Apache-2.0
 *
 * An actor that counts its messages and answers how many there were: three builds of one game,
 * whose states have versions. A state of version 1 is the count in words, one of version 2 eight
 * bytes, and neither can be taken for the other.
 *
 *     tally.so         hands over 1 and reads 1: before the change
 *     tally_bridge.so  hands over 1 and reads 1 and 2: for the way back
 *     tally_next.so    hands over 2 and reads 1 and 2
 */
#ifndef TALLY_WRITES
#define TALLY_WRITES 1 /* tally_next.c has 2 */
#endif
#ifndef TALLY_READS
#define TALLY_READS 1 /* the newest; the others have 2 */
#endif

#include <ringhold.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_SIZE = 32 };
static const char words[] = "count ";

struct tally {
    uint64_t count;
};

static int read_text(const struct rh_bytes *state, uint64_t *count)
{
    const size_t head = sizeof words - 1;
    char text[TEXT_SIZE];

    if (state->size <= head || state->size >= sizeof text ||
        memcmp(state->data, words, head) != 0) {
        return RH_FAILED;
    }
    (void)snprintf(text, sizeof text, "%.*s", (int)state->size, (const char *)state->data);
    *count = strtoull(text + head, NULL, 10);
    return RH_OK;
}

static int read_bytes(const struct rh_bytes *state, uint64_t *count)
{
    if (state->size != sizeof *count) {
        return RH_FAILED;
    }
    memcpy(count, state->data, sizeof *count);
    return RH_OK;
}

static int read_state(uint32_t version, const struct rh_bytes *state, uint64_t *count)
{
    return version == 1 ? read_text(state, count) : read_bytes(state, count);
}

static void write_state(uint64_t count, struct rh_out *out)
{
    if (TALLY_WRITES == 1) {
        char text[TEXT_SIZE];
        const int size = snprintf(text, sizeof text, "%s%" PRIu64, words, count);

        rh_out_put(out, text, (size_t)size);
    } else {
        rh_out_put(out, &count, sizeof count);
    }
}

static int on_activate(struct rh_actor *actor, const struct rh_bytes *state, uint64_t fence,
                       void **instance)
{
    struct tally *t = calloc(1, sizeof *t);

    (void)actor;
    (void)fence;
    if (t != NULL && state != NULL && read_state(TALLY_WRITES, state, &t->count) != RH_OK) {
        (void)fprintf(stderr, "tally: a state of another version\n");
        free(t);
        return RH_FAILED;
    }
    *instance = t;
    return t == NULL ? RH_FAILED : RH_OK;
}

static void on_message(struct rh_actor *actor, void *instance, const struct rh_message *message)
{
    struct tally *t = instance;

    (void)message;
    t->count++;
    (void)rh_reply(actor, rh_integer((int64_t)t->count));
}

static int on_handoff(struct rh_actor *actor, void *instance, struct rh_out *out)
{
    const struct tally *t = instance;

    (void)actor;
    write_state(t->count, out);
    return RH_OK;
}

static void on_deactivate(struct rh_actor *actor, void *instance, enum rh_why why)
{
    (void)actor;
    (void)why;
    free(instance);
}

#if TALLY_READS > 1
static int on_upgrade(struct rh_actor *actor, uint32_t version, const struct rh_bytes *state,
                      struct rh_out *out)
{
    uint64_t count = 0;

    (void)actor;
    if (read_state(version, state, &count) != RH_OK) {
        return RH_FAILED;
    }
    write_state(count, out);
    return RH_OK;
}
#endif

const struct rh_actor_ops ringhold_actor = {
    .abi = RH_ABI,
    .size = sizeof(struct rh_actor_ops),
    .name = "tally",
    .activate = on_activate,
    .message = on_message,
    .handoff = on_handoff,
    .deactivate = on_deactivate,
    .idle_ms = UINT32_MAX, // its state is nowhere else
    .ahead = 1,
    .state_version = TALLY_WRITES,
#if TALLY_READS > 1
    .state_version_least = 1,
    .state_version_most = TALLY_READS,
    .upgrade = on_upgrade,
#endif
};
