/* SPDX-License-Identifier: Apache-2.0
 *
 * What a node remembers of a request that it sent on, until it is answered.
 */
#include "stream/forward.h"

#include "base/mem.h"
#include "base/mutant.h"

struct stream_forward {
    struct stream_server *server; /* that it came by; open, so it stays */
    struct server_passed passed;
    uint64_t rid;      /* as it was called there */
    uint64_t until_ms; /* its time is over then, by the asker's clock */
};

/* What follows one that was forwarded goes where that went, or nowhere. */
static bool may_follow(const struct stream_server *s, const struct stream_client *to,
                       enum server_verdict verdict, uint64_t position)
{
    return verdict == SERVER_RUN || mutant(M_THIRD) ||
           server_passed_at(s, position)->to == to->log.said.to;
}

bool forward_pass(struct stream_asker *a, struct stream_client *to, struct stream_server *s,
                  enum server_verdict verdict, const struct stream_request *r, uint64_t position)
{
    struct stream_request next = *r;

    if (to == NULL || (r->hops > 0 && !mutant(M_TWOHOPS)) ||
        !may_follow(s, to, verdict, position) ||
        !client_takes(a, to, stream_request_size(r) + STREAM_NAME_SIZE)) {
        return false;
    }
    struct stream_forward *f = mem_new(1, sizeof *f);

    *f = (struct stream_forward){.server = s,
                                 .passed = {.position = position, .to = to->log.said.to},
                                 .rid = r->rid,
                                 .until_ms = a->now_ms + r->ttl_ms};
    next.hops = 1;
    next.name = server_name(s, r);
    asker_forward(a, to, &next, position, f);
    server_passed(s, &f->passed);
    return true;
}

static bool is_late(const void *forwarded, uint64_t now_ms)
{
    const struct stream_forward *f = forwarded;

    return now_ms >= f->until_ms;
}

void forward_expire(struct stream_asker *a, uint64_t now_ms)
{
    asker_cut_forwards(a, now_ms, is_late);
}

struct stream_server *forward_ended(const struct stream_reply *reply)
{
    struct stream_forward *f = reply->forwarded;
    struct stream_server *s = f->server;
    struct stream_answer entry = *reply->answer;

    entry.rid = f->rid;
    server_relay(s, &f->passed, &entry);
    mem_free(f);
    return s;
}
