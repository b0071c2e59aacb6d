/* SPDX-License-Identifier: Apache-2.0
 *
 * What clients' tokens need of the outside: the file of keys, and the time of
 * day.
 * Each thread of a gateway has its own.
 */
#ifndef GATEWAY_AUTH_UV_H
#define GATEWAY_AUTH_UV_H

#include "gateway/client/client.h"

#include <stdbool.h>

struct auth {
    const char *path; /* borrowed; NULL = clients show no tokens */
    struct clients *clients;
};

/* Read the file and give its keys to `clients`. False: `why` says why not; nothing is to be undone.
 * No path: only the time of day is told. */
bool auth_open(struct auth *a, const char *path, struct clients *clients,
               char why[KEYRING_WHY_SIZE]);

/* Read the file again, if there is one; one that is bad is logged, and the keys stay. */
void auth_reload(struct auth *a);

/* Tell the clients the time of day; once a second or more often. */
void auth_tick(struct auth *a);

#endif
