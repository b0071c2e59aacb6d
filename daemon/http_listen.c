/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens the socket for HTTP: TCP, or a Unix socket that only the group may use.
 */
#include "daemon/http_listen.h"

#include "wire/address.h"

#include <errno.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 64 };

static bool is_socket(const char *path)
{
    struct stat file;

    return lstat(path, &file) == 0 && S_ISSOCK(file.st_mode);
}

int http_listen_unix(const char *path)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)snprintf(name.sun_path, sizeof name.sun_path, "%s", path);
    if (fd < 0) {
        return -1;
    }
    if (connect(fd, (struct sockaddr *)&name, sizeof name) == 0) {
        (void)close(fd);
        errno = EADDRINUSE;
        return -1;
    }
    if (errno == ECONNREFUSED && is_socket(path)) {
        (void)unlink(path);
    }
    if (bind(fd, (struct sockaddr *)&name, sizeof name) == 0 && chmod(path, 0660) == 0 &&
        listen(fd, BACKLOG) == 0) {
        return fd;
    }
    const int failed = errno;
    (void)close(fd);
    errno = failed;
    return -1;
}

static int listen_at(const struct addrinfo *where)
{
    const int yes = 1;
    const int fd = socket(where->ai_family, where->ai_socktype | SOCK_CLOEXEC, where->ai_protocol);

    if (fd < 0) {
        return -1;
    }
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(fd, where->ai_addr, where->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0) {
        return fd;
    }
    const int failed = errno;
    (void)close(fd);
    errno = failed;
    return -1;
}

int http_listen_tcp(const char *text)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found = NULL;
    struct address address;
    char port[8];
    int fd = -1;

    errno = EINVAL;
    if (address_parse(text, &address) != ERR_OK) {
        return -1;
    }
    (void)snprintf(port, sizeof port, "%u", address.port);
    if (getaddrinfo(address.host, port, &hints, &found) != 0) {
        errno = EADDRNOTAVAIL;
        return -1;
    }
    for (const struct addrinfo *at = found; at != NULL && fd < 0; at = at->ai_next) {
        fd = listen_at(at);
    }
    freeaddrinfo(found);
    return fd;
}
