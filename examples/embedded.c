/* SPDX-License-Identifier: Apache-2.0
 *
 * A game server with a loop of its own, and a node embedded in it: no callback
 * runs on any other thread than this one. So the actors here, monsters, touch the
 * world that the loop also works on, without a lock.
 *
 *     cc $(pkg-config --cflags ringhold) embedded.c $(pkg-config --libs ringhold) -o embedded
 *     ./embedded NAME COORDINATORS FOLDER
 *     redis-cli -p 6380 CALL orc hit
 *
 * Its players ask by UDP how the world is: "tick=… hits=… monsters=…"; "hit orc" hits a
 * monster, wherever it lives, and tells its wounds, and "where orc" names the node where
 * it lives. SIGTERM drains it: its monsters move to the other nodes, wounds and all,
 * while the loop goes on.
 */
#include <ringhold.h>

#include <arpa/inet.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum { TICK_MS = 20 };

/* Of the loop's thread, and of nobody else. */
static struct {
    uint64_t ticks;
    uint64_t hits;
    uint64_t monsters; /* that live here */
} world;

/* ---- monsters */

struct monster {
    int64_t wounds;
};

static int on_activate(struct rh_actor *actor, const struct rh_bytes *state, uint64_t fence,
                       void **instance)
{
    struct monster *m = calloc(1, sizeof *m);

    (void)actor;
    (void)fence;
    if (m == NULL || (state != NULL && state->size != sizeof m->wounds)) {
        free(m);
        return RH_FAILED;
    }
    if (state != NULL) {
        memcpy(&m->wounds, state->data, sizeof m->wounds);
    }
    world.monsters++;
    *instance = m;
    return RH_OK;
}

static void on_message(struct rh_actor *actor, void *instance, const struct rh_message *message)
{
    struct monster *m = instance;

    (void)message;
    world.hits++;
    (void)rh_reply(actor, rh_integer(++m->wounds));
}

static int on_handoff(struct rh_actor *actor, void *instance, struct rh_out *out)
{
    const struct monster *m = instance;

    (void)actor;
    rh_out_put(out, &m->wounds, sizeof m->wounds);
    return RH_OK;
}

static void on_deactivate(struct rh_actor *actor, void *instance, enum rh_why why)
{
    (void)actor;
    (void)why;
    world.monsters--;
    free(instance);
}

static const struct rh_actor_ops monster = {
    .abi = RH_ABI,
    .size = sizeof(struct rh_actor_ops),
    .name = "monster",
    .activate = on_activate,
    .message = on_message,
    .handoff = on_handoff,
    .deactivate = on_deactivate,
    .idle_ms = UINT32_MAX, /* its state is nowhere else */
};

static const struct rh_kind kinds[] = {{.number = 0, .ops = &monster}};

/* ---- the game's own traffic */

static int players_open(void)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_DGRAM, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&any, sizeof any) != 0) {
        perror("embedded: UDP");
        exit(1);
    }
    return fd;
}

static unsigned port_of(int fd)
{
    struct sockaddr_in here = {0};
    socklen_t size = sizeof here;

    (void)getsockname(fd, (struct sockaddr *)&here, &size);
    return ntohs(here.sin_port);
}

struct player {
    struct sockaddr_in address;
    int fd;
};

static void tell(const struct player *p, const void *text, size_t size)
{
    (void)sendto(p->fd, text, size, 0, (const struct sockaddr *)&p->address, sizeof p->address);
}

/* On this thread, like all callbacks here: from rh_node_poll(), or rh_node_wait(). */
static void on_hit(struct rh_node *node, const struct rh_answer *answer, void *argument)
{
    struct player *p = argument;

    (void)node;
    tell(p, answer->payload.data, answer->payload.size);
    free(p);
}

static void hit(struct rh_node *node, const struct player *who, struct rh_bytes id)
{
    struct player *p = malloc(sizeof *p);

    if (p == NULL) {
        return;
    }
    *p = *who;
    if (rh_node_call(node, 0, id, (struct rh_bytes){"hit", 3}, 5000, 0, on_hit, p) != RH_OK) {
        tell(p, "not now", 7); /* the node is leaving, or has a thousand calls open */
        free(p);
    }
}

static void players_serve(struct rh_node *node, int fd)
{
    struct player who = {.fd = fd};
    socklen_t size = sizeof who.address;
    char text[128];
    char owner[RH_NODE_NAME];
    const ssize_t got =
        recvfrom(fd, text, sizeof text - 1, MSG_DONTWAIT, (struct sockaddr *)&who.address, &size);

    if (got < 0) {
        return;
    }
    text[got] = '\0';
    if (strncmp(text, "hit ", 4) == 0) {
        hit(node, &who, (struct rh_bytes){text + 4, strlen(text + 4)});
    } else if (strncmp(text, "where ", 6) == 0) {
        const struct rh_bytes id = {text + 6, strlen(text + 6)};

        (void)rh_node_owner(node, 0, id, owner); /* "" if nobody owns it now */
        tell(&who, owner, strlen(owner));
    } else {
        (void)snprintf(text,
                       sizeof text,
                       "tick=%" PRIu64 " hits=%" PRIu64 " monsters=%" PRIu64,
                       world.ticks,
                       world.hits,
                       world.monsters);
        tell(&who, text, strlen(text));
    }
}

/* ---- the loop */

static int64_t now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* On the protocol thread: it touches nothing of the loop's. */
static void on_ready(void *context, uint64_t incarnation, const char *address)
{
    const unsigned *port = context;

    (void)incarnation;
    (void)printf("ready address=%s udp=127.0.0.1:%u\n", address, *port);
    (void)fflush(stdout);
}

/* Until the node has left: after SIGTERM, or when others fenced it. */
static void run(struct rh_node *node, int players)
{
    int64_t next_ms = now_ms() + TICK_MS;

    do {
        struct pollfd fd[] = {{.fd = rh_node_fd(node), .events = POLLIN},
                              {.fd = players, .events = POLLIN}};
        const int64_t left_ms = next_ms - now_ms();

        (void)poll(fd, 2, left_ms < 0 ? 0 : (int)left_ms);
        players_serve(node, players);
        if (now_ms() >= next_ms) {
            world.ticks++;
            next_ms = now_ms() + TICK_MS;
        }
    } while (rh_node_poll(node, 0) == RH_OK); /* each time round: it has timers, too */
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        (void)fprintf(stderr, "usage: embedded NAME COORDINATORS FOLDER\n");
        return 2;
    }
    const int players = players_open();
    unsigned port = port_of(players);
    const struct rh_node_options options = {
        .abi = RH_ABI,
        .size = sizeof options,
        .name = argv[1],
        .join = argv[2],
        .data = argv[3],
        .kinds = kinds,
        .kind_count = 1,
        .ready = on_ready,
        .context = &port,
        .embedded = 1,
    };
    struct rh_node *node = rh_node_start(&options);

    if (node == NULL) {
        return 1;
    }
    run(node, players);
    return rh_node_wait(node);
}
