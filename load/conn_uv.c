/* SPDX-License-Identifier: Apache-2.0
 *
 * A connection of the load: what it asks and hears.
 */
#include "load/inside_uv.h"

#include "base/clock.h"
#include "gateway/protocol/packet.h"

#include <math.h>
#include <stdio.h>

static void touch(struct load_conn *c)
{
    if (!c->gone && !list_linked(&c->touched)) {
        list_push_back(&c->run->touched, &c->touched);
    }
}

void conn_lose(struct load_conn *c, const char *why)
{
    struct run *r = c->run;

    if (c->gone) {
        return;
    }
    c->gone = true;
    if (list_linked(&c->touched)) {
        list_remove(&c->touched);
    }
    if (r->result->closed++ == 0) {
        (void)snprintf(r->result->reason, sizeof r->result->reason, "%s", why);
    }
    uv_close((uv_handle_t *)&c->tcp, NULL);
}

/* ---- requests ---- */

/* The number of an entity, by random and without a division. */
static uint32_t any_id(struct run *r)
{
    return 1 + (uint32_t)((prng_u64(&r->random) >> 32) * r->load->ids >> 32);
}

/* So many at once, into one write. */
static void ask(struct load_conn *c, uint32_t count, uint64_t since_us)
{
    struct run *r = c->run;

    for (uint32_t i = 0; i < count; i++) {
        const uint32_t number = c->free[--c->free_count];

        c->since_us[number] = since_us;
        mould_put(&r->mould, &c->out, number, any_id(r));
    }
    touch(c);
}

/* To the next batch of this connection's share. */
static double gap_us(struct run *r)
{
    const double mean = 1e6 * r->load->connections * r->load->batch / r->load->rate;
    const double uniform = ((double)(prng_u64(&r->random) >> 11) + 0.5) / 9007199254740992.0;

    return r->load->poisson ? -mean * log(uniform) : mean;
}

static void ask_what_is_due(struct load_conn *c)
{
    struct run *r = c->run;

    while (c->due_us <= (double)r->now_us && c->free_count >= c->batch) {
        const uint64_t since_us = (uint64_t)c->due_us;
        const uint64_t late_us = r->now_us - since_us;

        ask(c, c->batch, since_us);
        if (r->stage == COUNTING && late_us > r->result->late_max_us) {
            r->result->late_max_us = late_us;
        }
        c->due_us += gap_us(r);
    }
    c->held_up = c->due_us <= (double)r->now_us;
}

/* Closed loop: as many batches as there is room for. */
static void ask_what_fits(struct load_conn *c)
{
    ask(c, c->free_count - c->free_count % c->batch, c->run->now_us);
}

double load_ask_all(struct run *r)
{
    double next_us = (double)r->now_us + 1e6;

    for (uint32_t i = 0; i < r->load->connections; i++) {
        struct load_conn *c = &r->conn[i];

        if (c->gone) {
            continue;
        }
        if (r->load->rate > 0) {
            ask_what_is_due(c);
            next_us = c->due_us < next_us ? c->due_us : next_us;
        } else {
            ask_what_fits(c);
        }
    }
    return next_us;
}

bool load_asks(const struct run *r)
{
    return r->stage == WARMING || r->stage == COUNTING;
}

/* ---- answers ---- */

/* Answers that came with one read to what was asked with one write took equally long. */
static void count_latency(struct run *r, uint64_t us)
{
    if (us != r->same_us) {
        load_count_same(r);
        r->same_us = us;
    }
    r->same_count++;
}

void load_count_same(struct run *r)
{
    histogram_add_many(&r->result->latency, r->same_us, r->same_count);
    r->same_count = 0;
}

static void on_response(struct load_conn *c, const struct response_packet *p)
{
    struct run *r = c->run;

    if (p->request >= c->depth || c->since_us[p->request] == 0) {
        conn_lose(c, "an answer to a request that was not sent");
        return;
    }
    const uint64_t since_us = c->since_us[p->request];

    c->since_us[p->request] = 0;
    r->result->answered++;
    c->free[c->free_count++] = p->request;
    // Open loop: what was due in the time that counts, however late its answer is.
    const bool counts = r->load->rate > 0 ? r->stage >= COUNTING && since_us >= r->counted_from_us
                                          : r->stage == COUNTING;
    if (counts) {
        r->result->status[p->status]++;
        if (p->status == STATUS_OK) {
            count_latency(r, r->now_us > since_us ? r->now_us - since_us : 0);
        }
    }
}

/* What was read has been taken. Open loop: what is due is the schedule's to ask, but for what had
 * no room. */
static void ask_again(struct load_conn *c)
{
    const struct run *r = c->run;

    if (c->gone || !c->greeted || !load_asks(r)) {
        return;
    }
    if (r->load->rate == 0) {
        ask_what_fits(c);
    } else if (c->held_up) {
        ask_what_is_due(c);
    }
}

static void on_hello_ack(struct load_conn *c, const struct hello_ack_packet *ack)
{
    struct run *r = c->run;

    c->greeted = true;
    r->greeted++;
    c->depth = c->depth < ack->requests_max ? c->depth : ack->requests_max;
    c->batch = r->load->batch < c->depth ? r->load->batch : c->depth;
    for (uint32_t i = 0; i < c->depth; i++) {
        c->free[i] = c->depth - 1 - i;
    }
    c->free_count = c->depth;
}

static void on_packet(struct load_conn *c, const struct packet *p)
{
    struct hello_ack_packet ack;
    struct response_packet response;
    struct notice_packet notice;
    char why[128];

    if (p->type == PACKET_RESPONSE && packet_get_response(p->body, &response) == ERR_OK) {
        on_response(c, &response);
    } else if (p->type == PACKET_HELLO_ACK && !c->greeted &&
               packet_get_hello_ack(p->body, &ack) == ERR_OK && ack.requests_max > 0) {
        on_hello_ack(c, &ack);
    } else if (p->type == PACKET_PING && p->body.size <= PACKET_PING_MAX) {
        packet_put_ping(&c->out, PACKET_PONG, p->body);
        touch(c);
    } else if ((p->type == PACKET_KICK || p->type == PACKET_GOAWAY) &&
               packet_get_notice(p->body, &notice) == ERR_OK) {
        (void)snprintf(why,
                       sizeof why,
                       "%s %u: %.*s",
                       p->type == PACKET_KICK ? "kicked," : "sent away,",
                       (unsigned)notice.number,
                       (int)(notice.text.size < 80 ? notice.text.size : 80),
                       (const char *)notice.text.data);
        conn_lose(c, why);
    }
}

/* Returns how many bytes of `in` were whole packets. */
static size_t take(struct load_conn *c, struct bytes in)
{
    size_t at = 0;
    struct packet p;

    while (!c->gone &&
           packet_next(bytes_of(in.data + at, in.size - at), PACKET_BODY_MAX, &p) == PACKET_WHOLE) {
        at += PACKET_HEADER + p.body.size;
        on_packet(c, &p);
    }
    return at;
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    const struct load_conn *c = handle->data;

    (void)suggested;
    *buf = uv_buf_init((char *)c->run->input, LOAD_READ_SIZE);
}

static void on_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buf)
{
    struct load_conn *c = stream->data;

    if (size < 0) {
        conn_lose(c, size == UV_EOF ? "the gateway closed the connection" : uv_strerror((int)size));
        return;
    }
    c->run->now_us = clock_boottime_us();
    if (c->in.size == 0) {
        const struct bytes in = bytes_of(buf->base, (size_t)size);
        const size_t used = take(c, in);

        buffer_put(&c->in, in.data + used, in.size - used);
    } else {
        buffer_put(&c->in, buf->base, (size_t)size);
        buffer_consume(&c->in, take(c, buffer_bytes(&c->in)));
    }
    ask_again(c);
}

/* ---- output ---- */

static void on_written(uv_write_t *request, int status)
{
    struct load_conn *c = request->data;

    c->writes = false;
    buffer_clear(&c->writing);
    if (status < 0) {
        conn_lose(c, uv_strerror(status));
    } else if (c->out.size > 0) {
        touch(c);
    }
}

static void flush(struct load_conn *c)
{
    uv_buf_t buf = uv_buf_init((char *)c->out.data, (unsigned)c->out.size);

    if (c->writes || c->out.size == 0) {
        return;
    }
    const int sent = uv_try_write((uv_stream_t *)&c->tcp, &buf, 1);

    if (sent < 0 && sent != UV_EAGAIN) {
        conn_lose(c, uv_strerror(sent));
        return;
    }
    if (sent == (int)c->out.size) {
        buffer_clear(&c->out);
        return;
    }
    buffer_consume(&c->out, sent > 0 ? (size_t)sent : 0);
    const struct buffer empty = c->writing;

    c->writing = c->out;
    c->out = empty;
    buf = uv_buf_init((char *)c->writing.data, (unsigned)c->writing.size);
    c->writes = true;
    c->write.data = c;
    if (uv_write(&c->write, (uv_stream_t *)&c->tcp, &buf, 1, on_written) != 0) {
        c->writes = false;
        conn_lose(c, "cannot write");
    }
}

void load_on_prepare(uv_prepare_t *prepare)
{
    struct run *r = prepare->data;
    struct list_link *l = NULL;

    while ((l = list_pop_front(&r->touched)) != NULL) {
        flush(CONTAINER_OF(l, struct load_conn, touched));
    }
}

void conn_on_connected(uv_connect_t *connect, int status)
{
    struct load_conn *c = connect->data;

    if (status < 0) {
        conn_lose(c, uv_strerror(status));
        return;
    }
    (void)uv_tcp_nodelay(&c->tcp, 1);
    packet_put_hello(
        &c->out,
        &(struct hello_packet){.version_min = PACKET_VERSION, .version_max = PACKET_VERSION});
    touch(c);
    if (uv_read_start((uv_stream_t *)&c->tcp, on_alloc, on_read) != 0) {
        conn_lose(c, "cannot read");
    }
}
