/* SPDX-License-Identifier: Apache-2.0
 *
 * Refuses addresses beyond loopback without TLS or --insecure; the option for
 * the log level.
 */
#include "daemon/listen.h"

#include "base/log.h"
#include "daemon/fault.h"
#include "wire/address.h"

#include <stdio.h>
#include <string.h>

// NOLINTNEXTLINE(bugprone-easily-swappable-parameters): as a message names them
bool listen_allowed(const char *daemon, const char *key, const char *address, bool guarded)
{
    const char *colon = strrchr(address, ':');

    if (colon == NULL || colon == address || colon[1] == '\0' ||
        strspn(colon + 1, "0123456789") != strlen(colon + 1)) {
        fault_print(daemon, "--%s: '%s' is not HOST:PORT", key, address);
        return false;
    }
    if (!address_is_loopback(address) && !guarded) {
        fault_print(daemon,
                    "--%s: %s is beyond loopback, unencrypted and without authentication: anyone "
                    "who can connect controls the fleet. Use TLS (ringhold-tls(1)), or --insecure "
                    "if you accept this",
                    key,
                    address);
        return false;
    }
    return true;
}

struct option log_level_option(char *level, size_t size)
{
    return option_reloads(
        option_text("log-level", "LEVEL", level, size, "error, warn, info or debug (%)"));
}

bool log_level_check(const char *daemon, const char *level)
{
    enum log_level parsed = LOG_INFO;

    if (!log_level_parse(level, &parsed)) {
        fault_print(daemon, "--log-level: must be error, warn, info or debug");
        return false;
    }
    return true;
}
