/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses the ringhold:// name of a certificate and compares it with a hello.
 */
#include "link/subject.h"

#include "wire/hello.h"

#include <stdio.h>
#include <string.h>

static const char scheme[] = "ringhold://";

const char *subject_role_name(enum link_role role)
{
    return role == ROLE_CLI ? "operator" : link_role_name(role);
}

bool subject_role_parse(const char *word, enum link_role *role)
{
    for (enum link_role r = ROLE_COORDINATOR; r <= ROLE_CLI; r++) {
        if (strcmp(word, subject_role_name(r)) == 0) {
            *role = r;
            return true;
        }
    }
    return false;
}

/* What stands before the next '/', or before the end: a name. False: it is none. */
static bool take_name(const char **at, char out[LINK_NAME_MAX + 1])
{
    const size_t size = strcspn(*at, "/");

    if (size == 0 || size > LINK_NAME_MAX) {
        return false;
    }
    memcpy(out, *at, size);
    out[size] = '\0';
    *at += size + ((*at)[size] == '/');
    return hello_name_is_valid(out);
}

bool subject_parse(struct bytes uri, struct subject *out)
{
    char text[SUBJECT_URI_SIZE];
    char role[LINK_NAME_MAX + 1];
    struct subject s;

    if (uri.size >= sizeof text || memchr(uri.data, '\0', uri.size) != NULL ||
        uri.size < sizeof scheme || memcmp(uri.data, scheme, sizeof scheme - 1) != 0) {
        return false;
    }
    memcpy(text, uri.data, uri.size);
    text[uri.size] = '\0';
    const char *at = text + sizeof scheme - 1;
    if (text[uri.size - 1] == '/' || !take_name(&at, s.cluster) || !take_name(&at, role) ||
        !subject_role_parse(role, &s.role) || !take_name(&at, s.name) || *at != '\0') {
        return false;
    }
    *out = s;
    return true;
}

void subject_format(const struct subject *s, char out[SUBJECT_URI_SIZE])
{
    // Two names of 63 bytes and a role: it fits.
    (void)snprintf(out,
                   SUBJECT_URI_SIZE,
                   "%s%s/%s/%s",
                   scheme,
                   s->cluster,
                   subject_role_name(s->role),
                   s->name);
}

enum refusal subject_refusal(const struct subject *s, const struct hello *hello)
{
    const bool any_cluster = hello->role == ROLE_CLI && hello->cluster[0] == '\0';

    if (!any_cluster && strcmp(s->cluster, hello->cluster) != 0) {
        return REFUSAL_CLUSTER;
    }
    if (hello->role == ROLE_CLI) {
        // Whoever is a coordinator can do all that an operator asks it for.
        return s->role == ROLE_CLI || s->role == ROLE_COORDINATOR ? REFUSAL_NONE : REFUSAL_ROLE;
    }
    if (s->role != hello->role) {
        return REFUSAL_ROLE;
    }
    return strcmp(s->name, hello->name) == 0 ? REFUSAL_NONE : REFUSAL_NAME;
}
