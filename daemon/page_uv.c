/* SPDX-License-Identifier: Apache-2.0
 *
 * Hands a page's request from the HTTP thread to the loop, and the page back,
 * with a deadline.
 */
#include "daemon/page_uv.h"

#include "base/mem.h"
#include "wire/access.h"
#include "wire/refusals.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

enum question { QUESTION_NONE, QUESTION_ASKED, QUESTION_ANSWERED };

struct pages {
    pthread_mutex_t one;  /* the asker's turn */
    pthread_mutex_t lock; /* all below */
    pthread_cond_t answered;
    uv_async_t *wake; /* owned by the loop; NULL = no loop */
    pages_write *write;
    void *owner;
    enum question question;
    enum page page;
    bool yes;
    struct buffer text;
};

struct pages *pages_new(void)
{
    struct pages *p = mem_new(1, sizeof *p);
    pthread_condattr_t attributes;

    (void)pthread_mutex_init(&p->one, NULL);
    (void)pthread_mutex_init(&p->lock, NULL);
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&p->answered, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    return p;
}

void pages_free(struct pages *p)
{
    if (p == NULL) {
        return;
    }
    (void)pthread_cond_destroy(&p->answered);
    (void)pthread_mutex_destroy(&p->lock);
    (void)pthread_mutex_destroy(&p->one);
    buffer_fini(&p->text);
    mem_free(p);
}

/* ---- what is on them ---- */

static void put_text(struct buffer *out, const char *text)
{
    buffer_put(out, text, strlen(text));
}

/* Names and reasons are of letters, digits, and a few signs that JSON needs not escape. */
static void put_pair(struct buffer *out, const char *key, const char *value)
{
    put_text(out, ",\"");
    put_text(out, key);
    put_text(out, "\":\"");
    put_text(out, value);
    put_text(out, "\"");
}

static void put_status(const struct page_who *who, struct buffer *out)
{
    char fleet[FLEET_ID_TEXT_SIZE];

    fleet_id_print(who->fleet, fleet);
    put_text(out, "{\"schema\":1");
    put_pair(out, "role", who->role);
    put_pair(out, "name", who->name);
    put_pair(out, "cluster", who->cluster);
    put_pair(out, "fleet", fleet);
    put_pair(out, "version", RINGHOLD_VERSION);
    put_text(out, who->not_ready == NULL ? ",\"ready\":true" : ",\"ready\":false");
    put_pair(out, "why", who->not_ready == NULL ? "" : who->not_ready);
    put_text(out, ",\"figures\":");
}

static void put_stats(enum metrics_format format, const struct page_who *who,
                      void (*stats)(void *owner, struct metrics *m), void *owner,
                      struct buffer *out)
{
    static const struct metric ready = {
        "ringhold_ready", "1: the process is ready, as /readyz says.", METRIC_GAUGE};
    static const struct metric fleet = {
        "ringhold_fleet_info",
        "Always 1, with the fleet that the process belongs to as label.",
        METRIC_GAUGE};
    char id[FLEET_ID_TEXT_SIZE];
    struct metrics m;

    fleet_id_print(who->fleet, id);
    metrics_begin(&m, format, out);
    if (id[0] != '\0') {
        metrics_put_labelled(&m, &fleet, "id", id, 1);
    }
    metrics_put_labelled(&m, &ready, "role", who->role, who->not_ready == NULL);
    stats(owner, &m);
    refusals_put_metrics(&m);
    access_put_metrics(&m);
    metrics_end(&m);
}

bool page_render(enum page page, const struct page_who *who,
                 void (*stats)(void *owner, struct metrics *m), void *owner, struct buffer *out)
{
    switch (page) {
    case PAGE_HEALTH:
        put_text(out, "alive\n");
        return true;
    case PAGE_READY:
        put_text(out, who->not_ready == NULL ? "ready" : who->not_ready);
        put_text(out, "\n");
        return who->not_ready == NULL;
    case PAGE_METRICS:
    case PAGE_METRICS_OPEN:
        put_stats(page == PAGE_METRICS ? METRICS_TEXT : METRICS_OPEN, who, stats, owner, out);
        return true;
    case PAGE_STATUS:
        put_status(who, out);
        put_stats(METRICS_JSON, who, stats, owner, out);
        put_text(out, "}\n");
        return true;
    }
    return false;
}

/* ---- the loop ---- */

static void on_wake(uv_async_t *handle)
{
    struct pages *p = handle->data;

    (void)pthread_mutex_lock(&p->lock);
    if (p->question == QUESTION_ASKED && p->wake == handle) {
        buffer_clear(&p->text);
        p->yes = p->write(p->owner, p->page, &p->text);
        p->question = QUESTION_ANSWERED;
        (void)pthread_cond_signal(&p->answered);
    }
    (void)pthread_mutex_unlock(&p->lock);
}

void pages_attach(struct pages *p, uv_loop_t *loop, pages_write *write, void *owner)
{
    if (p == NULL) {
        return;
    }
    uv_async_t *wake = mem_new(1, sizeof *wake);

    (void)uv_async_init(loop, wake, on_wake);
    uv_unref((uv_handle_t *)wake); // it keeps no loop from ending
    wake->data = p;
    (void)pthread_mutex_lock(&p->lock);
    p->wake = wake;
    p->write = write;
    p->owner = owner;
    (void)pthread_mutex_unlock(&p->lock);
}

static void on_closed(uv_handle_t *handle)
{
    mem_free(handle);
}

void pages_detach(struct pages *p)
{
    if (p == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&p->lock);
    uv_async_t *wake = p->wake;
    p->wake = NULL;
    (void)pthread_cond_signal(&p->answered);
    (void)pthread_mutex_unlock(&p->lock);
    if (wake != NULL) {
        uv_close((uv_handle_t *)wake, on_closed);
    }
}

/* ---- the asker ---- */

static struct timespec until(uint32_t ms)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    const uint64_t ns = (uint64_t)t.tv_nsec + (uint64_t)(ms % 1000) * 1000000;
    t.tv_sec += (time_t)(ms / 1000 + ns / 1000000000);
    t.tv_nsec = (long)(ns % 1000000000);
    return t;
}

/* Under the lock. */
static enum pages_result wait_for(struct pages *p, uint32_t ms)
{
    const struct timespec end = until(ms);

    while (p->question == QUESTION_ASKED && p->wake != NULL) {
        if (pthread_cond_timedwait(&p->answered, &p->lock, &end) != 0) {
            return PAGES_SILENT;
        }
    }
    if (p->question != QUESTION_ANSWERED) {
        return PAGES_GONE;
    }
    return p->yes ? PAGES_YES : PAGES_NO;
}

enum pages_result pages_ask(struct pages *p, enum page page, uint32_t ms, struct buffer *out)
{
    enum pages_result result = PAGES_GONE;

    (void)pthread_mutex_lock(&p->one);
    (void)pthread_mutex_lock(&p->lock);
    if (p->wake != NULL) {
        p->page = page;
        p->question = QUESTION_ASKED;
        (void)uv_async_send(p->wake);
        result = wait_for(p, ms);
    }
    if (p->question == QUESTION_ANSWERED && result != PAGES_GONE) {
        buffer_put(out, p->text.data, p->text.size);
    }
    p->question = QUESTION_NONE;
    (void)pthread_mutex_unlock(&p->lock);
    (void)pthread_mutex_unlock(&p->one);
    return result;
}
