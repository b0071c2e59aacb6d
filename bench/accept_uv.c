/* SPDX-License-Identifier: Apache-2.0
 *
 * A bare listener on libuv: it tells everybody to go and closes when they do. What
 * accepting and refusing costs without a gateway.
 */
#include "base/mem.h"
#include "wire/address.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <uv.h>

enum { BACKLOG = 4096, READ_SIZE = 4096 };

/* GOAWAY, 100 ms, "go". */
static char goaway[] = {10, 0, 0, 6, 0, 0, 0, 100, 'g', 'o'};
static char input[READ_SIZE];

static void on_closed(uv_handle_t *handle)
{
    mem_free(handle);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    (void)handle;
    (void)suggested;
    *buf = uv_buf_init(input, sizeof input);
}

static void on_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buf)
{
    (void)buf;
    if (size < 0) {
        uv_close((uv_handle_t *)stream, on_closed);
    }
}

static void on_connection(uv_stream_t *server, int status)
{
    const uv_buf_t buf = uv_buf_init(goaway, sizeof goaway);
    uv_tcp_t *tcp = mem_new(1, sizeof *tcp);
    uv_os_fd_t fd = -1;

    (void)uv_tcp_init(server->loop, tcp);
    if (status < 0 || uv_accept(server, (uv_stream_t *)tcp) != 0 ||
        uv_fileno((uv_handle_t *)tcp, &fd) != 0) {
        uv_close((uv_handle_t *)tcp, on_closed);
        return;
    }
    (void)uv_try_write((uv_stream_t *)tcp, &buf, 1);
    (void)shutdown(fd, SHUT_WR);
    (void)uv_read_start((uv_stream_t *)tcp, on_alloc, on_read);
}

static void raise_file_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

int main(int argc, char **argv)
{
    struct sockaddr_in in4;
    struct address address;
    uv_loop_t loop;
    uv_tcp_t server;

    if (argc != 2 || address_parse(argv[1], &address) != ERR_OK) {
        (void)fprintf(stderr, "usage: accept_uv HOST:PORT\n");
        return 1;
    }
    raise_file_limit();
    (void)uv_loop_init(&loop);
    (void)uv_tcp_init(&loop, &server);
    if (uv_ip4_addr(address.host, address.port, &in4) != 0 ||
        uv_tcp_bind(&server, (const struct sockaddr *)&in4, 0) != 0 ||
        uv_listen((uv_stream_t *)&server, BACKLOG, on_connection) != 0) {
        (void)fprintf(stderr, "accept_uv: cannot listen on %s\n", argv[1]);
        return 1;
    }
    (void)printf("ready\n");
    (void)fflush(stdout);
    return uv_run(&loop, UV_RUN_DEFAULT);
}
