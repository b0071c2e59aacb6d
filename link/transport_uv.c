/* SPDX-License-Identifier: Apache-2.0
 *
 * The streams of links over sockets of a uv loop: their tasks and their turn.
 */
#include "link/transport_uv.h"

#include "base/assert.h"
#include "base/mem.h"

void task_done(struct transport_task *task)
{
    if (!list_linked(&task->done)) {
        list_push_back(&task->transport->done, &task->done);
    }
}

void task_forget(struct transport_task *task)
{
    if (list_linked(&task->done)) {
        list_remove(&task->done);
    }
}

static void on_check(uv_check_t *handle)
{
    const struct transport_uv *t = handle->data;

    if (!list_empty(&t->done)) {
        links_wake(t->links);
    }
}

static void transport_poll(struct transport *transport)
{
    struct transport_uv *t = CONTAINER_OF(transport, struct transport_uv, base);
    struct list done;
    struct list_link *at;

    // What comes of telling is told next time.
    list_init(&done);
    list_splice_back(&done, &t->done);
    while ((at = list_pop_front(&done)) != NULL) {
        struct transport_task *task = CONTAINER_OF(at, struct transport_task, done);

        task->tell(task);
    }
}

static void on_closed(uv_handle_t *handle)
{
    mem_free(handle->data);
}

static void transport_free(struct transport *transport)
{
    struct transport_uv *t = CONTAINER_OF(transport, struct transport_uv, base);

    ASSERT(list_empty(&t->done));
    uv_close((uv_handle_t *)&t->check, on_closed);
}

struct transport *transport_uv(struct links *links, void *loop)
{
    static const struct transport_ops ops = {
        .poll = transport_poll,
        .free = transport_free,
        .error_text = uv_strerror,
        .dialler_new = dialler_uv_new,
        .dial = dialler_uv_dial,
        .dial_stop = dialler_uv_stop,
        .dialler_free = dialler_uv_free,
        .acceptor_new = acceptor_uv_new,
        .listen_error = acceptor_uv_error,
        .accept = acceptor_uv_accept,
        .acceptor_free = acceptor_uv_free,
        .read = socket_read,
        .write = socket_write,
        .close = socket_close,
        .stream_free = socket_free,
        .peer = socket_peer,
    };
    struct transport_uv *t = mem_new(1, sizeof *t);

    t->base = (struct transport){.ops = &ops, .writes_at_once = true};
    t->links = links;
    t->loop = loop;
    list_init(&t->done);
    (void)uv_check_init(t->loop, &t->check);
    t->check.data = t;
    (void)uv_check_start(&t->check, on_check);
    uv_unref((uv_handle_t *)&t->check);
    return &t->base;
}
