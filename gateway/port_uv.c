/* SPDX-License-Identifier: Apache-2.0
 *
 * Binds an address for clients and passes each new connection to a thread.
 */
#include "gateway/port_uv.h"

#include "base/log.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

enum {
    BACKLOG = 4096,
    // Of each connection, each way. Left to itself the kernel gives 4 MiB to one that doesn't read;
    // a thousand of those use up what it has for all of TCP, and then our own links stall too.
    KERNEL_BUFFER_SIZE = 128 * 1024,
};

static bool is_ipv4(const uint8_t address[16])
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

    return memcmp(address, mapped, sizeof mapped) == 0;
}

void port_name(const uint8_t address[16], uint16_t port, char *text, size_t size)
{
    struct address named = {.port = port};
    const bool ipv4 = is_ipv4(address);

    (void)uv_inet_ntop(
        ipv4 ? AF_INET : AF_INET6, ipv4 ? address + 12 : address, named.host, sizeof named.host);
    address_format(&named, text, size);
}

bool port_address(const struct sockaddr_storage *storage, uint8_t address[16])
{
    struct sockaddr_in in4;
    struct sockaddr_in6 in6;

    if (storage->ss_family == AF_INET) {
        memcpy(&in4, storage, sizeof in4);
        memset(address, 0, 10);
        memset(address + 10, 0xff, 2);
        memcpy(address + 12, &in4.sin_addr, 4);
        return true;
    }
    memcpy(&in6, storage, sizeof in6);
    memcpy(address, &in6.sin6_addr, 16);
    return storage->ss_family == AF_INET6;
}

void port_text(const struct sockaddr_storage *storage, char *text, size_t size)
{
    const struct address unknown = {.host = "?"};
    struct sockaddr_in6 in6; // the port is where IPv4 has it
    uint8_t address[16];

    memcpy(&in6, storage, sizeof in6);
    if (port_address(storage, address)) {
        port_name(address, ntohs(in6.sin6_port), text, size);
    } else {
        address_format(&unknown, text, size);
    }
}

static void on_connection(uv_stream_t *server, int status)
{
    struct port *port = server->data;

    if (status < 0) {
        log_warn("gateway", "accept", "why=\"%s\"", uv_strerror(status));
        return;
    }
    port->come(port);
}

static void on_passed(uv_handle_t *handle)
{
    mem_free(handle->data);
}

/* libuv keeps what it accepted for the loop that did, so the socket goes on as a copy. */
int port_pass(struct port *port)
{
    uv_tcp_t *tcp = mem_new(1, sizeof *tcp);
    uv_os_fd_t fd = -1;
    int copy = -1;

    tcp->data = tcp;
    if (uv_tcp_init(port->tcp.loop, tcp) != 0) {
        mem_free(tcp);
        return -1;
    }
    if (uv_accept((uv_stream_t *)&port->tcp, (uv_stream_t *)tcp) == 0 &&
        uv_fileno((uv_handle_t *)tcp, &fd) == 0) {
        copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
        if (copy < 0) {
            log_warn("gateway", "accept", "why=\"%s\"", strerror(errno));
        }
    }
    uv_close((uv_handle_t *)tcp, on_passed);
    return copy;
}

/* Accepted connections inherit it, and with it the window they announce. */
static int bound_kernel_buffers(uv_tcp_t *tcp)
{
    int size = KERNEL_BUFFER_SIZE;
    const int failed = uv_send_buffer_size((uv_handle_t *)tcp, &size);

    size = KERNEL_BUFFER_SIZE;
    return failed != 0 ? failed : uv_recv_buffer_size((uv_handle_t *)tcp, &size);
}

/* Look the host up. 0 or a libuv error. */
static int resolve(uv_loop_t *loop, const char *text, struct sockaddr_storage *out)
{
    struct address address;
    uv_getaddrinfo_t request;
    char port[8];
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};

    if (address_parse(text, &address) != ERR_OK) {
        return UV_EINVAL;
    }
    (void)snprintf(port, sizeof port, "%u", address.port);
    const int failed = uv_getaddrinfo(loop, &request, NULL, address.host, port, &hints);
    if (failed != 0) {
        return failed;
    }
    memcpy(out, request.addrinfo->ai_addr, request.addrinfo->ai_addrlen);
    uv_freeaddrinfo(request.addrinfo);
    return 0;
}

int port_open(struct port *port, uv_loop_t *loop, enum entry entry, const char *address)
{
    struct sockaddr_storage storage = {0};
    int length = sizeof storage;
    int failed = 0;

    port->entry = entry;
    failed = uv_tcp_init(loop, &port->tcp);
    if (failed != 0) {
        return failed;
    }
    port->open = true;
    port->tcp.data = port;
    if ((failed = resolve(loop, address, &storage)) != 0 ||
        (failed = uv_tcp_bind(&port->tcp, (const struct sockaddr *)&storage, 0)) != 0 ||
        (failed = bound_kernel_buffers(&port->tcp)) != 0 ||
        (failed = uv_listen((uv_stream_t *)&port->tcp, BACKLOG, on_connection)) != 0) {
        return failed;
    }
    failed = uv_tcp_getsockname(&port->tcp, (struct sockaddr *)&storage, &length);
    port_text(&storage, port->bound, sizeof port->bound);
    return failed;
}

void port_close(struct port *port)
{
    if (port->open) {
        port->open = false;
        uv_close((uv_handle_t *)&port->tcp, NULL);
    }
}
