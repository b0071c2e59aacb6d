/* SPDX-License-Identifier: Apache-2.0
 *
 * ringhold_test.h: actors on the shipped runtime and store, with a mailbox each, in a time that a
 * test sets.
 */
#include "base/assert.h"
#include "base/mem.h"
#include "node/runtime/runtime.h"
#include "node/worker/kinds.h"
#include "storage/actors/store.h"

#include <ringhold_test.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DEADLINE_US = 60000000, /* of a call of the test */
    SEND_US = 10000000,     /* of what nobody waits for */
    SCAN_US = 1000000,      /* between two looks at the alarms of those that sleep */
    RETRY_US = 100000,      /* until one that failed starts again */
};
static const uint64_t BEGIN_MS = 1767225600000; /* 2026-01-01 */

/* A message on its way to an actor, or in it. */
struct letter {
    struct list_link link;
    uint64_t ticket; /* also its name, if it is asked again */
    uint64_t until_us;
    uint64_t call; /* of an actor that waits for the answer; 0 = none does … */
    bool asked;    /* … but the test */
    bool again;
    uint8_t flags;
    int status;         /* of one that is over … */
    struct buffer body; /* … whose answer is here */
};

struct puppet {
    struct list_link link;
    uint16_t kind;
    struct buffer id;
    struct rh_actor *actor; /* on the runtime; NULL = it does not live */
    enum verb task;
    bool awake; /* it is to live, whoever asks */
    bool failed;
    bool poked;
    bool ends;
    bool moved; /* it comes to life with these */
    bool has_state;
    enum err error; /* of the last task */
    struct buffer state;
    struct buffer bond;
    uint64_t not_before_us;
    uint64_t connection; /* of its client; 0 = it has none */
    struct letter *running;
    struct list mailbox;  /* struct letter */
    struct buffer pushes; /* each: u64 size, bytes */
    size_t pushes_read;
};

struct rh_test {
    struct kinds kinds;
    bool started;
    bool durable;
    struct actor_store *store;
    struct runtime *runtime;
    struct broadcasting broadcasting;
    struct numbering numbering;
    struct list puppets;
    struct list asked; /* struct store_task */
    struct list over;  /* struct letter: to be answered */
    uint64_t now_us;
    uint64_t scan_us;
    uint64_t fence;
    uint64_t ticket;
    uint64_t connections;
    enum rh_test_commits how;
    uint32_t how_many;
    bool killed; /* by a commit: the node is to be started anew */
    bool answered;
    int status; /* of that answer */
    struct buffer answer;
    struct buffer text;
    void (*on_time)(void *context, uint64_t clock_ms); /* NULL = nobody asks */
    void *on_time_context;
};

static _Noreturn void wrong(const char *what)
{
    (void)fprintf(stderr, "ringhold-test: %s\n", what);
    abort();
}

static void is_a_test(const struct rh_test *t)
{
    if (t == NULL) {
        wrong("there is no test");
    }
}

static struct bytes bytes_of_text(const char *text)
{
    return bytes_of(text, text == NULL ? 0 : strlen(text));
}

static const char *text_of(struct rh_test *t, struct bytes bytes)
{
    buffer_clear(&t->text);
    buffer_put(&t->text, bytes.data, bytes.size);
    buffer_put(&t->text, "", 1);
    return (const char *)t->text.data;
}

/* ---- actors ---- */

static struct puppet *find(const struct rh_test *t, uint16_t kind, struct bytes id)
{
    for (struct list_link *l = list_front(&t->puppets); l != NULL; l = list_next(&t->puppets, l)) {
        struct puppet *s = CONTAINER_OF(l, struct puppet, link);

        if (s->kind == kind && bytes_equal(buffer_bytes(&s->id), id)) {
            return s;
        }
    }
    return NULL;
}

static struct puppet *puppet_of(struct rh_test *t, uint16_t kind, struct bytes id)
{
    struct puppet *s = find(t, kind, id);

    if (s == NULL) {
        s = mem_new(1, sizeof *s);
        s->kind = kind;
        buffer_put(&s->id, id.data, id.size);
        list_init(&s->mailbox);
        list_push_back(&t->puppets, &s->link);
    }
    return s;
}

static struct bytes id_of(const struct rh_test *t, uint16_t kind, const char *id)
{
    is_a_test(t);
    if (id == NULL || id[0] == '\0' || strlen(id) > RH_ID_MAX) {
        wrong("an id has 1 to 255 bytes");
    }
    if (kinds_find(&t->kinds, kind) == NULL) {
        wrong("no such kind is hosted");
    }
    return bytes_of_text(id);
}

static struct puppet *named(struct rh_test *t, uint16_t kind, const char *id)
{
    return puppet_of(t, kind, id_of(t, kind, id));
}

static void letter_free(struct letter *l)
{
    buffer_fini(&l->body);
    mem_free(l);
}

static struct letter *put_letter(struct rh_test *t, struct puppet *s, uint8_t flags,
                                 struct bytes body, uint64_t for_us)
{
    struct letter *l = mem_new(1, sizeof *l);

    l->ticket = ++t->ticket;
    l->until_us = t->now_us + for_us;
    l->flags = flags;
    buffer_put(&l->body, body.data, body.size);
    list_push_back(&s->mailbox, &l->link);
    return l;
}

/* ---- answers ---- */

/* Whoever waits will hear it: not now, for the runtime is told nothing while it tells. */
static void end_letter(struct rh_test *t, struct letter *l, int status, struct bytes body)
{
    l->status = status;
    buffer_clear(&l->body);
    buffer_put(&l->body, body.data, body.size);
    list_push_back(&t->over, &l->link);
}

static void end_by_text(struct rh_test *t, struct letter *l, int status, const char *text)
{
    end_letter(t, l, status, bytes_of_text(text));
}

/* Tell one that is over. False: there is none. */
static bool answer_one(struct rh_test *t)
{
    struct list_link *link = list_pop_front(&t->over);

    if (link == NULL) {
        return false;
    }
    struct letter *l = CONTAINER_OF(link, struct letter, link);
    if (l->call != 0) {
        const struct call_answer answer = {
            .number = l->call, .status = l->status, .payload = buffer_bytes(&l->body)};

        runtime_answer(t->runtime, &answer);
    } else if (l->asked) {
        t->answered = true;
        t->status = l->status;
        buffer_clear(&t->answer);
        buffer_put(&t->answer, l->body.data, l->body.size);
    }
    letter_free(l);
    return true;
}

static const char unknown[] = "UNKNOWN its node was lost: it may have run, at most once";

static void put_first(struct puppet *s, struct letter *l)
{
    struct list rest = LIST_INIT(rest);

    list_splice_back(&rest, &s->mailbox);
    list_push_back(&s->mailbox, &l->link);
    list_splice_back(&s->mailbox, &rest);
}

/* The actor has run it. */
static void ran(struct rh_test *t, struct puppet *s, const struct completion *c)
{
    struct letter *l = s->running;

    s->running = NULL;
    if (c->error == ERR_BUSY && !s->failed) { // it has ended itself before
        put_first(s, l);
    } else if (c->code == ANSWER_OK || c->code == ANSWER_APP_ERROR) {
        end_letter(t, l, c->code == ANSWER_OK ? RH_OK : RH_FAILED, c->bytes);
    } else {
        end_by_text(t, l, RH_UNKNOWN, unknown);
    }
}

/* ---- what actors say ---- */

static void call_one(struct rh_test *t, const struct call *call, struct bytes id)
{
    const struct caller from = {.kind = call->from_kind, .id = call->from};
    const bool sends = call->number == 0;
    const uint8_t flags = (uint8_t)(REQUEST_CALL | (sends ? REQUEST_NO_REPLY : 0) |
                                    ((call->flags & RH_IDEMPOTENT) != 0 ? REQUEST_IDEMPOTENT : 0) |
                                    (call->push || call->outgoing ? REQUEST_SESSION : 0));
    struct buffer body = {0};
    uint8_t head[RECORD_ID_MAX + 16];
    struct writer w = {.at = head, .left = sizeof head};

    ASSERT(caller_size(&from) <= sizeof head);
    caller_put(&w, &from);
    buffer_put(&body, head, sizeof head - w.left);
    buffer_put(&body, call->payload.data, call->payload.size);
    if (call->push) { // only for who is awake
        struct puppet *s = find(t, call->kind, id);

        if (s != NULL && s->actor != NULL) {
            (void)put_letter(t, s, flags, buffer_bytes(&body), SEND_US);
        }
    } else {
        struct letter *l = put_letter(t,
                                      puppet_of(t, call->kind, id),
                                      flags,
                                      buffer_bytes(&body),
                                      sends ? SEND_US : (uint64_t)call->timeout_ms * 1000);
        l->call = call->number;
    }
    buffer_fini(&body);
}

static void call(struct rh_test *t, const struct call *c)
{
    struct bytes ids = c->id;

    if (c->count == 0) {
        call_one(t, c, c->id);
        return;
    }
    while (ids.size > 0) { // u8 size, bytes
        const size_t size = ids.data[0];

        call_one(t, c, bytes_of(ids.data + 1, size));
        ids = bytes_of(ids.data + 1 + size, ids.size - 1 - size);
    }
}

static void push(struct puppet *s, const struct push_record *p)
{
    const uint64_t size = p->payload.size;

    if (p->type == PUSH_DATA) {
        buffer_put(&s->pushes, &size, sizeof size);
        buffer_put(&s->pushes, p->payload.data, p->payload.size);
    } else {
        s->connection = 0; // kicked, or it goes on elsewhere
    }
}

static void keep(struct buffer *to, struct bytes bytes)
{
    buffer_clear(to);
    buffer_put(to, bytes.data, bytes.size);
}

static void gone(struct puppet *s)
{
    s->actor = NULL;
    s->failed = s->poked = s->ends = false;
}

static void on_task(struct rh_test *t, struct puppet *s, const struct completion *c)
{
    s->task = VERB_NONE;
    s->error = c->error;
    if (c->verb == VERB_RUN) {
        ran(t, s, c);
    } else if (c->verb == VERB_EXPORT && c->error == ERR_OK) {
        s->has_state = c->has_state;
        keep(&s->state, c->bytes);
        keep(&s->bond, c->head);
    } else if (c->verb == VERB_ACTIVATE && c->error != ERR_OK) {
        gone(s);
        s->not_before_us = t->now_us + RETRY_US;
    } else if (c->verb == VERB_RETIRE && c->error == ERR_OK) {
        gone(s);
        s->awake = false;
    }
}

static void on_completion(void *context, const struct completion *c)
{
    struct rh_test *t = context;
    struct puppet *s = c->actor;

    switch ((enum verb)c->verb) {
    case VERB_ACTIVATE:
    case VERB_RUN:
    case VERB_TURN:
    case VERB_EXPORT:
    case VERB_RETIRE:
        on_task(t, s, c);
        break;
    case VERB_POKE:
        s->poked = true;
        break;
    case VERB_PASSIVATE:
        s->ends = true;
        break;
    case VERB_FAIL:
        s->failed = true;
        break;
    case VERB_CALL:
        call(t, c->call);
        break;
    case VERB_PUSH:
        push(s, c->push);
        break;
    case VERB_DEFER:
    case VERB_FINISH:
    case VERB_DISCARD:
    case VERB_NONE:
    case VERB_COPY:
    case VERB_UNFREEZE:
    case VERB_ANSWER:
    case VERB_GATEWAY:
    case VERB_BIND:
    case VERB_END_CALLS:
    case VERB_SPENT:
    case VERB_SAVE:
        break;
    }
}

/* ---- the node ---- */

static void on_store(void *context, struct store_task *task)
{
    struct rh_test *t = context;

    list_push_back(&t->asked, &task->link);
}

/* The clock shows another time. */
static void tell_time(struct rh_test *t)
{
    if (t->on_time != NULL) {
        t->on_time(t->on_time_context, rh_test_clock(t));
    }
    runtime_set_wall(t->runtime, t->now_us, rh_test_clock(t) * 1000);
    runtime_tick(t->runtime, t->now_us);
}

static void start_node(struct rh_test *t)
{
    const struct runtime_config config = {.on_completion = on_completion,
                                          .context = t,
                                          .broadcasting = &t->broadcasting,
                                          .numbering = &t->numbering,
                                          .on_store = t->store == NULL ? NULL : on_store,
                                          .store = t};

    t->runtime = runtime_new(&config);
    tell_time(t);
}

static void start_all(struct rh_test *t)
{
    is_a_test(t);
    if (t->started) {
        return;
    }
    t->started = true;
    t->durable = kinds_durable(&t->kinds) != NULL;
    t->store = t->durable ? actor_store_open("sqlite::memory:") : NULL;
    if (t->durable && t->store == NULL) {
        wrong("the store can't be opened");
    }
    start_node(t);
}

static void drop_tasks(struct rh_test *t)
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
        put_first(s, l);
    } else {
        end_by_text(t, l, RH_UNKNOWN, unknown);
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

static void crash(struct rh_test *t)
{
    t->killed = false;
    runtime_close(t->runtime, RH_FENCED);
    drop_tasks(t);
    drop_calls(&t->over);
    for (struct list_link *l = list_front(&t->puppets); l != NULL; l = list_next(&t->puppets, l)) {
        struct puppet *s = CONTAINER_OF(l, struct puppet, link);

        gone(s);
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
static bool store_one(struct rh_test *t)
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
        crash(t); // its actor knows the task to the end
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

static void scan(struct rh_test *t)
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

/* ---- one actor ---- */

static void activate(struct rh_test *t, struct puppet *s)
{
    const struct kind *kind = kinds_find(&t->kinds, s->kind);
    const struct runtime_entry entry = {
        .ops = &kind->ops,
        .shared = kind->shared,
        .actor = s,
        .id = buffer_bytes(&s->id),
        .state = buffer_bytes(&s->state),
        .has_state = s->moved && s->has_state,
        .state_version = kind->ops.state_version,
        .bond = s->moved ? buffer_bytes(&s->bond) : (struct bytes){0},
        .kind = s->kind,
        .fence = ++t->fence,
    };

    s->task = VERB_ACTIVATE;
    struct rh_actor *actor = runtime_activate(t->runtime, &entry);
    if (s->task == VERB_ACTIVATE || s->error == ERR_OK) {
        s->actor = actor;
    }
    s->moved = false;
}

static void run(struct rh_test *t, struct puppet *s)
{
    struct letter *l = CONTAINER_OF(list_pop_front(&s->mailbox), struct letter, link);
    const struct runtime_message message = {.ticket = l->ticket,
                                            .body = buffer_bytes(&l->body),
                                            .flags = l->flags,
                                            .again = l->again,
                                            .name = {.asker = 1, .number = l->ticket}};

    (void)t;
    s->running = l;
    s->task = VERB_RUN;
    runtime_run(s->actor, &message);
}

static void discard(struct puppet *s, enum rh_why why)
{
    runtime_discard(s->actor, why);
    gone(s);
}

/* Do the next thing of it. False: there is none. */
static bool go_on(struct rh_test *t, struct puppet *s)
{
    if (s->task != VERB_NONE) {
        return false;
    }
    if (s->actor == NULL) {
        const bool asked = !list_empty(&s->mailbox) || s->awake || s->moved;

        if (asked && t->now_us >= s->not_before_us) {
            activate(t, s);
            return true;
        }
        return false;
    }
    if (s->failed) {
        s->not_before_us = t->now_us + RETRY_US;
        discard(s, RH_BROKEN);
    } else if (s->poked) {
        s->poked = false;
        s->task = VERB_TURN;
        runtime_turn(s->actor, ++t->ticket);
    } else if (s->ends) {
        s->ends = false;
        s->task = VERB_RETIRE;
        runtime_retire(s->actor);
    } else if (!list_empty(&s->mailbox)) {
        run(t, s);
    } else {
        return false;
    }
    return true;
}

/* What waited for too long is answered. */
static bool expire(struct rh_test *t, struct puppet *s)
{
    for (struct list_link *l = list_front(&s->mailbox); l != NULL; l = list_next(&s->mailbox, l)) {
        struct letter *letter = CONTAINER_OF(l, struct letter, link);

        if (t->now_us >= letter->until_us) {
            list_remove(l);
            end_by_text(t, letter, RH_TIMEOUT, "TIMEOUT it did not run in time");
            return true;
        }
    }
    if (s->running != NULL && s->running->call != 0 && t->now_us >= s->running->until_us) {
        const struct call_answer answer = {.number = s->running->call, .status = RH_TIMEOUT};

        s->running->call = 0; // it may still run
        runtime_answer(t->runtime, &answer);
        return true;
    }
    return false;
}

static bool unhosted(struct rh_test *t, struct puppet *s)
{
    struct list_link *l = list_pop_front(&s->mailbox);

    if (l == NULL) {
        return false;
    }
    end_by_text(t, CONTAINER_OF(l, struct letter, link), RH_NO_KIND, "NOKIND nobody hosts it");
    return true;
}

/* ---- time ---- */

static bool all_go_on(struct rh_test *t)
{
    bool any = false;

    for (struct list_link *l = list_front(&t->puppets); l != NULL; l = list_next(&t->puppets, l)) {
        struct puppet *s = CONTAINER_OF(l, struct puppet, link);

        any = (kinds_find(&t->kinds, s->kind) == NULL ? unhosted(t, s)
                                                      : expire(t, s) || go_on(t, s)) ||
              any;
    }
    return any;
}

/* Do all that is to be done at this moment. */
static void settle(struct rh_test *t)
{
    bool any = true;

    tell_time(t);
    scan(t);
    while (any) {
        any = all_go_on(t);
        any = answer_one(t) || any;
        any = store_one(t) || any;
        runtime_tick(t->runtime, t->now_us);
    }
}

static void earlier(uint64_t *at_us, uint64_t us)
{
    *at_us = us < *at_us ? us : *at_us;
}

/* When something may happen next, `until_us` at the latest. */
static uint64_t next_us(const struct rh_test *t, uint64_t until_us)
{
    uint64_t at_us = until_us;

    earlier(&at_us, runtime_next_us(t->runtime));
    if (t->store != NULL) {
        earlier(&at_us, t->scan_us);
    }
    for (struct list_link *l = list_front(&t->puppets); l != NULL; l = list_next(&t->puppets, l)) {
        const struct puppet *s = CONTAINER_OF(l, struct puppet, link);
        struct list_link *first = list_front(&s->mailbox);

        if (s->actor == NULL && s->not_before_us > t->now_us) {
            earlier(&at_us, s->not_before_us);
        }
        if (first != NULL) {
            earlier(&at_us, CONTAINER_OF(first, struct letter, link)->until_us);
        }
        if (s->running != NULL && s->running->call != 0) {
            earlier(&at_us, s->running->until_us);
        }
    }
    return at_us > t->now_us ? at_us : t->now_us + 1000;
}

static void pass(struct rh_test *t, uint64_t until_us, bool until_answered)
{
    settle(t);
    while (t->now_us < until_us && !(until_answered && t->answered)) {
        const uint64_t at_us = next_us(t, until_us);

        t->now_us = at_us < until_us ? at_us : until_us;
        settle(t);
    }
}

/* ---- ringhold_test.h ---- */

struct rh_test *rh_test_new(void)
{
    struct rh_test *t = mem_new(1, sizeof *t);

    list_init(&t->puppets);
    list_init(&t->asked);
    list_init(&t->over);
    t->now_us = 1000000;
    return t;
}

static void puppet_free(struct puppet *s)
{
    struct list_link *link;

    while ((link = list_pop_front(&s->mailbox)) != NULL) {
        letter_free(CONTAINER_OF(link, struct letter, link));
    }
    if (s->running != NULL) {
        letter_free(s->running);
    }
    buffer_fini(&s->id);
    buffer_fini(&s->state);
    buffer_fini(&s->bond);
    buffer_fini(&s->pushes);
    mem_free(s);
}

void rh_test_free(struct rh_test *t)
{
    struct list_link *link;

    if (t == NULL) {
        return;
    }
    if (t->started) {
        runtime_close(t->runtime, RH_STOP);
        drop_tasks(t);
    }
    while ((link = list_pop_front(&t->over)) != NULL) {
        letter_free(CONTAINER_OF(link, struct letter, link));
    }
    if (t->store != NULL) {
        t->store->close(t->store);
    }
    while ((link = list_pop_front(&t->puppets)) != NULL) {
        puppet_free(CONTAINER_OF(link, struct puppet, link));
    }
    kinds_fini(&t->kinds);
    buffer_fini(&t->answer);
    buffer_fini(&t->text);
    mem_free(t);
}

int rh_test_host(struct rh_test *t, uint16_t kind, const struct rh_actor_ops *ops,
                 const char *argument)
{
    const struct rh_kind hosted = {.number = kind, .ops = ops, .argument = argument};

    is_a_test(t);
    if (t->started) {
        wrong("kinds are hosted before the first actor lives");
    }
    return kinds_add(&t->kinds, &hosted) == ERR_OK && kinds_start(&t->kinds, "test") == ERR_OK
               ? RH_OK
               : RH_INVALID;
}

const char *rh_test_call(struct rh_test *t, uint16_t kind, const char *id, const char *payload)
{
    struct puppet *s = named(t, kind, id);

    start_all(t);
    t->answered = false;
    t->status = RH_TIMEOUT;
    put_letter(t, s, 0, bytes_of_text(payload), DEADLINE_US)->asked = true;
    pass(t, t->now_us + DEADLINE_US, true);
    if (!t->answered) {
        if (s->running != NULL) {
            s->running->asked = false;
        }
        return text_of(t, bytes_of_text("TIMEOUT it got no answer in time"));
    }
    return text_of(t, buffer_bytes(&t->answer));
}

int rh_test_status(const struct rh_test *t)
{
    is_a_test(t);
    return t->status;
}

struct rh_bytes rh_test_bytes(const struct rh_test *t)
{
    is_a_test(t);
    return (struct rh_bytes){t->text.data, t->text.size == 0 ? 0 : t->text.size - 1};
}

void rh_test_send(struct rh_test *t, uint16_t kind, const char *id, const char *payload)
{
    struct puppet *s = named(t, kind, id);

    start_all(t);
    (void)put_letter(t, s, REQUEST_NO_REPLY, bytes_of_text(payload), SEND_US);
    settle(t);
}

void rh_test_advance(struct rh_test *t, uint32_t ms)
{
    start_all(t);
    pass(t, t->now_us + (uint64_t)ms * 1000, false);
}

uint64_t rh_test_clock(const struct rh_test *t)
{
    is_a_test(t);
    return BEGIN_MS + (t->now_us - 1000000) / 1000;
}

void rh_test_on_time(struct rh_test *t, void (*moved)(void *context, uint64_t clock_ms),
                     void *context)
{
    is_a_test(t);
    t->on_time = moved;
    t->on_time_context = context;
    moved(context, rh_test_clock(t));
}

int rh_test_move(struct rh_test *t, uint16_t kind, const char *id)
{
    struct puppet *s = named(t, kind, id);

    if (s->actor == NULL || s->task != VERB_NONE) {
        return s->actor == NULL ? RH_GONE : RH_BUSY;
    }
    s->task = VERB_EXPORT;
    runtime_export(s->actor);
    for (size_t i = 0; s->task == VERB_EXPORT && i < DEADLINE_US / 1000; i++) {
        t->now_us += 1000; // it may finish later
        tell_time(t);
        (void)store_one(t);
    }
    if (s->task == VERB_EXPORT || s->error == ERR_BUSY) {
        return RH_BUSY;
    }
    s->moved = true;
    s->has_state = s->error == ERR_OK && s->has_state;
    discard(s, RH_MOVED);
    settle(t);
    return RH_OK;
}

int rh_test_lives(const struct rh_test *t, uint16_t kind, const char *id)
{
    const struct puppet *s = find(t, kind, id_of(t, kind, id));

    return s != NULL && s->actor != NULL && s->task != VERB_ACTIVATE ? 1 : 0;
}

void rh_test_crash(struct rh_test *t)
{
    start_all(t);
    crash(t);
}

void rh_test_commits(struct rh_test *t, enum rh_test_commits how, uint32_t count)
{
    is_a_test(t);
    t->how = how;
    t->how_many = how == RH_TEST_COMMITS_GOOD ? 0 : count;
}

static void put_note(struct rh_test *t, struct puppet *s, const struct note *note)
{
    struct buffer body = {0};

    note_put(&body, note);
    t->answered = false;
    put_letter(t, s, REQUEST_SESSION, buffer_bytes(&body), DEADLINE_US)->asked = true;
    buffer_fini(&body);
    pass(t, t->now_us + DEADLINE_US, true);
}

int rh_test_bind(struct rh_test *t, uint16_t kind, const char *id)
{
    struct puppet *s = named(t, kind, id);
    const struct note note = {
        .type = NOTE_BIND, .gateway = 1, .connection = ++t->connections, .round = 1};
    struct bound bound;

    start_all(t);
    put_note(t, s, &note);
    if (!t->answered || bound_get(buffer_bytes(&t->answer), &bound) != ERR_OK ||
        (bound.result != BOUND_NEW && bound.result != BOUND_KEPT)) {
        return RH_FAILED;
    }
    s->connection = note.connection;
    return RH_OK;
}

void rh_test_leave(struct rh_test *t, uint16_t kind, const char *id)
{
    struct puppet *s = named(t, kind, id);
    const struct note note = {
        .type = NOTE_LOST, .gateway = 1, .connection = s->connection, .why = NOTE_LOST_CLOSED};

    if (s->connection != 0) {
        s->connection = 0;
        put_note(t, s, &note);
    }
}

const char *rh_test_pushed(struct rh_test *t, uint16_t kind, const char *id)
{
    struct puppet *s = named(t, kind, id);
    uint64_t size;

    if (s->pushes_read == s->pushes.size) {
        return NULL;
    }
    memcpy(&size, s->pushes.data + s->pushes_read, sizeof size);
    const struct bytes bytes =
        bytes_of(s->pushes.data + s->pushes_read + sizeof size, (size_t)size);
    s->pushes_read += sizeof size + (size_t)size;
    return text_of(t, bytes);
}
