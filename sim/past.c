/* SPDX-License-Identifier: Apache-2.0
 *
 * An operator who puts older copies of all coordinators' files back, and no new era: to each other
 * the copies agree. Only who knows more can tell (hole 54). He asks as `ringhold check` does, each
 * second, and once a process tells of a number that was never drawn here he restores, as
 * docs/recovery.md has it.
 *
 * What is judged meanwhile: nobody lives twice, nothing leaves who was fenced, no vnode is given
 * away before its owner's lease is over. Numbers are drawn a second time, so what they name is not.
 */
#include "base/prng.h"
#include "sim/fleet.h"
#include "wire/control.h"

enum {
    ENTRIES_BACK = 40,
    LOOK_US = 1000000,
    READS_US = 2000000, /* from what he is told to what he does, at most */
};

#define PAST_TAG (UINT64_C(1) << 62)

static void on_look(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    Rh__Control control = RH__CONTROL__INIT;
    Rh__Admin admin = RH__ADMIN__INIT;
    Rh__AdminInspect body = RH__ADMIN_INSPECT__INIT;
    struct buffer out = {0};

    (void)event;
    if (!f->past) {
        return;
    }
    admin.tag = PAST_TAG;
    admin.what_case = RH__ADMIN__WHAT_INSPECT;
    admin.inspect = &body;
    control.body_case = RH__CONTROL__BODY_ADMIN;
    control.admin = &admin;
    control_put(&out, &control);
    for (unsigned i = 0; i < f->coordinators; i++) {
        if (f->operator_end[i] != NULL) {
            network_send(&f->network, f->operator_end[i], FRAME_CONTROL, buffer_bytes(&out));
        }
    }
    buffer_fini(&out);
    world_at(
        &f->world, f->world.now_us + LOOK_US, (struct world_event){.run = on_look, .context = f});
}

/* By those files its lease was not over, and its vnodes are its own. */
static void unfence(struct fleet *f)
{
    for (unsigned i = 0; i < f->nodes; i++) {
        const struct state_node *known =
            state_node_named(&f->raft.truth, process_says(&f->node[i].process));

        if (known != NULL && !known->barred && known->incarnation == f->node[i].reassigned) {
            f->node[i].reassigned = 0;
        }
    }
}

void past_begin(struct fleet *f)
{
    const size_t count = f->raft.log_count;
    const uint64_t number = f->raft.truth.number;
    const size_t back = world_between(&f->world, 1, ENTRIES_BACK);

    if (f->past) {
        return;
    }
    coordinators_crash_all(f);
    check_restores(f);
    if (back >= count || !raft_model_put_back(&f->raft, count - back)) {
        return;
    }
    TRACE(&f->world,
          "net",
          "OLD FILES, %zu entries back, number %llu of %llu",
          back,
          (unsigned long long)f->raft.truth.number,
          (unsigned long long)number);
    f->past = true;
    f->past_era = f->raft.era;
    if (f->redrawn_count < PAST_SPANS_MAX) {
        f->redrawn[f->redrawn_count].low = f->raft.truth.number;
        f->redrawn[f->redrawn_count++].high = number;
    }
    f->old_copies++;
    check_restored(f);
    unfence(f);
    on_look(f, NULL);
}

static void on_restore(void *context, const struct world_event *event)
{
    struct fleet *f = context;

    (void)event;
    past_end(f);
}

void past_told(struct fleet *f, const Rh__Control *message)
{
    const Rh__InspectAnswer *answer = message->inspect_answer;
    const uint64_t drawn = f->raft.truth.number;
    const uint64_t era = f->raft.truth.view.era;

    if (message->body_case == RH__CONTROL__BODY_INSPECT_ANSWER && f->past && !f->past_seen &&
        (answer->disk_seen > drawn || answer->version > drawn || answer->disk_era > era)) {
        TRACE(&f->world, "op", "is told by %s of what was never drawn", answer->name);
        f->past_seen = true;
        world_at(&f->world,
                 f->world.now_us + world_between(&f->world, 0, READS_US),
                 (struct world_event){.run = on_restore, .context = f});
    }
}

void past_end(struct fleet *f)
{
    if (f->past) {
        nemesis_restore(f, f->raft.log_count);
    }
}

void past_over(struct fleet *f)
{
    f->noticed += f->past && f->past_seen;
    f->past = f->past_seen = false;
}

bool past_doubts(const struct fleet *f, uint64_t number)
{
    return f->past_era != 0 && number >> 40 <= f->past_era;
}

static bool is_redrawn(const struct fleet *f, uint64_t number)
{
    for (size_t i = 0; i < f->redrawn_count; i++) {
        if (number > f->redrawn[i].low && number <= f->redrawn[i].high) {
            return true;
        }
    }
    return false;
}

bool past_hides(const struct fleet *f, const struct sim_ask *a)
{
    // What its client knew counts, too: a gateway that it came to later may know less.
    return is_redrawn(f, f->ledger.view[a->view].version) || is_redrawn(f, a->first);
}

/* Drawn by itself, so that the others stay as they were. */
void past_draw(struct fleet *f, uint64_t seed)
{
    struct prng aside = {.state = seed ^ 0x70617374u};
    const bool drawn = prng_chance(&aside, 50);

    if (f->profile == PROFILE_RESTORE && (drawn || f->options.past)) {
        f->faults.old_copy_us = prng_between(&aside, 3000000, 8000000);
    }
}
