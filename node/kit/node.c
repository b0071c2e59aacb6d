/* SPDX-License-Identifier: Apache-2.0
 *
 * The node in the test of a game: begun, killed, and its store, whose commits may fail.
 */
#include "node/kit/inside.h"

enum { SCAN_US = 1000000 }; /* between two looks at the alarms of those that sleep */

static void on_store(void *context, struct store_task *task)
{
    struct rh_test *t = context;

    list_push_back(&t->asked, &task->link);
}

void kit_tell_time(struct rh_test *t)
{
    if (t->on_time != NULL) {
        t->on_time(t->on_time_context, rh_test_clock(t));
    }
    runtime_set_wall(t->runtime, t->now_us, rh_test_clock(t) * 1000);
    runtime_tick(t->runtime, t->now_us);
}

static void start_node(struct rh_test *t)
{
    const struct runtime_config config = {.on_completion = kit_on_completion,
                                          .context = t,
                                          .broadcasting = &t->broadcasting,
                                          .numbering = &t->numbering,
                                          .on_store = t->store == NULL ? NULL : on_store,
                                          .store = t};

    t->runtime = runtime_new(&config);
    kit_tell_time(t);
}

void kit_start(struct rh_test *t)
{
    kit_check(t);
    if (t->started) {
        return;
    }
    t->started = true;
    t->durable = kinds_durable(&t->kinds) != NULL;
    t->store = t->durable ? actor_store_open("sqlite::memory:") : NULL;
    if (t->durable && t->store == NULL) {
        kit_wrong("the store can't be opened");
    }
    start_node(t);
}

void kit_drop_tasks(struct rh_test *t)
{
    struct list_link *link;

    while ((link = list_pop_front(&t->asked)) != NULL) {
        store_task_free(CONTAINER_OF(link, struct store_task, link));
    }
}

/* What ran when its node died. */
static void lost_letter(struct rh_test *t, struct puppet *s)
{
    struct letter *l = s->running;

    s->running = NULL;
    if (l == NULL) {
        return;
    }
    if (l->call != 0) { // who asked is dead, too
        letter_free(l);
    } else if (kinds_find(&t->kinds, s->kind)->ops.durable != 0 ||
               (l->flags & REQUEST_IDEMPOTENT) != 0) {
        l->again = true;
        letter_put_first(s, l);
    } else {
        letter_end_by_text(t, l, RH_UNKNOWN, letter_unknown);
    }
}

static void drop_calls(struct list *mailbox)
{
    struct list kept = LIST_INIT(kept);
    struct list_link *link;

    while ((link = list_pop_front(mailbox)) != NULL) {
        struct letter *l = CONTAINER_OF(link, struct letter, link);

        if (l->call != 0) { // its sender is dead
            letter_free(l);
        } else {
            list_push_back(&kept, link);
        }
    }
    list_splice_back(mailbox, &kept);
}

void kit_crash(struct rh_test *t)
{
    t->killed = false;
    runtime_close(t->runtime, RH_FENCED);
    kit_drop_tasks(t);
    drop_calls(&t->over);
    for (struct list_link *l = list_front(&t->puppets); l != NULL; l = list_next(&t->puppets, l)) {
        struct puppet *s = CONTAINER_OF(l, struct puppet, link);

        puppet_gone(s);
        s->task = VERB_NONE;
        s->awake = s->moved = false;
        s->connection = 0;
        s->not_before_us = 0;
        buffer_clear(&s->bond);
        lost_letter(t, s);
        drop_calls(&s->mailbox);
    }
    start_node(t);
}

/* ---- the store ---- */

static bool fails(struct rh_test *t, struct store_task *task)
{
    if (task->verb != STORE_COMMIT || t->how_many == 0) {
        return false;
    }
    t->how_many--;
    if (t->how == RH_TEST_COMMITS_BEHIND) {
        t->store->perform(t->store, &task, 1);
    }
    t->killed = t->how == RH_TEST_COMMITS_BEFORE || t->how == RH_TEST_COMMITS_BEHIND;
    task->result = t->how == RH_TEST_COMMITS_UNKNOWN ? STORE_UNKNOWN : STORE_UNAVAILABLE;
    return true;
}

/* One of its tasks. */
bool kit_store_one(struct rh_test *t)
{
    struct list_link *link = list_pop_front(&t->asked);

    if (link == NULL) {
        return false;
    }
    struct store_task *task = CONTAINER_OF(link, struct store_task, link);
    if (!fails(t, task)) {
        t->store->perform(t->store, &task, 1);
    }
    if (t->killed) {
        kit_crash(t); // its actor knows the task to the end
        store_task_free(task);
    } else {
        runtime_stored(task);
        runtime_tick(t->runtime, t->now_us);
    }
    return true;
}

/* Those of that kind whose alarm is due are awake. */
static void wake_due(struct rh_test *t, uint16_t kind)
{
    struct store_task *task = store_task_new(STORE_DUE);
    struct due_alarm due;

    task->kind = kind;
    task->number = rh_test_clock(t);
    t->store->perform(t->store, &task, 1);
    struct bytes page = buffer_bytes(&task->bytes);
    while (task->result == STORE_DONE && due_next(&page, &due)) {
        puppet_of(t, kind, due.id)->awake = true;
    }
    store_task_free(task);
}

void kit_scan(struct rh_test *t)
{
    if (t->store == NULL || t->now_us < t->scan_us) {
        return;
    }
    t->scan_us = t->now_us + SCAN_US;
    for (size_t i = 0; i < t->kinds.count; i++) {
        if (t->kinds.kind[i].ops.durable != 0) {
            wake_due(t, t->kinds.kind[i].number);
        }
    }
}
