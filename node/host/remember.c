/* SPDX-License-Identifier: Apache-2.0
 *
 * What the fleet is told of actors whose ids it remembers, and what it tells.
 */
#include "node/host/inside.h"

#include "base/mem.h"
#include "base/mutant.h"
#include "wire/control.h"

#include <string.h>

enum {
    /* Ids that wait to be started while the next page is asked for: a page more is all that the
     * node ever holds. */
    RECALL_BELOW = 1000,
};

/* Not acknowledged yet. */
struct told_row {
    struct list_link link;
    uint64_t position;
    uint16_t kind;
    bool forget;
    uint8_t id_size;
    uint8_t id[];
};

void remember_init(struct remember *r)
{
    list_init(&r->rows);
}

static void drop_first(struct remember *r)
{
    mem_free(CONTAINER_OF(list_pop_front(&r->rows), struct told_row, link));
    r->count--;
}

void remember_forget(struct remember *r)
{
    while (r->count > 0) {
        drop_first(r);
    }
    r->sent = 0;
    r->recalling = r->unsure = false;
}

static bool is_remembered(const struct host *h, const struct actor *a)
{
    const struct kind_state *kind = host_kind_find(h, a->kind);

    return kind != NULL && kind->how->remember;
}

/* ---- telling ---- */

static bool put(struct host *h, const struct actor *a, bool forget)
{
    struct remember *r = &h->remember;

    if (r->count >= REMEMBER_ROWS_MAX) {
        r->dropped++;
        return false;
    }
    struct told_row *told = mem_new(1, sizeof *told + a->id_size);
    told->position = a->position;
    told->kind = a->kind;
    told->forget = forget;
    told->id_size = a->id_size;
    memcpy(told->id, a->id, a->id_size);
    list_push_back(&r->rows, &told->link);
    r->heard_us = r->count == 0 ? h->now_us : r->heard_us;
    r->count++;
    return true;
}

static void ask(struct host *h, struct actor *a)
{
    if (put(h, a, false)) {
        a->memory = MEMORY_ASKED;
    }
}

bool remember_holds(struct host *h, struct actor *a)
{
    if (!is_remembered(h, a) || a->memory == MEMORY_KNOWN || mutant(M_UNTOLD)) {
        return false;
    }
    if (a->memory == MEMORY_NONE) {
        ask(h, a);
    }
    h->remember.unsure_total += h->remember.unsure ? 1 : 0;
    return a->memory != MEMORY_NONE && !h->remember.unsure;
}

bool remember_puts_off(struct host *h, struct actor *a)
{
    if (!remember_holds(h, a)) {
        return false;
    }
    wake_unlist(h, a);
    a->wanted = false;
    return true;
}

void remember_started(struct host *h, struct actor *a)
{
    if (is_remembered(h, a) && a->memory == MEMORY_NONE) {
        ask(h, a);
    }
}

void remember_ended(struct host *h, struct actor *a)
{
    if (is_remembered(h, a) && a->memory != MEMORY_NONE) {
        a->memory = put(h, a, true) ? MEMORY_LEAVING : MEMORY_NONE;
    }
}

bool remember_arrived(struct host *h, struct actor *a)
{
    const struct image *image = actor_image(a);
    const bool has_state = image != NULL && image->has_state;

    if (!is_remembered(h, a)) {
        a->memory = a->memory == MEMORY_KNOWN ? MEMORY_KNOWN : MEMORY_NONE;
        return false;
    }
    if (a->memory == MEMORY_LEAVING) {
        a->memory = put(h, a, true) ? MEMORY_LEAVING : MEMORY_NONE;
        return false;
    }
    if (a->memory == MEMORY_ASKED) { // perhaps nobody was ever let in to it
        a->memory = MEMORY_NONE;
        ask(h, a);
    }
    return a->memory == MEMORY_KNOWN || (a->memory == MEMORY_NONE && has_state);
}

/* A row as it leaves. */
struct leaving_row {
    Rh__RememberRow row;
    Rh__Actor actor;
};

static void send_rows(struct host *h)
{
    struct remember *r = &h->remember;
    Rh__Control c = RH__CONTROL__INIT;
    Rh__Remember body = RH__REMEMBER__INIT;

    if (r->sent == 0) { // else the same again
        r->sent = r->count < REMEMBER_AT_ONCE ? r->count : REMEMBER_AT_ONCE;
        r->number++;
    }
    struct leaving_row *leaving = mem_new(r->sent, sizeof *leaving);
    body.number = r->number;
    body.rows = mem_new(r->sent, sizeof(Rh__RememberRow *));
    for (struct list_link *l = list_front(&r->rows); body.n_rows < r->sent;
         l = list_next(&r->rows, l)) {
        struct told_row *told = CONTAINER_OF(l, struct told_row, link);
        struct leaving_row *at = &leaving[body.n_rows];

        *at = (struct leaving_row){RH__REMEMBER_ROW__INIT, RH__ACTOR__INIT};
        at->actor.kind = told->kind;
        at->actor.id = proto_bytes(bytes_of(told->id, told->id_size));
        at->row.actor = &at->actor;
        at->row.forget = told->forget;
        body.rows[body.n_rows++] = &at->row;
    }
    r->send_us = h->now_us + (uint64_t)h->config.resend_ms * 1000;
    c.body_case = RH__CONTROL__BODY_REMEMBER;
    c.remember = &body;
    host_tell(h, leader_of(&h->membership), &c);
    mem_free(body.rows);
    mem_free(leaving);
}

static struct actor *actor_of(const struct host *h, const struct told_row *told)
{
    return actor_find(&h->actors,
                      (struct image_name){.position = told->position,
                                          .kind = told->kind,
                                          .id = bytes_of(told->id, told->id_size)});
}

/* `stale`: the fleet does not take my word of it. If it is still here I own it again, or will learn
 * that I do not: it is told anew if that is wanted. */
static void on_told(struct host *h, const struct told_row *told, bool stale)
{
    struct actor *a = actor_of(h, told);

    if (a == NULL || a->memory != (told->forget ? MEMORY_LEAVING : MEMORY_ASKED)) {
        return; // it has gone, or did something else since
    }
    actor_changed(a); // its image would say so
    if (stale || told->forget) {
        a->memory = MEMORY_NONE;
        if (a->live) {
            remember_started(h, a);
        }
    } else {
        a->memory = MEMORY_KNOWN;
        // Whoever is remembered lives, though the request that wanted it may be over.
        a->wanted = a->wanted || (!a->live && a->state != ACTOR_ACTIVATING);
    }
    actor_proceed(h, a);
}

void remember_on_remembered(struct host *h, const Rh__Remembered *in)
{
    struct remember *r = &h->remember;

    if (r->sent == 0 || in->number != r->number) {
        return;
    }
    r->refused += in->full + in->n_stale;
    r->heard_us = h->now_us;
    r->unsure = false;
    for (uint32_t i = 0, stale = 0; i < r->sent; i++) {
        const bool is_stale = stale < in->n_stale && in->stale[stale] == i;

        stale += is_stale ? 1 : 0;
        on_told(h, CONTAINER_OF(list_front(&r->rows), struct told_row, link), is_stale);
        drop_first(r);
    }
    r->sent = 0;
}

/* Nobody answers: who waits goes on. */
static void lose_patience(struct host *h)
{
    struct remember *r = &h->remember;

    r->unsure = true;
    for (struct list_link *l = list_front(&r->rows); l != NULL; l = list_next(&r->rows, l)) {
        struct actor *a = actor_of(h, CONTAINER_OF(l, struct told_row, link));

        if (a != NULL && a->state == ACTOR_ABSENT && actor_waiting(a) > 0) {
            actor_proceed(h, a);
        }
    }
}

void remember_soon(struct remember *r)
{
    r->send_us = r->ask_us = 0;
}

void remember_go_on(struct host *h)
{
    if (h->remember.count > 0 && h->remember.sent == 0 && leader_of(&h->membership) >= 0) {
        send_rows(h);
    }
}

/* ---- recalling ---- */

/* From that kind on the first that is remembered; false: there is none. */
static bool find_kind(struct host *h, size_t from)
{
    h->remember.kind = from;
    h->remember.after_size = 0;
    while (h->remember.kind < h->config.kind_count && !h->config.kinds[h->remember.kind].remember) {
        h->remember.kind++;
    }
    return h->remember.kind < h->config.kind_count;
}

void remember_recall(struct host *h)
{
    h->remember.recalling = find_kind(h, 0) && !mutant(M_NORECALL);
    h->remember.ask_us = h->now_us;
}

static void ask_page(struct host *h)
{
    struct remember *r = &h->remember;
    Rh__Control c = RH__CONTROL__INIT;
    Rh__Recall body = RH__RECALL__INIT;

    body.kind = h->config.kinds[r->kind].number;
    body.after = proto_bytes(bytes_of(r->after, r->after_size));
    r->ask_us = h->now_us + (uint64_t)h->config.resend_ms * 1000;
    c.body_case = RH__CONTROL__BODY_RECALL;
    c.recall = &body;
    host_tell(h, leader_of(&h->membership), &c);
}

/* It is told once more before it starts, as the page may have been read before it was forgotten:
 * rows of a page leave together. */
static void wake(struct host *h, uint16_t kind, struct bytes id)
{
    const struct image_name name = {.position = host_position(h, kind, id), .kind = kind, .id = id};
    struct actor *a = actor_find(&h->actors, name);

    if (a != NULL && (a->memory == MEMORY_ASKED || a->memory == MEMORY_LEAVING)) {
        return; // what is on its way says what becomes of it
    }
    wake_on_wake(h, kind, id);
    a = actor_find(&h->actors, name);
    if (a != NULL && a->wanted && a->state == ACTOR_ABSENT) {
        (void)remember_puts_off(h, a);
    }
}

void remember_on_recalled(struct host *h, const Rh__Recalled *in)
{
    struct remember *r = &h->remember;

    if (!r->recalling || in->kind != h->config.kinds[r->kind].number ||
        !bytes_equal(bytes_of(in->after.data, in->after.len), bytes_of(r->after, r->after_size)) ||
        in->next.len > RECORD_ID_MAX) {
        return; // of a question before
    }
    for (size_t i = 0; i < in->n_ids; i++) {
        if (in->ids[i].len >= 1 && in->ids[i].len <= RECORD_ID_MAX) {
            wake(h, (uint16_t)in->kind, bytes_of(in->ids[i].data, in->ids[i].len));
        }
    }
    r->ask_us = h->now_us;
    if (in->next.len > 0) {
        r->after_size = (uint8_t)in->next.len;
        memcpy(r->after, in->next.data, in->next.len);
    } else {
        r->recalling = find_kind(h, r->kind + 1);
    }
}

void remember_on_forgotten(struct host *h, const Rh__Forgotten *in)
{
    const Rh__Actor *actor = in->actor;

    if (h->membership.life != LIFE_SERVING || actor == NULL || actor->kind > UINT16_MAX ||
        actor->id.len < 1 || actor->id.len > RECORD_ID_MAX ||
        !host_has_kind(h, (uint16_t)actor->kind)) {
        return;
    }
    const struct bytes id = bytes_of(actor->id.data, actor->id.len);
    const uint16_t kind = (uint16_t)actor->kind;
    struct actor *a = actor_find(
        &h->actors,
        (struct image_name){.position = host_position(h, kind, id), .kind = kind, .id = id});

    if (a != NULL && is_remembered(h, a)) {
        if (!a->live && a->memory == MEMORY_KNOWN) {
            a->memory = MEMORY_NONE;
        }
        always_stop(h, a);
    }
}

void remember_tick(struct host *h)
{
    struct remember *r = &h->remember;
    const bool led = leader_of(&h->membership) >= 0;

    if (led && r->sent > 0 && h->now_us >= r->send_us) {
        send_rows(h);
    }
    if (!r->unsure && r->count > 0 &&
        h->now_us - r->heard_us >= (uint64_t)REMEMBER_PATIENCE_MS * 1000) {
        lose_patience(h);
    }
    if (led && r->recalling && h->now_us >= r->ask_us &&
        h->autostart.count + r->count < RECALL_BELOW && h->membership.life == LIFE_SERVING) {
        ask_page(h);
    }
}
