/* SPDX-License-Identifier: Apache-2.0
 *
 * The hello: who is at the other end of a link, and may the two of us talk?
 *
 * Pure. Its message is in wire/control.proto.
 */
#ifndef WIRE_HELLO_H
#define WIRE_HELLO_H

#include "base/bytes.h"
#include "base/err.h"
#include "base/fleet_id.h"
#include "wire/refusals.h"
#include "wire/versions.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum link_role { ROLE_COORDINATOR = 1, ROLE_NODE = 2, ROLE_GATEWAY = 3, ROLE_CLI = 4 };

enum { LINK_NAME_MAX = 63 };

/* First message of each side. Another cluster or fleet, or no protocol in common, is refused with a
 * reason that both sides log. */
struct hello {
    char product[32];         /* "ringhold 0.1.0" */
    struct versions protocol; /* of links */
    struct versions format;   /* of the fleet, that it reads */
    uint32_t in_force;        /* coordinator: the fleet's format, 0 = it does not know yet */
    char cluster[LINK_NAME_MAX + 1];
    struct fleet_id fleet; /* that it belongs to, once it does; never a CLI's */
    enum link_role role;
    char name[LINK_NAME_MAX + 1]; /* node or gateway name; "1".."5" for a coordinator */
    uint64_t incarnation;         /* node: 0 before REGISTER; gateway: its random id */
    uint64_t identity;            /* coordinator: its folder's identity */
    bool pristine;                /* coordinator: never took part in a group */
    char address[128];            /* where the sender listens for links, "" = nowhere */
    uint64_t voters;              /* coordinator: digest of its voter list, 0 = none */
};

enum { HELLO_REASON_MAX = 224 };

/* True for 1..LINK_NAME_MAX of [A-Za-z0-9._-]: what a cluster, node or gateway may be called. */
bool hello_name_is_valid(const char *name);

/* "coordinator", "node", "gateway", "cli", or "?" */
const char *link_role_name(enum link_role role);

/* Append the encoded hello, without a frame. */
void hello_put(struct buffer *out, const struct hello *hello);

/* Decode a peer's. ERR_CORRUPT: no hello, or a name, role, product or address that could not be
 * ours; so all its texts are safe to log. */
MUST_CHECK enum err hello_get(struct bytes in, struct hello *hello);

/* True if the process of this hello reads that format of the fleet. A CLI has nothing to do with
 * formats. */
bool hello_reads(const struct hello *hello, uint32_t format);

/* Whether the two may talk, and how. */
struct hello_verdict {
    enum refusal refusal;          /* REFUSAL_NONE: they may */
    uint32_t protocol;             /* the greatest that both speak; 0 when they may not */
    char reason[HELLO_REASON_MAX]; /* why not, in the words of `here` */
};

/* Judge `there`. "cluster is 'prod' there, 'test' here"; "fleet is 0f… there, 3c… here: …";
 * "protocol is 5..6 there, 4..4 here: upgrade node n1"; "the fleet's format is 2, node n1
 * reads 1..1: give it a newer version". Swap the two for the other side's words. A CLI with an
 * empty cluster name may talk to any cluster. */
struct hello_verdict hello_judge(const struct hello *here, const struct hello *there);

/* Append an encoded refusal; read one back as printable text of at most `size` with its NUL. */
void refusal_put(struct buffer *out, const char *reason);
void refusal_get(struct bytes in, char *reason, size_t size);

#endif
