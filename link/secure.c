/* SPDX-License-Identifier: Apache-2.0
 *
 * TLS on a connection, between its stream and its frames. It is done before a
 * byte of the hello is said or read; the cluster of the peer's certificate is
 * judged then, its role and name with the hello.
 */
#include "link/links.h"

#include "base/assert.h"
#include "base/log.h"
#include "wire/hello.h"
#include "wire/refusals.h"

#include <stdio.h>
#include <string.h>

static enum refusal refusal_of(enum tls_end end)
{
    switch (end) {
    case TLS_PLAIN:
        return REFUSAL_PLAINTEXT;
    case TLS_NO_CERTIFICATE:
        return REFUSAL_NO_CERTIFICATE;
    case TLS_UNTRUSTED:
        return REFUSAL_UNTRUSTED;
    case TLS_EXPIRED:
        return REFUSAL_EXPIRED;
    case TLS_ALERT:
        return REFUSAL_TLS_ALERT;
    case TLS_UNSHARED:
    case TLS_HANDSHAKE:
        return REFUSAL_TLS_HANDSHAKE;
    case TLS_CLOSED:
    case TLS_BROKEN:
        break;
    }
    return REFUSAL_TLS_BROKEN;
}

void secure_start(struct conn *conn)
{
    const bool dials = conn->link->dialled;

    if (conn->links->keys == NULL) {
        return;
    }
    conn->tls = tls_new_link(conn->links->keys, dials);
    if (dials) {
        tls_begin(conn->tls, &conn->sealed);
        conn_mark_dirty(conn);
    }
}

/* The same peer comes from another port each time: it is still the same. */
static void log_refusal(struct conn *conn, enum refusal refusal, const char *reason)
{
    const char *address = conn->link->address;
    const char *port = strrchr(address, ':');
    char text[LINK_REASON_MAX];

    (void)snprintf(text,
                   sizeof text,
                   "%.*s %s",
                   port == NULL ? (int)strlen(address) : (int)(port - address),
                   address,
                   reason);
    if (links_may_log_refusal(conn, text)) {
        log_warn("link",
                 "insecure",
                 "address=%s refusal=%s reason=\"%s\"",
                 address,
                 refusal_word(refusal),
                 reason);
    }
}

/* It ends when what TLS has to say about it is out. */
static void refuse(struct conn *conn, enum refusal refusal, const char *reason)
{
    char text[LINK_REASON_MAX];

    refusals_count(refusal);
    log_refusal(conn, refusal, reason);
    conn->ending = true;
    conn->link->refused = true;
    buffer_clear(&conn->out);
    if (conn->link->dialled && conn->links->events.refused != NULL) {
        conn->links->events.refused(conn->links->events.context, conn->link, reason);
    }
    if (conn->sealed.size == 0 && !conn->writing) {
        (void)snprintf(text, sizeof text, "TLS: %s", reason);
        conn_close(conn, text);
    }
}

static const char *words_of(enum refusal refusal, const struct conn *conn)
{
    if (refusal == REFUSAL_PLAINTEXT) {
        return "the peer does not use TLS";
    }
    return refusal == REFUSAL_NO_CERTIFICATE ? "the peer sent no certificate" : tls_why(conn->tls);
}

/* It is open: has the peer a certificate of our cluster? */
static void judge_cluster(struct conn *conn)
{
    const struct subject *ours = tls_keys_subject(conn->links->keys);
    struct subject theirs;
    char reason[LINK_REASON_MAX];

    if (!tls_subject(conn->tls, &theirs)) {
        refuse(conn, REFUSAL_SUBJECT, "the peer's certificate names no process of a fleet");
    } else if (strcmp(theirs.cluster, ours->cluster) != 0) {
        (void)snprintf(reason,
                       sizeof reason,
                       "the peer's certificate is for cluster '%s', this process is of '%s'",
                       theirs.cluster,
                       ours->cluster);
        refuse(conn, REFUSAL_CLUSTER, reason);
    }
}

bool secure_take(struct conn *conn, size_t count)
{
    const bool opened = tls_has_opened(conn->tls);

    if (conn->ending) {
        return false; // whatever it says
    }
    tls_on_bytes(conn->tls, bytes_of(conn->raw.data, count), &conn->in, &conn->sealed);
    if (!opened && tls_state(conn->tls) == TLS_OPEN) {
        judge_cluster(conn);
    }
    if (!conn->closing && tls_state(conn->tls) == TLS_ENDED) {
        const enum refusal refusal = refusal_of(tls_end(conn->tls));

        refuse(conn, refusal, words_of(refusal, conn));
    } else if (!conn->closing && tls_has_left(conn->tls)) {
        conn_close(conn, "peer closed the connection");
    }
    if (!conn->closing && conn->sealed.size + conn->out.size > 0) {
        conn_mark_dirty(conn);
    }
    return !conn->closing && !conn->ending;
}

void secure_seal(struct conn *conn)
{
    if (tls_state(conn->tls) == TLS_OPEN && conn->out.size > 0) {
        tls_put(conn->tls, buffer_bytes(&conn->out), &conn->sealed);
        buffer_clear(&conn->out);
    }
}

enum refusal secure_judge(const struct conn *conn, char *reason, size_t size)
{
    struct subject theirs;

    if (!tls_subject(conn->tls, &theirs)) {
        (void)snprintf(reason, size, "the peer's certificate names no process of a fleet");
        return REFUSAL_SUBJECT;
    }
    const enum refusal refusal = subject_refusal(&theirs, &conn->peer);
    if (refusal != REFUSAL_NONE) {
        (void)snprintf(reason,
                       size,
                       "the certificate is for %s %s, the hello for %s %s",
                       subject_role_name(theirs.role),
                       theirs.name,
                       subject_role_name(conn->peer.role),
                       conn->peer.name);
    }
    return refusal;
}

struct tls_keys *secure_load(const struct links_config *config, char why[TLS_WHY_SIZE])
{
    struct tls_keys *keys = tls_keys_load_mutual(&config->tls, why);
    const struct hello *self = &config->self;
    char uri[SUBJECT_URI_SIZE];

    if (keys != NULL && subject_refusal(tls_keys_subject(keys), self) != REFUSAL_NONE) {
        subject_format(tls_keys_subject(keys), uri);
        (void)snprintf(why,
                       TLS_WHY_SIZE,
                       "%s: the certificate is for %s, but this is %s %s of cluster %s",
                       config->tls.certificate,
                       uri,
                       subject_role_name(self->role),
                       self->name,
                       self->cluster);
        tls_keys_free(keys);
        return NULL;
    }
    return keys;
}

bool link_subject(const struct link *link, struct subject *out)
{
    return link->up && link->conn != NULL && link->conn->tls != NULL &&
           tls_subject(link->conn->tls, out);
}
