/* SPDX-License-Identifier: Apache-2.0
 *
 * The lines of a script that are of sessions:
 *
 *     keep R              send a bind named R that is to be kept
 *     kept R              wait for its answer: the session. An actor that takes none is skipped
 *     bound R             wait for the answer to a bind that is not; likewise
 *     ask-push R          send a request named R that makes the actor push (--pushes)
 *     pushes COUNT        wait until at least so many have come, each the next of the session
 *     ack A               send an ack: all pushes until now, the answers below A
 *     redial              hang up; connect anew, and be greeted and known
 *     another             the same, but keep the connection: "other" is now that one
 *     other               go on with the other connection
 *     resume R SEEN A [N] send a resume named R: has the pushes "all" or "none", the answers
 *                         below A; it is the client's attempt N
 *     resumed R           wait for its answer, which says what push comes next
 *     again R [HEX]       send a request again
 *     answer R            wait for a response, and remember it
 *     same R              wait for a response that is the same
 *     rejected R [TEXT]   wait for a response with REJECTED, and a text that begins so
 */
#include "conform/conform.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- that send ---- */

static bool say_keep(struct play *p, const char *rest)
{
    struct request_packet r = {.request = (uint32_t)strtoul(rest, NULL, 10), .flags = PACKET_KEEP};
    struct buffer out = {0};

    conform_put_ask(p, &out, PACKET_BIND, &r);
    conform_off(p, &out);
    return true;
}

static bool say_ask_push(struct play *p, const char *rest)
{
    struct request_packet r = {
        .request = (uint32_t)strtoul(rest, NULL, 10),
        .payload = bytes_of(p->target->pushes, strlen(p->target->pushes)),
    };
    struct buffer out = {0};

    conform_put_ask(p, &out, PACKET_REQUEST, &r);
    conform_off(p, &out);
    return true;
}

static bool say_ack(struct play *p, const char *rest)
{
    const struct ack_packet ack = {.pushes = p->session.next - 1,
                                   .answers = (uint32_t)strtoul(rest, NULL, 10)};
    struct buffer out = {0};

    packet_put_ack(&out, &ack);
    conform_off(p, &out);
    return true;
}

/* "R SEEN A [ATTEMPT]" */
static bool say_resume(struct play *p, const char *rest)
{
    uint8_t payload[PACKET_RETURN_SIZE];
    char *end = NULL;
    struct request_packet r = {.request = (uint32_t)strtoul(rest, &end, 10),
                               .payload = bytes_of(payload, sizeof payload)};
    const bool all = strncmp(end, " all ", 5) == 0;
    const struct return_packet back = {
        .name = p->session.is.name,
        .has = {.pushes = all ? p->session.next - 1 : p->session.is.next - 1,
                .answers = (uint32_t)strtoul(end + (all ? 5 : 6), &end, 10)},
        .attempt = (uint16_t)strtoul(end, NULL, 10),
    };
    struct buffer out = {0};

    p->session.next = back.has.pushes + 1;
    packet_put_return(payload, &back);
    conform_put_ask(p, &out, PACKET_RESUME, &r);
    conform_off(p, &out);
    return true;
}

/* "R [HEX]" */
static bool say_again(struct play *p, const char *rest)
{
    char *end = NULL;
    struct request_packet r = {.request = (uint32_t)strtoul(rest, &end, 10), .flags = PACKET_AGAIN};
    struct buffer payload = {0};
    struct buffer out = {0};

    conform_hex(&payload, end);
    r.payload = buffer_bytes(&payload);
    conform_put_ask(p, &out, PACKET_REQUEST, &r);
    buffer_fini(&payload);
    conform_off(p, &out);
    return true;
}

/* ---- connections ---- */

static bool do_redial(struct play *p, const char *rest)
{
    (void)rest;
    return conform_again(p);
}

static bool do_other(struct play *p, const char *rest)
{
    const struct conform_socket now = p->socket;

    (void)rest;
    p->session.held = false;
    p->socket = p->other;
    p->other = now;
    return true;
}

static bool do_another(struct play *p, const char *rest)
{
    return do_other(p, rest) && conform_again(p);
}

/* ---- that wait ---- */

/* The response to "R", whatever it says. */
static bool answer_to(struct play *p, const char *rest, const char *want, struct response_packet *r)
{
    const uint32_t request = (uint32_t)strtoul(rest, NULL, 10);

    if (!conform_answer(p, want, r)) {
        return false;
    }
    return r->request == request ||
           conform_fail(
               p, "wanted %s, to %" PRIu32 "; got one to %" PRIu32, want, request, r->request);
}

static bool wrong(struct play *p, const char *want, const struct response_packet *r)
{
    return conform_fail(p,
                        "wanted %s; got status %u, '%.*s'",
                        want,
                        r->status,
                        (int)(r->payload.size < 80 ? r->payload.size : 80),
                        (const char *)r->payload.data);
}

/* The answer to a bind. One that this actor doesn't take is no fault of the gateway's. */
static bool bind_answer(struct play *p, const char *rest, struct response_packet *r)
{
    if (!answer_to(p, rest, "the answer to a bind", r)) {
        return false;
    }
    if (r->status == STATUS_REJECTED || r->status == STATUS_NO_OWNER) {
        p->skipped = true;
        return conform_fail(p, "needs an actor that takes a session: --id, --kind");
    }
    return r->status == STATUS_OK || wrong(p, "a bind with status 0", r);
}

static bool hear_kept(struct play *p, const char *rest)
{
    struct play_session *s = &p->session;
    struct response_packet r;

    if (!bind_answer(p, rest, &r)) {
        return false;
    }
    if (packet_get_session(r.payload, &s->is) != ERR_OK || s->is.next == 0) {
        return conform_fail(p, "wanted a session; got a payload of %zu bytes", r.payload.size);
    }
    s->next = s->is.next;
    s->held = true;
    if (s->is.keep_ms == 0) {
        p->skipped = true;
        return conform_fail(p, "needs an actor whose sessions are kept: its kind's resume_ms");
    }
    return true;
}

static bool hear_bound(struct play *p, const char *rest)
{
    struct response_packet r;

    return bind_answer(p, rest, &r);
}

static bool hear_pushes(struct play *p, const char *rest)
{
    const uint64_t until = p->session.is.next + strtoull(rest, NULL, 10);

    while (p->session.next < until) {
        if (!conform_pushed(p)) {
            return false;
        }
    }
    return true;
}

static bool hear_resumed(struct play *p, const char *rest)
{
    struct play_session *s = &p->session;
    struct response_packet r;
    struct session_packet now;

    if (!answer_to(p, rest, "the answer to a resume", &r)) {
        return false;
    }
    if (r.status != STATUS_OK || packet_get_session(r.payload, &now) != ERR_OK) {
        return wrong(p, "a resume with status 0 and a session", &r);
    }
    if (now.next != s->next) {
        return conform_fail(p,
                            "wanted a session that continues with push %" PRIu64
                            "; it continues with %" PRIu64,
                            s->next,
                            now.next);
    }
    s->held = true;
    return true;
}

static bool hear_answer(struct play *p, const char *rest)
{
    struct response_packet r;

    if (!answer_to(p, rest, "a response", &r)) {
        return false;
    }
    p->session.status = r.status;
    buffer_clear(&p->session.answer);
    buffer_put(&p->session.answer, r.payload.data, r.payload.size);
    return true;
}

static bool hear_same(struct play *p, const char *rest)
{
    struct response_packet r;

    return answer_to(p, rest, "the response that there was", &r) &&
           ((r.status == p->session.status &&
             bytes_equal(r.payload, buffer_bytes(&p->session.answer))) ||
            wrong(p, "the response that there was", &r));
}

static bool hear_rejected(struct play *p, const char *rest)
{
    const char *text = rest + strspn(rest, "0123456789 ");
    struct response_packet r;

    return answer_to(p, rest, "a response with REJECTED", &r) &&
           ((r.status == STATUS_REJECTED && r.payload.size >= strlen(text) &&
             memcmp(r.payload.data, text, strlen(text)) == 0) ||
            wrong(p, *text == '\0' ? "REJECTED" : text, &r));
}

enum line_result conform_sit(struct play *p, const char *word, const char *rest)
{
    static const struct {
        const char *word;
        bool (*run)(struct play *p, const char *rest);
    } lines[] = {{"keep", say_keep},
                 {"kept", hear_kept},
                 {"bound", hear_bound},
                 {"ask-push", say_ask_push},
                 {"pushes", hear_pushes},
                 {"ack", say_ack},
                 {"redial", do_redial},
                 {"another", do_another},
                 {"other", do_other},
                 {"resume", say_resume},
                 {"resumed", hear_resumed},
                 {"again", say_again},
                 {"answer", hear_answer},
                 {"same", hear_same},
                 {"rejected", hear_rejected}};

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        if (strcmp(word, lines[i].word) == 0) {
            return lines[i].run(p, rest) ? LINE_DONE : LINE_FAILED;
        }
    }
    return LINE_UNKNOWN;
}
