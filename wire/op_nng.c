/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/links_nng.h"

#include "base/assert.h"

// Runs on a thread of nng's. It must not stop, wait for or free anything of
// nng's, and needs none of it.
static void on_done(void *context)
{
    struct op *op = context;
    struct links *links = op->links;

    (void)pthread_mutex_lock(&links->lock);
    const bool first = list_empty(&links->done);
    list_push_back(&links->done, &op->done);
    (void)pthread_mutex_unlock(&links->lock);
    if (first) {
        links->events.wake(links->events.context);
    }
}

void op_init(struct op *op, struct links *links, enum op_kind kind, void *owner)
{
    *op = (struct op){.kind = kind, .links = links, .owner = owner};
    const int rc = nng_aio_alloc(&op->aio, on_done, op);
    ASSERT(rc == 0);
    // nng scans all timed aios on each wake-up; only dialling has a time limit.
    nng_aio_set_timeout(op->aio, kind == OP_DIAL ? LINK_DIAL_MS : NNG_DURATION_INFINITE);
}

void op_fini(struct op *op)
{
    if (op->aio == NULL) {
        return;
    }
    nng_aio_stop(op->aio);
    (void)pthread_mutex_lock(&op->links->lock);
    if (list_linked(&op->done)) {
        list_remove(&op->done);
    }
    (void)pthread_mutex_unlock(&op->links->lock);
    nng_aio_free(op->aio);
    op->aio = NULL;
}

void op_start(struct op *op)
{
    ASSERT(!op->busy);
    op->busy = true;
}

void op_take_done(struct links *links, struct list *done)
{
    (void)pthread_mutex_lock(&links->lock);
    list_splice_back(done, &links->done);
    (void)pthread_mutex_unlock(&links->lock);
}
