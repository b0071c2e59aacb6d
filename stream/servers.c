/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the stream that a frame is of, and ends streams.
 */
#include "stream/servers.h"

#include "base/mem.h"

struct stream_servers_config servers_config_default(void)
{
    return (struct stream_servers_config){.gone_ms = 10000,
                                          .parked_max = (size_t)16 * 1024 * 1024 +
                                                        (size_t)65536 * STREAM_PARKED_EXTRA,
                                          .log_max = (size_t)64 * 1024 * 1024,
                                          .size_max = (size_t)256 * 1024 * 1024,
                                          .streams_max = 2048,
                                          .chunks_spare = 64};
}

void servers_init(struct stream_servers *v, const struct stream_servers_config *config)
{
    *v = (struct stream_servers){.config = *config, .chunks = {.spare_max = config->chunks_spare}};
    list_init(&v->all);
    list_init(&v->dead);
    list_init(&v->unsent);
}

static void rests(struct stream_served *s)
{
    if (list_linked(&s->unsent)) {
        list_remove(&s->unsent);
    }
}

/* What waits of it is lost. */
static void drop_parked(struct stream_servers *v, struct stream_served *s)
{
    v->parked_size -= s->parked.cap;
    buffer_fini(&s->parked);
}

static void served_free(struct stream_servers *v, struct stream_served *s)
{
    list_remove(&s->in);
    rests(s);
    sendlog_drop(&s->stream.log);
    drop_parked(v, s);
    v->count--;
    mem_free(s);
}

void servers_fini(struct stream_servers *v)
{
    struct list_link *l = NULL;

    list_splice_back(&v->all, &v->dead);
    while ((l = list_front(&v->all)) != NULL) {
        served_free(v, CONTAINER_OF(l, struct stream_served, in));
    }
    ASSERT(v->count == 0 && v->parked_size == 0);
    table_fini(&v->by_asker);
    stream_chunks_fini(&v->chunks);
}

struct stream_served *servers_find(const struct stream_servers *v, uint64_t asker)
{
    struct table_link *l = table_first(&v->by_asker, table_mix(asker));

    // The mix has an inverse: no other asker has that hash.
    return l == NULL ? NULL : CONTAINER_OF(l, struct stream_served, link);
}

static void bury(struct stream_servers *v, struct stream_served *s)
{
    server_dead(&s->stream);
    if (!s->stream.dead) {
        return; // a bug is planted
    }
    drop_parked(v, s);
    rests(s);
    table_remove(&v->by_asker, &s->link);
    list_remove(&s->in);
    list_push_back(&v->dead, &s->in);
}

/* Likewise, and nothing is left of it if nobody has to end anything of it. */
static void end(struct stream_servers *v, struct stream_served *s)
{
    bury(v, s);
    if (server_over(&s->stream)) {
        served_free(v, s);
    }
}

/* Forget who was away for longest: it is told GONE. */
static void forget_one(struct stream_servers *v)
{
    struct stream_served *longest = NULL;

    for (struct list_link *l = list_front(&v->all); l != NULL; l = list_next(&v->all, l)) {
        struct stream_served *s = CONTAINER_OF(l, struct stream_served, in);

        if (s->lost_ms != 0 && server_may_forget(&s->stream) &&
            (longest == NULL || s->lost_ms < longest->lost_ms)) {
            longest = s;
        }
    }
    if (longest != NULL) {
        end(v, longest);
        v->forgotten++;
    }
}

/* NULL: there is no room for one more. */
static struct stream_served *serve(struct stream_servers *v, uint64_t asker)
{
    if (v->by_asker.count >= v->config.streams_max) {
        forget_one(v);
    }
    if (v->by_asker.count >= v->config.streams_max) {
        return NULL;
    }
    struct stream_served *s = mem_new(1, sizeof *s);

    server_init(&s->stream, &v->chunks, asker, v->config.incarnation);
    s->stream.log.said.version = v->version;
    table_put(&v->by_asker, &s->link, table_mix(asker));
    list_push_back(&v->all, &s->in);
    v->count++;
    return s;
}

static void put_head(struct buffer *out, enum stream_frame type, const struct stream_head *head)
{
    stream_head_store(buffer_reserve(out, STREAM_HEADER_SIZE), type, head);
    out->size += STREAM_HEADER_SIZE;
}

static enum err on_join(struct stream_servers *v, uint64_t connection, enum stream_frame type,
                        const struct stream_head *head, struct buffer *say)
{
    const struct stream_head gone = {
        .from = head->to, .to = head->from, .first = head->first, .version = v->version};
    struct stream_served *s = servers_find(v, head->from);

    if (s == NULL && type == STREAM_JOIN) {
        put_head(say, STREAM_GONE, &gone);
        return ERR_OK;
    }
    enum server_join join =
        s == NULL ? SERVER_ANEW : server_join(&s->stream, connection, type, head);
    if (join == SERVER_ANEW) {
        if (s != NULL && v->count - v->by_asker.count >= v->config.streams_max) {
            return ERR_TOO_BIG; // the dead cost the living nothing, so they have a limit of their
                                // own
        }
        if (s != NULL) {
            end(v, s);
        }
        s = serve(v, head->from);
        if (s == NULL) {
            return ERR_TOO_BIG;
        }
        join = server_join(&s->stream, connection, type, head);
    }
    if (join == SERVER_GARBAGE && type == STREAM_JOIN && server_is_new(&s->stream)) {
        put_head(say, STREAM_GONE, &gone); // a BEGIN came behind the end of the one that it means
        return ERR_OK;
    }
    if (join != SERVER_JOINED) {
        return join == SERVER_OLD ? ERR_STOPPED : ERR_CORRUPT;
    }
    drop_parked(v, s); // it came by the connection before (R2)
    s->lost_ms = 0;
    const struct stream_head joined = server_joined(&s->stream);
    put_head(say, STREAM_JOINED, &joined);
    servers_feed(v, s);
    return ERR_OK;
}

void servers_clock(struct stream_servers *v, uint64_t now_ms)
{
    v->now_ms = now_ms;
}

/* Frames that wait are kept whole, each behind when it came. */
enum { PARKED_SIZE = STREAM_PARKED_EXTRA - STREAM_HEADER_SIZE };

/* `waited_ms`: the frame was parked so long. */
struct taking {
    const struct stream_head *head;
    size_t count;
    uint64_t waited_ms;
};

static enum err take_some(const struct stream_servers *v, struct stream_served *s,
                          const struct taking *what, size_t done, struct reader *in)
{
    struct stream_request r[STREAM_TAKEN_AT_ONCE];
    const uint8_t *at[STREAM_TAKEN_AT_ONCE + 1];
    const size_t left = what->count - done;
    const size_t most = left < STREAM_TAKEN_AT_ONCE ? left : STREAM_TAKEN_AT_ONCE;
    size_t count = 0;

    for (; count < most; count++) {
        at[count] = in->at;
        if (stream_request_get(in, &r[count]) != ERR_OK) {
            break;
        }
    }
    at[count] = in->at;
    if (count > 0) {
        const struct stream_some some = {.by = s,
                                         .head = what->head,
                                         .request = r,
                                         .at = at,
                                         .count = count,
                                         .first = what->head->first + done,
                                         .waited_ms = what->waited_ms};

        v->config.take(v->config.context, &some);
    }
    return in->bad ? ERR_CORRUPT : ERR_OK;
}

static enum err take(struct stream_servers *v, struct stream_served *s, const struct taking *what,
                     struct reader *in)
{
    for (size_t done = 0; done < what->count; done += STREAM_TAKEN_AT_ONCE) {
        if (take_some(v, s, what, done, in) != ERR_OK) {
            return ERR_CORRUPT;
        }
    }
    return in->left == 0 ? ERR_OK : ERR_CORRUPT;
}

bool servers_is_beyond(const struct stream_servers *v, const struct stream_served *s, size_t times)
{
    return servers_size(v) >= times * v->config.size_max &&
           s->stream.log.size + s->parked.cap >= v->config.size_max / v->by_asker.count;
}

static enum err park(struct stream_servers *v, struct stream_served *s, const struct frame *frame)
{
    const size_t size = FRAME_HEADER_SIZE + frame->body.size;
    const size_t cap = s->parked.cap;

    if (s->parked.size + PARKED_SIZE + size > v->config.parked_max || servers_is_beyond(v, s, 1)) {
        return ERR_TOO_BIG; // it comes again by another connection
    }
    uint8_t *at = buffer_reserve(&s->parked, PARKED_SIZE + size);
    at = store_u64(at, v->now_ms);
    at = store_u32(at, (uint32_t)size);
    at = store_u8(at, (uint8_t)frame->type);
    at = store_u8(at, 0);
    at = store_u16(at, frame->count);
    memcpy(at, frame->body.data, frame->body.size);
    s->parked.size += PARKED_SIZE + size;
    v->parked_size += s->parked.cap - cap;
    return ERR_OK;
}

/* Requests, or an ACK. `came_ms`: it was parked then; NULL = it comes now. */
static enum err on_requests(struct stream_servers *v, struct stream_served *s, uint64_t connection,
                            const struct frame *frame, const uint64_t *came_ms)
{
    const bool parks = came_ms == NULL;

    struct stream_head head;
    struct reader in;

    if (stream_head_get(frame, &head, &in) != ERR_OK) {
        return ERR_CORRUPT;
    }
    // Behind one that waits all wait, but each is heard.
    const bool behind = parks && s->parked.size > 0;
    const struct taking what = {
        .head = &head, .count = frame->count, .waited_ms = parks ? 0 : v->now_ms - *came_ms};

    switch (server_open(&s->stream, connection, &head, v->version)) {
    case SERVER_OPEN:
        servers_feed(v, s); // what is answered at once lies in the log then
        return behind                       ? park(v, s, frame)
               : servers_is_beyond(v, s, 2) ? ERR_TOO_BIG
                                            : take(v, s, &what, &in);
    case SERVER_HEARD:
        return ERR_OK;
    case SERVER_WAIT:
        return parks ? park(v, s, frame) : ERR_BUSY;
    case SERVER_BAD:
        // Its number comes behind those of frames that wait.
        return behind && head.first > 0 ? park(v, s, frame) : ERR_CORRUPT;
    case SERVER_NOT_MINE:
    default:
        return ERR_STOPPED;
    }
}

enum err servers_frame(struct stream_servers *v, uint64_t connection, const struct frame *frame,
                       struct buffer *say)
{
    const enum stream_frame type = (enum stream_frame)frame->type;
    struct stream_head head;
    struct reader in;

    if (stream_head_get(frame, &head, &in) != ERR_OK || head.to != v->config.incarnation) {
        return ERR_CORRUPT;
    }
    if (type == STREAM_BEGIN || type == STREAM_JOIN) {
        return on_join(v, connection, type, &head, say);
    }
    struct stream_served *s = servers_find(v, head.from);
    if (type != STREAM_REQUEST && type != STREAM_ACK) {
        return ERR_CORRUPT;
    }
    return s == NULL ? ERR_NOT_FOUND : on_requests(v, s, connection, frame, NULL);
}

void servers_lost(struct stream_servers *v, uint64_t asker, uint64_t connection)
{
    struct stream_served *s = servers_find(v, asker);

    if (s != NULL && s->stream.connection == connection) {
        server_lost(&s->stream, connection);
        drop_parked(v, s);
    }
}

void servers_dead(struct stream_servers *v, uint64_t asker)
{
    struct stream_served *s = servers_find(v, asker);

    if (s != NULL) {
        bury(v, s);
    }
}

/* Take what waited, until something waits again. */
static void unpark(struct stream_servers *v, struct stream_served *s)
{
    size_t at = 0;

    while (at < s->parked.size) {
        const uint64_t came_ms = load_u64(s->parked.data + at);
        const uint8_t *data = s->parked.data + at + PARKED_SIZE;
        const struct frame frame = {
            .type = (enum frame_type)data[4],
            .count = load_u16(data + 6),
            .body = bytes_of(data + FRAME_HEADER_SIZE, load_u32(data) - FRAME_HEADER_SIZE)};

        const enum err e = on_requests(v, s, s->stream.connection, &frame, &came_ms);
        if (e == ERR_BUSY) {
            break;
        }
        at += PARKED_SIZE + FRAME_HEADER_SIZE + frame.body.size;
        if (e != ERR_OK) {
            const uint64_t connection = s->stream.connection;

            at = s->parked.size;
            server_lost(&s->stream, connection);
            v->config.lost(v->config.context, connection, e);
        }
    }
    buffer_consume(&s->parked, at);
    if (s->parked.size == 0) {
        drop_parked(v, s);
    }
}

void servers_ring(struct stream_servers *v, uint64_t version)
{
    ASSERT(version >= v->version);
    v->version = version;
    for (struct list_link *l = list_front(&v->all); l != NULL; l = list_next(&v->all, l)) {
        struct stream_served *s = CONTAINER_OF(l, struct stream_served, in);

        sendlog_close(&s->stream.log); // R4
        s->stream.log.said.version = version;
    }
}

void servers_go_on(struct stream_servers *v)
{
    for (struct list_link *l = list_front(&v->all); l != NULL; l = list_next(&v->all, l)) {
        unpark(v, CONTAINER_OF(l, struct stream_served, in));
    }
}

struct stream_served *servers_unsent(struct stream_servers *v)
{
    struct list_link *l = NULL;

    while ((l = list_pop_front(&v->unsent)) != NULL) {
        struct stream_served *s = CONTAINER_OF(l, struct stream_served, unsent);

        if (s->stream.connection != 0) { // else it is joined again first
            return s;
        }
    }
    return NULL;
}

bool servers_wait(const struct stream_servers *v)
{
    for (struct list_link *l = list_front(&v->all); l != NULL; l = list_next(&v->all, l)) {
        if (CONTAINER_OF(l, struct stream_served, in)->parked.size > 0) {
            return true;
        }
    }
    return false;
}

size_t servers_tick(struct stream_servers *v, uint64_t now_ms)
{
    for (struct list_link *l = list_front(&v->all), *next = NULL; l != NULL; l = next) {
        struct stream_served *s = CONTAINER_OF(l, struct stream_served, in);

        next = list_next(&v->all, l);
        if (s->stream.connection != 0 && sendlog_look(&s->stream.log)) {
            servers_feed(v, s);
        }
        if (!server_may_forget(&s->stream)) {
            s->lost_ms = 0;
        } else if (s->lost_ms == 0) {
            s->lost_ms = now_ms;
        } else if (now_ms - s->lost_ms >= v->config.gone_ms) {
            bury(v, s);
            v->forgotten++;
        }
    }
    for (struct list_link *l = list_front(&v->dead), *next = NULL; l != NULL; l = next) {
        struct stream_served *s = CONTAINER_OF(l, struct stream_served, in);

        next = list_next(&v->dead, l);
        if (server_over(&s->stream)) {
            served_free(v, s);
        }
    }
    const size_t forgotten = v->forgotten;
    v->forgotten = 0;
    return forgotten;
}
