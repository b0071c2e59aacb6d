/* SPDX-License-Identifier: Apache-2.0
 *
 * Starts, kills and reaps the demo's processes, and makes their folder.
 */
#include "demo/fleet.h"

#include "base/beside.h"
#include "base/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { READY_MS = 20000, STOP_MS = 8000, LOG_SHOWN_SIZE = 3000 };

/* Blocks of ports for coordinators, below those of tests/e2e/fleet.py, which begin at 12000, and of
 * those that the kernel gives to connections unless it is told otherwise: so the port of a
 * coordinator that was killed is nobody else's meanwhile. */
enum { PORTS_FIRST = 11200, PORT_BLOCKS = 256, PORTS_END = 12000 };
_Static_assert(PORTS_FIRST + PORT_BLOCKS * FLEET_COORDINATORS <= PORTS_END,
               "the tests' ports begin there");

static bool is_free(uint16_t port)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    const int yes = 1;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool bound = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
                       bind(fd, (const struct sockaddr *)&address, sizeof address) == 0;

    if (fd >= 0) {
        (void)close(fd);
    }
    return bound;
}

/* A name in the kernel that one demo has at a time, and that goes with its process. -1: another has
 * it. */
static int hold_block(unsigned block)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "ringhold-demo-ports-%u", block);
    if (fd >= 0 && bind(fd, (const struct sockaddr *)&name, sizeof name) != 0) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

static bool take_ports(struct fleet *f)
{
    for (unsigned turn = 0; turn < PORT_BLOCKS; turn++) {
        const unsigned block = ((unsigned)getpid() + turn) % PORT_BLOCKS;
        unsigned count = 0;

        f->ports_held = hold_block(block);
        while (f->ports_held >= 0 && count < FLEET_COORDINATORS) {
            f->port[count] = (uint16_t)(PORTS_FIRST + block * FLEET_COORDINATORS + count);
            if (!is_free(f->port[count])) {
                (void)close(f->ports_held);
                f->ports_held = -1;
            }
            count++;
        }
        if (f->ports_held >= 0) {
            return true;
        }
    }
    (void)fprintf(stderr,
                  "ringhold demo: no %d ports in a row from %d to %d are free, or other demos have "
                  "them\n",
                  FLEET_COORDINATORS,
                  PORTS_FIRST,
                  PORTS_END - 1);
    return false;
}

bool fleet_init(struct fleet *f)
{
    const char *tmp = getenv("TMPDIR");
    size_t used = 0;
    size_t peers = 0;

    *f = (struct fleet){.ports_held = -1};
    if (!beside_find("ringhold", f->ringhold, sizeof f->ringhold)) {
        (void)fprintf(stderr,
                      "ringhold demo: no program `ringhold` is beside %s or in ../../bin\n",
                      f->ringhold);
        return false;
    }
    if (!take_ports(f)) {
        return false;
    }
    (void)snprintf(
        f->folder, sizeof f->folder, "%s/ringhold-demo-XXXXXX", tmp == NULL ? "/tmp" : tmp);
    if (mkdtemp(f->folder) == NULL) {
        (void)fprintf(
            stderr, "ringhold demo: can't make a folder %s: %s\n", f->folder, strerror(errno));
        return false;
    }
    (void)snprintf(f->ledger, sizeof f->ledger, "%s/ledger", f->folder);
    if (mkdir(f->ledger, 0700) != 0) {
        return false;
    }
    for (unsigned i = 0; i < FLEET_COORDINATORS; i++) {
        const char *comma = i == 0 ? "" : ",";

        used += (size_t)snprintf(f->coordinators + used,
                                 sizeof f->coordinators - used,
                                 "%s127.0.0.1:%u",
                                 comma,
                                 f->port[i]);
        peers += (size_t)snprintf(f->peers + peers,
                                  sizeof f->peers - peers,
                                  "%s%u=127.0.0.1:%u",
                                  comma,
                                  i + 1,
                                  f->port[i]);
    }
    return true;
}

struct child *fleet_child(struct fleet *f, const char *name)
{
    for (size_t i = 0; i < f->child_count; i++) {
        if (strcmp(f->child[i].name, name) == 0) {
            return &f->child[i];
        }
    }
    return NULL;
}

static struct child *child_for(struct fleet *f, const char *name)
{
    struct child *c = fleet_child(f, name);

    if (c == NULL && f->child_count < FLEET_CHILDREN_MAX) {
        c = &f->child[f->child_count++];
        (void)snprintf(c->name, sizeof c->name, "%s", name);
    }
    return c;
}

/* What all children inherit; set before there is a thread that could read the environment. */
static void set_environment(const struct fleet *f)
{
    (void)setenv("RINGHOLD_LEDGER", f->ledger, 1);
    if (f->history != NULL) {
        (void)setenv("RINGHOLD_HISTORY", f->history, 1);
    }
}

/* ringhold with these words, in a group of its own: a demo that is interrupted from the keyboard
 * stops its children itself, in order. Logs to FOLDER/NAME.log, stdout to `output`. Not by fork():
 * its child may call little, for another thread may have held any lock at that moment. */
static pid_t spawn(const struct fleet *f, const char *name, int output, char **words)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    char log[400];
    pid_t pid = 0;

    (void)snprintf(log, sizeof log, "%s/%s.log", f->folder, name);
    (void)posix_spawn_file_actions_init(&files);
    (void)posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
    (void)posix_spawn_file_actions_addopen(
        &files, STDERR_FILENO, log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    (void)posix_spawnattr_init(&attributes);
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    const int failed = posix_spawn(&pid, f->ringhold, &files, &attributes, words, environ);
    (void)posix_spawnattr_destroy(&attributes);
    (void)posix_spawn_file_actions_destroy(&files);
    return failed == 0 ? pid : -1;
}

/* Read its stdout up to the ready line. */
static bool wait_ready(struct child *c)
{
    const uint64_t end_us = clock_boottime_us() + (uint64_t)READY_MS * 1000;
    size_t used = 0;

    while (clock_boottime_us() < end_us && used + 1 < sizeof c->ready) {
        struct pollfd wait = {.fd = c->output, .events = POLLIN};

        if (poll(&wait, 1, 100) <= 0) {
            continue;
        }
        const ssize_t got = read(c->output, c->ready + used, sizeof c->ready - 1 - used);
        if (got <= 0) {
            return false;
        }
        used += (size_t)got;
        c->ready[used] = '\0';
        char *newline = strchr(c->ready, '\n');
        if (newline != NULL) {
            *newline = '\0';
            return strncmp(c->ready, "ready ", 6) == 0;
        }
    }
    return false;
}

/* The end of its log: what a reader of our stderr would look at next. */
static void show_log(const struct fleet *f, const char *name)
{
    char path[400];
    char text[LOG_SHOWN_SIZE + 1];

    (void)snprintf(path, sizeof path, "%s/%s.log", f->folder, name);
    FILE *log = fopen(path, "r");
    if (log == NULL) {
        return;
    }
    (void)fseek(log, -(long)LOG_SHOWN_SIZE, SEEK_END); // a shorter one is read from its start
    text[fread(text, 1, LOG_SHOWN_SIZE, log)] = '\0';
    (void)fclose(log);
    (void)fprintf(stderr,
                  "---- the end of %s\n"
                  "%s\n",
                  path,
                  text);
}

static void complain(const struct fleet *f, const char *name)
{
    (void)fprintf(stderr, "ringhold demo: %s was not ready after %d s\n", name, READY_MS / 1000);
    for (size_t i = 0; i < f->child_count; i++) {
        show_log(f, f->child[i].name);
    }
}

static bool start(struct fleet *f, const char *name, char **words)
{
    struct child *c = child_for(f, name);
    int pipe_fd[2];

    if (c == NULL || pipe(pipe_fd) != 0) {
        return false;
    }
    (void)fcntl(pipe_fd[0], F_SETFD, FD_CLOEXEC);
    if (f->child_count == 1) {
        set_environment(f);
    }
    c->pid = spawn(f, name, pipe_fd[1], words);
    (void)close(pipe_fd[1]);
    c->output = pipe_fd[0];
    c->exit_code = 0;
    if (c->pid < 0 || !wait_ready(c)) {
        complain(f, name);
        return false;
    }
    return true;
}

bool fleet_start_coordinator(struct fleet *f, unsigned id)
{
    char name[32];
    char number[8];
    char data[400];
    char words[][16] = {"ringhold", "coordinator", "--id", "--peers", "--data"};

    (void)snprintf(name, sizeof name, "c%u", id);
    (void)snprintf(number, sizeof number, "%u", id);
    (void)snprintf(data, sizeof data, "%s/%s", f->folder, name);
    char *argv[] = {words[0], words[1], words[2], number, words[3], f->peers, words[4], data, NULL};
    return start(f, name, argv);
}

bool fleet_start_node(struct fleet *f, const char *name)
{
    char own_name[32];
    char data[400];
    char words[][16] = {"ringhold",
                        "node",
                        "--name",
                        "--join",
                        "--data",
                        "--listen",
                        "127.0.0.1:0",
                        "--actor",
                        "ledger"};

    (void)snprintf(own_name, sizeof own_name, "%s", name);
    (void)snprintf(data, sizeof data, "%s/%s", f->folder, name);
    char *argv[] = {words[0],
                    words[1],
                    words[2],
                    own_name,
                    words[3],
                    f->coordinators,
                    words[4],
                    data,
                    words[5],
                    words[6],
                    words[7],
                    words[8],
                    NULL};
    return start(f, name, argv);
}

bool fleet_start_gateway(struct fleet *f, const char *name)
{
    char own_name[32];
    char words[][16] = {"ringhold", "gateway", "--name", "--join", "--resp", "127.0.0.1:0"};

    (void)snprintf(own_name, sizeof own_name, "%s", name);
    char *argv[] = {words[0],
                    words[1],
                    words[2],
                    own_name,
                    words[3],
                    f->coordinators,
                    words[4],
                    words[5],
                    NULL};
    if (!start(f, name, argv)) {
        return false;
    }
    const struct child *c = fleet_child(f, name);
    const char *resp = c == NULL ? NULL : strstr(c->ready, "resp=");

    if (resp == NULL) {
        return false;
    }
    (void)snprintf(f->gateway, sizeof f->gateway, "%.*s", (int)strcspn(resp + 5, " "), resp + 5);
    return true;
}

static void reap(struct child *c, int status)
{
    c->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    c->pid = 0;
    (void)close(c->output);
}

void fleet_kill(struct fleet *f, struct child *c)
{
    int status = 0;

    (void)f;
    if (c->pid > 0) {
        (void)kill(c->pid, SIGKILL);
        (void)waitpid(c->pid, &status, 0);
        reap(c, status);
    }
}

/* Wait for it to end by itself. False: still running after timeout_ms. */
static bool fleet_wait(struct child *c, uint32_t timeout_ms)
{
    const uint64_t end_us = clock_boottime_us() + (uint64_t)timeout_ms * 1000;
    const struct timespec pause = {.tv_nsec = 10000000};
    int status = 0;

    while (c->pid > 0) {
        if (waitpid(c->pid, &status, WNOHANG) == c->pid) {
            reap(c, status);
        } else if (clock_boottime_us() >= end_us) {
            return false;
        } else {
            (void)nanosleep(&pause, NULL);
        }
    }
    return true;
}

bool fleet_alive(struct fleet *f, const char **dead)
{
    int status = 0;

    for (size_t i = 0; i < f->child_count; i++) {
        struct child *c = &f->child[i];

        if (c->pid > 0 && waitpid(c->pid, &status, WNOHANG) == c->pid) {
            reap(c, status);
            *dead = c->name;
            return false;
        }
    }
    return true;
}

static void stop_those(struct fleet *f, char letter)
{
    for (size_t i = 0; i < f->child_count; i++) {
        if (f->child[i].name[0] == letter && f->child[i].pid > 0) {
            // Nodes would drain and wait for each other: the fleet ends as a whole.
            (void)kill(f->child[i].pid, letter == 'n' ? SIGKILL : SIGTERM);
        }
    }
    for (size_t i = 0; i < f->child_count; i++) {
        if (f->child[i].name[0] == letter && !fleet_wait(&f->child[i], STOP_MS)) {
            fleet_kill(f, &f->child[i]);
        }
    }
}

static void remove_folder(const char *folder)
{
    char path[400];
    char words[][8] = {"rm", "-rf", "--"};

    (void)snprintf(path, sizeof path, "%s", folder);
    char *argv[] = {words[0], words[1], words[2], path, NULL};
    pid_t pid = 0;
    if (posix_spawn(&pid, "/bin/rm", NULL, NULL, argv, environ) == 0) {
        (void)waitpid(pid, NULL, 0);
    }
}

void fleet_stop(struct fleet *f, bool keep)
{
    stop_those(f, 'g');
    stop_those(f, 'n');
    stop_those(f, 'c');
    if (f->ports_held >= 0) {
        (void)close(f->ports_held);
    }
    if (keep) {
        (void)printf("kept: %s\n", f->folder);
    } else {
        remove_folder(f->folder);
    }
}
