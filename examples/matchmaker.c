/* SPDX-License-Identifier: Apache-2.0
 *
 * A matchmaker, or any other tool that decides where ids live: it pins rooms to
 * the node that it chose for them, and looks who lives. It hosts nothing itself.
 *
 *     cc $(pkg-config --cflags ringhold) matchmaker.c $(pkg-config --libs ringhold) -o matchmaker
 *     ./matchmaker COORDINATORS pin NODE ID…
 *     ./matchmaker COORDINATORS unpin ID…
 *     ./matchmaker COORDINATORS list [PREFIX]
 *
 * Ids are of kind 0. Where links have TLS it takes the files of an operator's
 * certificate from RINGHOLD_TLS_CA, RINGHOLD_TLS_CERTIFICATE and RINGHOLD_TLS_KEY.
 */
#include <ringhold.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IDS_MAX = 1000 };

static struct rh_bytes bytes(const char *text)
{
    return (struct rh_bytes){text, strlen(text)};
}

static int print(void *context, const struct rh_live *live)
{
    (void)context;
    (void)printf("%s %u/%.*s %s\n",
                 live->node,
                 live->kind,
                 (int)live->id.size,
                 (const char *)live->id.data,
                 live->state);
    return 0;
}

static int change(struct rh_admin *admin, const char *node, char **ids, int count)
{
    static struct rh_pin pins[IDS_MAX];

    for (int i = 0; i < count && i < IDS_MAX; i++) {
        pins[i] = (struct rh_pin){.id = bytes(ids[i]), .node = node};
    }
    return node == NULL ? rh_unpin(admin, pins, (size_t)count, "the match is over")
                        : rh_pin(admin, pins, (size_t)count, RH_IF_DEAD_HASH, "a match was made");
}

int main(int argc, char **argv)
{
    const char *what = argc > 2 ? argv[2] : "";
    const struct rh_admin_options options = {
        .abi = RH_ABI,
        .size = sizeof options,
        .join = argc > 1 ? argv[1] : NULL,
        .by = "matchmaker",
        .link_ca = getenv("RINGHOLD_TLS_CA"),
        .link_certificate = getenv("RINGHOLD_TLS_CERTIFICATE"),
        .link_key = getenv("RINGHOLD_TLS_KEY"),
    };
    struct rh_live_filter filter = {.size = sizeof filter};
    int result = RH_INVALID;

    if (argc < 3) {
        (void)fprintf(stderr,
                      "usage: matchmaker COORDINATORS pin NODE ID… | unpin ID… | list [PREFIX]\n");
        return 2;
    }
    struct rh_admin *admin = rh_admin_open(&options);
    if (admin == NULL) {
        return 1;
    }
    if (strcmp(what, "pin") == 0 && argc > 4) {
        result = change(admin, argv[3], argv + 4, argc - 4);
    } else if (strcmp(what, "unpin") == 0 && argc > 3) {
        result = change(admin, NULL, argv + 3, argc - 3);
    } else if (strcmp(what, "list") == 0) {
        filter.prefix = bytes(argc > 3 ? argv[3] : "");
        result = rh_actors(admin, &filter, print, NULL);
    }
    if (rh_admin_said(admin)[0] != '\0') {
        (void)fprintf(result == RH_OK ? stdout : stderr, "%s\n", rh_admin_said(admin));
    }
    rh_admin_close(admin);
    return result == RH_OK ? 0 : 1;
}
