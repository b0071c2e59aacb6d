/* SPDX-License-Identifier: Apache-2.0
 *
 * The ledger actor for several kinds of one node: each of them has a journal of its own. Two
 * builds:
 *
 *     ledger_each.so  its states have no version
 *     ledger_next.so  writes version 1, and reads states without a version, too
 *
 * LEDGER_SO names the file of the ledger itself.
 */
#include <ringhold.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static const struct rh_actor_ops *ledger;

static void __attribute__((constructor)) take_ledger(void)
{
    const char *file = getenv("LEDGER_SO");
    void *object = file == NULL ? NULL : dlopen(file, RTLD_NOW | RTLD_LOCAL);

    ledger = object == NULL ? NULL : dlsym(object, "ringhold_actor");
}

static int on_start(const struct rh_kind_info *info, void **shared)
{
    struct rh_kind_info own = *info;
    char name[64];

    (void)snprintf(name, sizeof name, "%s.%u", info->node, info->kind);
    own.node = name;
    return ledger == NULL ? RH_FAILED : ledger->start(&own, shared);
}

static void on_stop(void *shared)
{
    ledger->stop(shared);
}

static int on_activate(struct rh_actor *actor, const struct rh_bytes *state, uint64_t fence,
                       void **instance)
{
    return ledger->activate(actor, state, fence, instance);
}

static void on_message(struct rh_actor *actor, void *instance, const struct rh_message *message)
{
    ledger->message(actor, instance, message);
}

static int on_handoff(struct rh_actor *actor, void *instance, struct rh_out *out)
{
    return ledger->handoff(actor, instance, out);
}

static void on_resume(struct rh_actor *actor, void *instance)
{
    ledger->resume(actor, instance);
}

static void on_deactivate(struct rh_actor *actor, void *instance, enum rh_why why)
{
    ledger->deactivate(actor, instance, why);
}

#ifdef LEDGER_NEXT
/* Only its number changes. */
static int on_upgrade(struct rh_actor *actor, uint32_t version, const struct rh_bytes *state,
                      struct rh_out *out)
{
    (void)actor;
    rh_out_put(out, state->data, state->size);
    return version == 0 ? RH_OK : RH_FAILED;
}
#endif

const struct rh_actor_ops ringhold_actor = {
    .abi = RH_ABI,
    .size = sizeof(struct rh_actor_ops),
    .name = "ledger",
    .start = on_start,
    .stop = on_stop,
    .activate = on_activate,
    .message = on_message,
    .handoff = on_handoff,
    .resume = on_resume,
    .deactivate = on_deactivate,
    .idle_ms = UINT32_MAX, // its state is nowhere else
    .state_max = 64 * 1024 * 1024,
#ifdef LEDGER_NEXT
    .state_version = 1,
    .upgrade = on_upgrade,
#endif
};
