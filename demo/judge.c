/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares the clients' ledger with the actors' journals, and names what does
 * not fit.
 */
#include "demo/judge.h"

#include "base/list.h"
#include "base/mem.h"
#include "base/table.h"
#include "demo/journal.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { JOURNALS_MAX = 32, NOWHERE = -1 };

/* What one id's journal entries added up to so far. */
struct judged_id {
    struct table_link by_hash;
    uint32_t id;
    int live_at; /* journal, or NOWHERE */
    bool ran;
    bool activated;
};

struct court {
    const struct load *load;
    struct journal_view journal[JOURNALS_MAX];
    size_t next[JOURNALS_MAX]; /* record to look at */
    size_t journal_count;
    struct judged_id *ids; /* owned */
    struct table by_hash;
    uint32_t *last;   /* owned; by client and id: the highest seq run */
    uint64_t *offset; /* owned; by client and id: into ran */
    uint8_t *ran;     /* owned; how often each request ran, at most 255 */
    uint64_t sent;
    struct verdict *verdict;
};

static bool open_journals(struct court *c, const char *folder)
{
    DIR *directory = opendir(folder);
    struct dirent *entry = NULL;

    if (directory == NULL) {
        (void)fprintf(stderr, "ringhold demo: can't read %s\n", folder);
        return false;
    }
    while ((entry = readdir(directory)) != NULL && c->journal_count < JOURNALS_MAX) {
        char path[4096];

        if (strstr(entry->d_name, ".journal") == NULL) {
            continue;
        }
        (void)snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        const enum err error = journal_view_open(&c->journal[c->journal_count], path);
        if (error != ERR_OK) {
            (void)fprintf(stderr, "ringhold demo: can't read %s: %s\n", path, err_text(error));
            (void)closedir(directory);
            return false;
        }
        c->journal_count++;
    }
    (void)closedir(directory);
    return true;
}

static void close_journals(struct court *c)
{
    for (size_t i = 0; i < c->journal_count; i++) {
        journal_view_close(&c->journal[i]);
    }
}

static void index_requests(struct court *c)
{
    const uint32_t count = load_id_count(c->load);
    char name[32];

    c->ids = mem_new(count, sizeof *c->ids);
    c->last = mem_new((size_t)count * LOAD_CLIENTS, sizeof *c->last);
    c->offset = mem_new((size_t)count * LOAD_CLIENTS, sizeof *c->offset);
    for (uint32_t id = 0; id < count; id++) {
        struct judged_id *j = &c->ids[id];

        load_id_name(c->load, id, name, sizeof name);
        j->id = id;
        j->live_at = NOWHERE;
        table_put(&c->by_hash, &j->by_hash, journal_id_hash(bytes_of(name, strlen(name))));
        for (uint32_t client = 1; client <= LOAD_CLIENTS; client++) {
            c->offset[(size_t)id * LOAD_CLIENTS + client - 1] = c->sent;
            c->sent += load_sent_to(c->load, client, id);
        }
    }
    c->ran = mem_new(c->sent, 1);
}

static void accuse(struct court *c, uint64_t *counter, const char *what, const struct judged_id *j,
                   const struct journal_record *r)
{
    ++*counter;
    if (c->verdict->first[0] == '\0') {
        char name[32];

        load_id_name(c->load, j->id, name, sizeof name);
        (void)snprintf(c->verdict->first,
                       sizeof c->verdict->first,
                       "%s: id %s client %" PRIu32 " seq %" PRIu64 " at %" PRIu64 " ns",
                       what,
                       name,
                       r->client,
                       r->seq,
                       r->time_ns);
    }
}

static void judge_run(struct court *c, struct judged_id *j, const struct journal_record *r, int at)
{
    struct verdict *v = c->verdict;

    if (r->client == 0 || r->client > LOAD_CLIENTS || r->seq == 0 ||
        r->seq > load_sent_to(c->load, r->client, j->id)) {
        accuse(c, &v->duplicated, "ran what nobody sent", j, r);
        return;
    }
    const size_t lane = (size_t)j->id * LOAD_CLIENTS + r->client - 1;
    uint8_t *times = &c->ran[c->offset[lane] + r->seq - 1];
    v->runs++;
    v->ids += j->ran ? 0 : 1;
    j->ran = true;
    *times = (uint8_t)(*times == UINT8_MAX ? UINT8_MAX : *times + 1);
    if (j->live_at != at) {
        accuse(c, &v->live_twice, "ran where it was not live", j, r);
    }
    if (*times > 1) {
        accuse(c, &v->duplicated, "ran twice", j, r);
    } else if (r->seq < c->last[lane]) {
        accuse(c, &v->out_of_order, "ran after a later one", j, r);
    }
    c->last[lane] = r->seq > c->last[lane] ? (uint32_t)r->seq : c->last[lane];
}

static void judge_life(struct court *c, struct judged_id *j, const struct journal_record *r, int at)
{
    const bool begins = r->event == JOURNAL_ACTIVATE || r->event == JOURNAL_RESUME;

    if (begins) {
        if (j->live_at != NOWHERE) {
            accuse(c, &c->verdict->live_twice, "live twice", j, r);
        }
        c->verdict->moved += j->activated && r->event == JOURNAL_ACTIVATE ? 1 : 0;
        j->activated = true;
        j->live_at = at;
    } else if (j->live_at == at) {
        j->live_at = NOWHERE;
    }
}

static void judge_record(struct court *c, const struct journal_record *r, int at)
{
    struct table_link *found = table_first(&c->by_hash, r->id_hash);

    if (found == NULL) {
        c->verdict->duplicated++; // An id that no client knows.
        return;
    }
    struct judged_id *j = CONTAINER_OF(found, struct judged_id, by_hash);
    switch ((enum journal_event)r->event) {
    case JOURNAL_RUN_BEGIN:
        judge_run(c, j, r, at);
        break;
    case JOURNAL_RUN_END:
        break;
    case JOURNAL_ACTIVATE:
    case JOURNAL_RESUME:
    case JOURNAL_EXPORT:
    case JOURNAL_DISCARD:
        judge_life(c, j, r, at);
        break;
    }
}

/* The journal whose next record is the earliest of all; NOWHERE when all are read. */
static int earliest(const struct court *c)
{
    int first = NOWHERE;

    for (size_t i = 0; i < c->journal_count; i++) {
        if (c->next[i] < c->journal[i].count &&
            (first == NOWHERE || c->journal[i].record[c->next[i]].time_ns <
                                     c->journal[first].record[c->next[first]].time_ns)) {
            first = (int)i;
        }
    }
    return first;
}

bool judge(const char *folder, const struct load *load, struct verdict *out)
{
    struct court c = {.load = load, .verdict = out};
    int at = NOWHERE;

    *out = (struct verdict){0};
    if (!open_journals(&c, folder)) {
        close_journals(&c);
        return false;
    }
    index_requests(&c);
    out->nodes = c.journal_count;
    while ((at = earliest(&c)) != NOWHERE) {
        judge_record(&c, &c.journal[at].record[c.next[at]++], at);
    }
    for (uint64_t i = 0; i < c.sent; i++) {
        out->lost += c.ran[i] == 0 ? 1 : 0;
    }
    close_journals(&c);
    table_fini(&c.by_hash);
    mem_free(c.ids);
    mem_free(c.last);
    mem_free(c.offset);
    mem_free(c.ran);
    return true;
}

uint64_t judge_activated(const char *folder, const char *node)
{
    struct court c = {0};
    uint64_t count = 0;

    if (open_journals(&c, folder)) {
        for (size_t i = 0; i < c.journal_count; i++) {
            for (size_t r = 0; strcmp(c.journal[i].node, node) == 0 && r < c.journal[i].count;
                 r++) {
                count += c.journal[i].record[r].event == JOURNAL_ACTIVATE ? 1 : 0;
            }
        }
    }
    close_journals(&c);
    return count;
}
