/* SPDX-License-Identifier: Apache-2.0
 *
 * Claims actors in one store by the fences that they have, page by page, and makes them in another,
 * with the same fences and numbers of commits: sends and what was taken of them count by those.
 */
#include "storage/actors/migrate.h"

#include "base/history.h"
#include "base/mutant.h"
#include "base/table.h"
#include "storage/actors/changes.h"
#include "storage/actors/whole.h"

#include <stdio.h>
#include <string.h>

enum {
    PAGE_SIZE = 4 * 1024 * 1024,  /* about: of a page of actors, if they have no more each */
    PIECE_SIZE = 8 * 1024 * 1024, /* of a commit … */
    PIECE_ROWS = 16384,           /* … which has no more of these */
};

/* Of all actors, in whatever order they come. */
struct sum {
    uint64_t actors;
    uint64_t digest[2];
};

struct page {
    struct store_task *task[WHOLE_PAGE_MAX]; /* owned */
    size_t count;
    size_t max; /* the next one has */
};

struct copy {
    const struct store_migration *m;
    struct whole_store *from;
    struct whole_store *to;
    struct store_figures figures; /* of the source */
    char *why;
};

static enum err fail(char why[STORE_TOOLS_WHY_SIZE], enum err error, const char *text)
{
    (void)snprintf(why, STORE_TOOLS_WHY_SIZE, "%s", text);
    return error;
}

/* ---- digests ---- */

struct digest {
    uint64_t word[2];
};

static void mix(struct digest *d, uint64_t value)
{
    d->word[0] = table_mix(d->word[0] ^ value);
    d->word[1] = table_mix(d->word[1] + 0x9e3779b97f4a7c15u + value);
}

static void mix_bytes(struct digest *d, struct bytes bytes)
{
    uint64_t word;

    mix(d, bytes.size);
    while (bytes.size > 0) {
        const size_t size = bytes.size < sizeof word ? bytes.size : sizeof word;

        word = 0;
        memcpy(&word, bytes.data, size);
        mix(d, word);
        bytes = bytes_of(bytes.data + size, bytes.size - size);
    }
}

/* `number`: of its last commit. */
static void sum_add(struct sum *s, const struct store_task *t, uint64_t number)
{
    struct bytes all = buffer_bytes(&t->bytes);
    struct digest d = {{t->kind, number}};
    struct store_change c;

    mix_bytes(&d, bytes_of(t->id, t->id_size));
    mix(&d, t->fence);
    while (changes_next(&all, &c)) {
        mix(&d, c.of);
        mix_bytes(&d, c.key);
        mix_bytes(&d, c.bytes);
        mix(&d, c.due_ms);
        mix(&d, c.every_ms);
    }
    s->actors++;
    s->digest[0] += d.word[0];
    s->digest[1] += d.word[1];
}

/* ---- pages of actors ---- */

static void page_clear(struct page *p)
{
    for (size_t i = 0; i < p->count; i++) {
        store_task_free(p->task[i]);
    }
    p->count = 0;
}

/* "actor 0/boss-7: `text`" */
static enum err fail_of(char why[STORE_TOOLS_WHY_SIZE], const struct store_task *t,
                        const char *text)
{
    char id[HISTORY_WORD_SIZE];

    (void)snprintf(why,
                   STORE_TOOLS_WHY_SIZE,
                   "actor %u/%.80s: %s",
                   t->kind,
                   history_word(bytes_of(t->id, t->id_size), id),
                   text);
    return ERR_CORRUPT;
}

/* A page that was small is followed by a larger one: its actors are in memory all at once. */
static size_t next_max(const struct page *p)
{
    size_t size = 0;

    for (size_t i = 0; i < p->count; i++) {
        size += p->task[i]->bytes.size;
    }
    if (size >= PAGE_SIZE) {
        return p->max > 1 ? p->max / 2 : 1;
    }
    return p->max * 2 < WHOLE_PAGE_MAX ? p->max * 2 : WHOLE_PAGE_MAX;
}

/* Read the next actors, and all that they have. None: that was all. */
static enum err page_read(struct page *p, struct whole_store *w, char why[STORE_TOOLS_WHY_SIZE])
{
    page_clear(p);
    if (!w->list(w, p->max, p->task, &p->count)) {
        return fail(why, ERR_IO, w->why);
    }
    w->store->perform(w->store, p->task, p->count);
    for (size_t i = 0; i < p->count; i++) {
        if (p->task[i]->result != STORE_DONE) {
            return fail_of(why, p->task[i], "it can't be read; ringhold store check");
        }
    }
    p->max = next_max(p);
    return ERR_OK;
}

/* ---- writing ---- */

/* Take what one commit may have off the front. */
static struct bytes piece_of(struct bytes *rest)
{
    const struct bytes from = *rest;
    struct store_change c;

    for (size_t rows = 0; rows < PIECE_ROWS && from.size - rest->size < PIECE_SIZE; rows++) {
        if (!changes_next(rest, &c)) {
            break;
        }
    }
    return bytes_of(from.data, from.size - rest->size);
}

static uint64_t pieces_of(struct bytes all)
{
    uint64_t count = 1;

    (void)piece_of(&all);
    for (; all.size > 0; count++) {
        (void)piece_of(&all);
    }
    return count;
}

/* Its last commit in the copy: that of the source, unless it had fewer than there are pieces. */
static uint64_t last_number(const struct store_task *claimed)
{
    const uint64_t pieces = pieces_of(buffer_bytes(&claimed->bytes));

    return claimed->number > pieces ? claimed->number : pieces;
}

/* The next commits of actors that were read, one of each that has something left. */
struct round {
    struct bytes rest[WHOLE_PAGE_MAX]; /* of the page */
    struct store_task *commit[WHOLE_PAGE_MAX];
    size_t count;
};

static void round_add(struct round *r, const struct store_task *claimed, struct bytes *rest)
{
    struct store_task *t = store_task_new(STORE_COMMIT);
    const struct bytes piece = piece_of(rest);
    const uint64_t left = rest->size == 0 ? 0 : pieces_of(*rest);

    t->kind = claimed->kind;
    t->id_size = claimed->id_size;
    memcpy(t->id, claimed->id, sizeof t->id);
    t->fence = claimed->fence;
    t->number = last_number(claimed) - left;
    buffer_put(&t->bytes, piece.data, piece.size);
    r->commit[r->count++] = t;
}

static enum err round_write(struct round *r, struct whole_store *to, bool first,
                            char why[STORE_TOOLS_WHY_SIZE])
{
    enum err error = ERR_OK;

    if (first && !to->adopt(to, r->commit, r->count)) {
        return fail(why, ERR_IO, to->why);
    }
    to->store->perform(to->store, r->commit, r->count);
    for (size_t i = 0; i < r->count && error == ERR_OK; i++) {
        if (r->commit[i]->result != STORE_DONE) {
            error = fail_of(why, r->commit[i], "it can't be written into the target");
        }
    }
    return error;
}

static enum err page_write(const struct page *p, struct whole_store *to,
                           char why[STORE_TOOLS_WHY_SIZE])
{
    struct round r = {.count = 0};
    enum err error = ERR_OK;
    bool first = true;

    for (size_t i = 0; i < p->count; i++) {
        r.rest[i] = buffer_bytes(&p->task[i]->bytes);
    }
    do {
        r.count = 0;
        for (size_t i = 0; i < p->count; i++) {
            if (first || r.rest[i].size > 0) {
                round_add(&r, p->task[i], &r.rest[i]);
            }
        }
        error = r.count > 0 ? round_write(&r, to, first, why) : ERR_OK;
        for (size_t i = 0; i < r.count; i++) {
            store_task_free(r.commit[i]);
        }
        first = false;
    } while (r.count > 0 && error == ERR_OK);
    return error;
}

/* ---- all of it ---- */

static void progress(const struct copy *c, const struct sum *s, bool reads_back)
{
    const struct store_progress p = {
        .reads_back = reads_back, .actors = s->actors, .of = c->figures.actors};

    if (c->m->on_progress != NULL) {
        c->m->on_progress(c->m->context, &p);
    }
}

/* Read one of them, and write it into `to`, unless that is NULL. */
static enum err read_all(const struct copy *c, struct whole_store *from, struct whole_store *to,
                         struct sum *sum)
{
    struct page p = {.max = 1};
    enum err error;

    do {
        error = page_read(&p, from, c->why);
        for (size_t i = 0; i < p.count && error == ERR_OK; i++) {
            sum_add(sum, p.task[i], to == NULL ? p.task[i]->number : last_number(p.task[i]));
        }
        if (error == ERR_OK && to != NULL) {
            error = page_write(&p, to, c->why);
        }
        progress(c, sum, to == NULL);
    } while (error == ERR_OK && p.count > 0);
    page_clear(&p);
    return error;
}

/* Each row is of an actor: else some of them were not copied. */
static bool is_as_much(const struct store_figures *a, const struct store_figures *b)
{
    return a->actors == b->actors && a->values == b->values && a->value_bytes == b->value_bytes &&
           a->answers == b->answers && a->answer_bytes == b->answer_bytes &&
           a->alarms == b->alarms && a->alarm_bytes == b->alarm_bytes && a->sends == b->sends &&
           a->send_bytes == b->send_bytes && a->taken == b->taken;
}

static bool is_empty(const struct store_figures *f)
{
    const struct store_figures nothing = {0};

    return is_as_much(f, &nothing);
}

static enum err make_way(const struct copy *c)
{
    struct store_figures there = {0};

    if (!c->to->figures(c->to, &there)) {
        return fail(c->why, ERR_IO, c->to->why);
    }
    if (c->to->version == STORE_UNFINISHED) {
        return c->m->again
                   ? (c->to->clear(c->to) ? ERR_OK : fail(c->why, ERR_IO, c->to->why))
                   : fail(c->why,
                          ERR_CONFLICT,
                          "a copy into the target was not finished: give --again to delete what is "
                          "in it, and to begin anew");
    }
    if (!is_empty(&there)) {
        return fail(c->why, ERR_CONFLICT, "the target is not empty");
    }
    return mutant(M_HALFCOPY) || c->to->set_version(c->to, STORE_UNFINISHED)
               ? ERR_OK
               : fail(c->why, ERR_IO, c->to->why);
}

static enum err compare(const struct copy *c, const struct sum *sum, struct store_figures *out)
{
    struct sum found = {0};
    const enum err error = read_all(c, c->to, NULL, &found);

    if (error != ERR_OK) {
        return error;
    }
    if (!c->to->figures(c->to, out)) {
        return fail(c->why, ERR_IO, c->to->why);
    }
    if (memcmp(&found, sum, sizeof found) != 0) {
        return fail(c->why, ERR_CORRUPT, "the copy is another one than the source: do it --again");
    }
    if (!is_as_much(&c->figures, out)) {
        return fail(c->why,
                    ERR_CORRUPT,
                    "the source has rows that are of no actor, which were not copied; ringhold "
                    "store check names them");
    }
    return ERR_OK;
}

static enum err copy_all(struct copy *c, struct store_figures *out)
{
    struct sum sum = {0};
    enum err error = ERR_OK;

    if (!c->from->figures(c->from, &c->figures)) {
        return fail(c->why, ERR_IO, c->from->why);
    }
    error = make_way(c);
    error = error == ERR_OK ? read_all(c, c->from, c->to, &sum) : error;
    error = error == ERR_OK ? compare(c, &sum, out) : error;
    if (error == ERR_OK && !c->to->set_version(c->to, STORE_VERSION)) {
        error = fail(c->why, ERR_IO, c->to->why);
    }
    return error;
}

/* Which of the two it is about, before what is wrong with it. */
static enum err open_one(const char *which, const char *name, enum whole_use use,
                         struct whole_store **out, char why[STORE_TOOLS_WHY_SIZE])
{
    char fault[STORE_TOOLS_WHY_SIZE];
    const enum err error = whole_open(name, use, out, fault);

    if (error != ERR_OK) {
        (void)snprintf(why, STORE_TOOLS_WHY_SIZE, "%s: %.290s", which, fault);
    }
    return error;
}

enum err store_migrate(const struct store_migration *m, struct store_figures *out,
                       char why[STORE_TOOLS_WHY_SIZE])
{
    struct copy c = {.m = m, .why = why};
    enum err error = open_one("the source", m->from, WHOLE_ALONE, &c.from, why);

    *out = (struct store_figures){0};
    error = error == ERR_OK ? open_one("the target", m->to, WHOLE_TARGET, &c.to, why) : error;
    error = error == ERR_OK ? copy_all(&c, out) : error;
    if (c.to != NULL) {
        c.to->close(c.to);
    }
    if (c.from != NULL) {
        c.from->close(c.from);
    }
    return error;
}

enum err store_schema_version(const char *name, uint64_t *version, char why[STORE_TOOLS_WHY_SIZE])
{
    struct whole_store *w;
    const enum err error = whole_open(name, WHOLE_BESIDE, &w, why);

    if (error == ERR_OK) {
        *version = w->version;
        w->close(w);
    }
    return error;
}
