/* SPDX-License-Identifier: Apache-2.0 */
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

void port_text(const struct sockaddr_storage *storage, char *text, size_t size)
{
    struct address address = {.host = "?"};
    struct sockaddr_in in4;
    struct sockaddr_in6 in6;

    if (storage->ss_family == AF_INET) {
        memcpy(&in4, storage, sizeof in4);
        (void)uv_ip4_name(&in4, address.host, sizeof address.host);
        address.port = ntohs(in4.sin_port);
    } else if (storage->ss_family == AF_INET6) {
        memcpy(&in6, storage, sizeof in6);
        (void)uv_ip6_name(&in6, address.host, sizeof address.host);
        address.port = ntohs(in6.sin6_port);
    }
    address_format(&address, text, size);
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
