/* SPDX-License-Identifier: Apache-2.0
 *
 * Encodes, decodes and judges hellos.
 */
#include "wire/hello.h"

#include "wire/control.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool is_printable(char c)
{
    return c >= ' ' && c <= '~';
}

/* Printable ASCII, short enough, and without what would break a log line. */
static bool text_is_valid(const char *text, size_t size_max)
{
    const size_t size = strlen(text);

    for (size_t i = 0; i < size; i++) {
        if (!is_printable(text[i]) || text[i] == '"' || text[i] == '\\') {
            return false;
        }
    }
    return size < size_max;
}

bool hello_name_is_valid(const char *name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789._-";
    const size_t size = strlen(name);

    return size >= 1 && size <= LINK_NAME_MAX && strspn(name, allowed) == size;
}

const char *link_role_name(enum link_role role)
{
    switch (role) {
    case ROLE_COORDINATOR:
        return "coordinator";
    case ROLE_NODE:
        return "node";
    case ROLE_GATEWAY:
        return "gateway";
    case ROLE_CLI:
        return "cli";
    }
    return "?";
}

void hello_put(struct buffer *out, const struct hello *hello)
{
    Rh__Hello message = RH__HELLO__INIT;

    message.product = proto_text(hello->product);
    message.protocol = hello->protocol.newest;
    message.protocol_min = hello->protocol.oldest;
    message.cluster = proto_text(hello->cluster);
    message.role = hello->role;
    message.name = proto_text(hello->name);
    message.incarnation = hello->incarnation;
    message.identity = hello->identity;
    message.pristine = hello->pristine;
    message.address = proto_text(hello->address);
    message.voters = hello->voters;
    message.format = hello->format.newest;
    message.format_min = hello->format.oldest;
    message.format_in_force = hello->in_force;
    message.fleet_high = hello->fleet.high;
    message.fleet_low = hello->fleet.low;
    proto_put(out, &message.base);
}

static bool message_is_valid(const Rh__Hello *message)
{
    const bool any_cluster = message->role == ROLE_CLI && message->cluster[0] == '\0';

    return message->role >= ROLE_COORDINATOR && message->role <= ROLE_CLI &&
           hello_name_is_valid(message->name) &&
           (any_cluster || hello_name_is_valid(message->cluster)) &&
           text_is_valid(message->product, sizeof(((struct hello *)NULL)->product)) &&
           text_is_valid(message->address, sizeof(((struct hello *)NULL)->address));
}

/* Who does not tell is from before there was a second one. */
static struct versions formats_of(const Rh__Hello *message)
{
    return message->format == 0 && message->format_min == 0
               ? (struct versions){FLEET_FORMAT_OLDEST, FLEET_FORMAT_OLDEST}
               : (struct versions){message->format_min, message->format};
}

enum err hello_get(struct bytes in, struct hello *hello)
{
    Rh__Hello *message = (Rh__Hello *)proto_get(&rh__hello__descriptor, in);

    if (message == NULL) {
        return ERR_CORRUPT;
    }
    if (!message_is_valid(message)) {
        proto_free(&message->base);
        return ERR_CORRUPT;
    }
    *hello = (struct hello){
        .protocol = {message->protocol_min, message->protocol},
        .format = formats_of(message),
        .in_force = message->format_in_force,
        .fleet = {message->fleet_high, message->fleet_low},
        .role = (enum link_role)message->role,
        .incarnation = message->incarnation,
        .identity = message->identity,
        .pristine = message->pristine != 0,
        .voters = message->voters,
    };
    // Their sizes were checked: nothing is cut off.
    (void)snprintf(hello->product, sizeof hello->product, "%s", message->product);
    (void)snprintf(hello->cluster, sizeof hello->cluster, "%s", message->cluster);
    (void)snprintf(hello->name, sizeof hello->name, "%s", message->name);
    (void)snprintf(hello->address, sizeof hello->address, "%s", message->address);
    proto_free(&message->base);
    return ERR_OK;
}

/* "node n1" */
static void put_who(const struct hello *who, char *text, size_t size)
{
    (void)snprintf(text, size, "%s %s", link_role_name(who->role), who->name);
}

/* How a process comes into the other's fleet, if that is what is wanted. */
static void put_way_in(const struct hello *here, const struct hello *there, char *text, size_t size)
{
    const struct hello *comer = there->role == ROLE_COORDINATOR ? here : there;
    char who[LINK_NAME_MAX + 16];

    put_who(comer, who, sizeof who);
    (void)snprintf(text,
                   size,
                   comer->role == ROLE_NODE ? ": to join, start %s in an empty folder"
                                            : ": to join, restart %s",
                   who);
}

static enum refusal judge_fleet(const struct hello *here, const struct hello *there,
                                struct hello_verdict *out)
{
    char mine[FLEET_ID_TEXT_SIZE];
    char theirs[FLEET_ID_TEXT_SIZE];
    char way_in[LINK_NAME_MAX + 64] = "";

    if (here->role == ROLE_CLI || there->role == ROLE_CLI ||
        !fleet_id_differs(here->fleet, there->fleet)) {
        return REFUSAL_NONE;
    }
    fleet_id_print(here->fleet, mine);
    fleet_id_print(there->fleet, theirs);
    if ((here->role == ROLE_COORDINATOR) != (there->role == ROLE_COORDINATOR)) {
        put_way_in(here, there, way_in, sizeof way_in);
    }
    (void)snprintf(
        out->reason, sizeof out->reason, "fleet is %s there, %s here%s", theirs, mine, way_in);
    return REFUSAL_FLEET;
}

static enum refusal judge_versions(const struct hello *here, const struct hello *there,
                                   struct hello_verdict *out)
{
    const struct versions mine = here->protocol;
    const struct versions theirs = there->protocol;
    char who[LINK_NAME_MAX + 16];

    switch (versions_choose(mine, theirs, &out->protocol)) {
    case VERSIONS_FIT:
        return REFUSAL_NONE;
    case VERSIONS_NONE:
        (void)snprintf(out->reason,
                       sizeof out->reason,
                       "protocol is %" PRIu32 "..%" PRIu32 " there, which is not a range",
                       theirs.oldest,
                       theirs.newest);
        return REFUSAL_NO_RANGE;
    case VERSIONS_OLDER:
    case VERSIONS_NEWER:
        break;
    }
    const bool older = theirs.newest < mine.oldest;

    put_who(older ? there : here, who, sizeof who);
    (void)snprintf(out->reason,
                   sizeof out->reason,
                   "protocol is %" PRIu32 "..%" PRIu32 " there, %" PRIu32 "..%" PRIu32
                   " here: upgrade %s",
                   theirs.oldest,
                   theirs.newest,
                   mine.oldest,
                   mine.newest,
                   who);
    return older ? REFUSAL_PEER_OLDER : REFUSAL_PEER_NEWER;
}

bool hello_reads(const struct hello *hello, uint32_t format)
{
    return hello->role == ROLE_CLI || format == 0 ||
           (format >= hello->format.oldest && format <= hello->format.newest);
}

/* What is in force at one of the two must be read by the other. */
static enum refusal judge_format(const struct hello *here, const struct hello *there,
                                 struct hello_verdict *out)
{
    char who[LINK_NAME_MAX + 16];

    if (!versions_are_range(there->format)) {
        (void)snprintf(out->reason,
                       sizeof out->reason,
                       "it reads formats %" PRIu32 "..%" PRIu32 ", which is not a range",
                       there->format.oldest,
                       there->format.newest);
        return REFUSAL_NO_RANGE;
    }
    if (hello_reads(there, here->in_force) && hello_reads(here, there->in_force)) {
        return REFUSAL_NONE;
    }
    const bool peer = !hello_reads(there, here->in_force);
    const struct hello *reader = peer ? there : here;
    const uint32_t in_force = peer ? here->in_force : there->in_force;
    const bool older = in_force > reader->format.newest;

    put_who(reader, who, sizeof who);
    (void)snprintf(out->reason,
                   sizeof out->reason,
                   "the fleet's format is %" PRIu32 ", %s reads %" PRIu32 "..%" PRIu32
                   ": give it a%s version",
                   in_force,
                   who,
                   reader->format.oldest,
                   reader->format.newest,
                   older ? " newer" : "n older");
    return older == peer ? REFUSAL_PEER_OLDER : REFUSAL_PEER_NEWER;
}

struct hello_verdict hello_judge(const struct hello *here, const struct hello *there)
{
    struct hello_verdict out = {.refusal = REFUSAL_NONE};
    const bool any_cluster = (here->role == ROLE_CLI && here->cluster[0] == '\0') ||
                             (there->role == ROLE_CLI && there->cluster[0] == '\0');

    if (!any_cluster && strcmp(here->cluster, there->cluster) != 0) {
        (void)snprintf(out.reason,
                       sizeof out.reason,
                       "cluster is '%s' there, '%s' here",
                       there->cluster,
                       here->cluster);
        out.refusal = REFUSAL_CLUSTER;
        return out;
    }
    out.refusal = judge_fleet(here, there, &out);
    if (out.refusal == REFUSAL_NONE) {
        out.refusal = judge_versions(here, there, &out);
    }
    if (out.refusal == REFUSAL_NONE) {
        out.refusal = judge_format(here, there, &out);
    }
    out.protocol = out.refusal == REFUSAL_NONE ? out.protocol : 0;
    return out;
}

void refusal_put(struct buffer *out, const char *reason)
{
    Rh__HelloRefused message = RH__HELLO_REFUSED__INIT;

    message.reason = proto_text(reason);
    proto_put(out, &message.base);
}

void refusal_get(struct bytes in, char *reason, size_t size)
{
    Rh__HelloRefused *message = (Rh__HelloRefused *)proto_get(&rh__hello_refused__descriptor, in);

    (void)snprintf(reason, size, "%s", message == NULL ? "no reason given" : message->reason);
    for (char *c = reason; *c != '\0'; c++) {
        if (!is_printable(*c) || *c == '"' || *c == '\\') {
            *c = '?';
        }
    }
    proto_free(message == NULL ? NULL : &message->base);
}
