/* SPDX-License-Identifier: Apache-2.0
 *
 * Kills the process at a named place, in builds with INJECT=1.
 */
#include "link/inject.h"

#ifdef RINGHOLD_INJECT

#include "wire/control.h"
#include "wire/frame.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAME_MAX_SIZE = 64, OP_MOVE = 3 /* enum ring_op_kind */ };

static char last[NAME_MAX_SIZE]; /* the place that `hits` counts */
static unsigned hits;
static bool dying;

/* Of a fleet that shares RINGHOLD_INJECT_ONCE=FILE only the first to come here dies. */
static bool first_of_all(void)
{
    const char *once = getenv("RINGHOLD_INJECT_ONCE");
    const char *file = getenv("RINGHOLD_INJECT_FILE");

    if (file != NULL && unlink(file) != 0) {
        return false;
    }
    return once == NULL || open(once, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) >= 0;
}

/* What is named now, in `out`. False: nothing. */
static bool wanted_now(char out[NAME_MAX_SIZE])
{
    const char *file = getenv("RINGHOLD_INJECT_FILE");
    const char *name = getenv("RINGHOLD_INJECT");
    const int fd = file == NULL ? -1 : open(file, O_RDONLY | O_CLOEXEC);

    if (file == NULL) {
        (void)snprintf(out, NAME_MAX_SIZE, "%s", name == NULL ? "" : name);
        return name != NULL;
    }
    const ssize_t size = fd < 0 ? 0 : read(fd, out, NAME_MAX_SIZE - 1);
    if (fd >= 0) {
        (void)close(fd);
    }
    if (size <= 0) {
        return false;
    }
    out[size] = '\0';
    out[strcspn(out, "\n")] = '\0';
    return true;
}

static bool hit(const char *name)
{
    const size_t size = strlen(name);
    char wanted[NAME_MAX_SIZE] = "";

    if (!wanted_now(wanted) || strncmp(wanted, name, size) != 0 ||
        (wanted[size] != '\0' && wanted[size] != ':')) {
        return false;
    }
    if (strcmp(wanted, last) != 0) {
        memcpy(last, wanted, sizeof last);
        hits = 0;
    }
    const unsigned nth = wanted[size] == ':' ? (unsigned)strtoul(wanted + size + 1, NULL, 10) : 1;
    return ++hits == nth && first_of_all();
}

static void die(void)
{
    (void)fprintf(stderr, "inject: killing myself at %s\n", last);
    (void)kill(getpid(), SIGKILL);
}

void inject_point(const char *name)
{
    if (hit(name)) {
        die();
    }
}

static bool moves(const Rh__Delta *delta)
{
    for (size_t i = 0; delta != NULL && delta->txn != 0 && i < delta->n_ops; i++) {
        if (delta->ops[i]->kind == OP_MOVE) {
            return true;
        }
    }
    return false;
}

/* The field of Control's body that the message has, as the .proto file names it. */
static bool control_name(struct bytes body, char out[NAME_MAX_SIZE])
{
    Rh__Control *control = control_get(body);
    const ProtobufCFieldDescriptor *field = NULL;

    if (control == NULL) {
        return false;
    }
    if (control->body_case != RH__CONTROL__BODY_COMMIT || moves(control->commit->delta)) {
        field = protobuf_c_message_descriptor_get_field(control->base.descriptor,
                                                        (unsigned)control->body_case);
    }
    (void)snprintf(out, NAME_MAX_SIZE, "%s", field == NULL ? "" : field->name);
    if (strcmp(out, "register_") == 0) {
        out[strlen("register")] = '\0'; // C has that word for itself
    }
    control_free(control);
    return field != NULL;
}

static bool frame_name(uint8_t type, struct bytes body, char out[NAME_MAX_SIZE])
{
    switch (type) {
    case FRAME_CONTROL:
        return control_name(body, out);
    case FRAME_REQUEST:
    case FRAME_STREAM_REQUEST:
        (void)snprintf(out, NAME_MAX_SIZE, "request");
        return true;
    case FRAME_ANSWER:
    case FRAME_STREAM_ANSWER:
        (void)snprintf(out, NAME_MAX_SIZE, "answer");
        return true;
    case FRAME_STATE:
        (void)snprintf(out, NAME_MAX_SIZE, "state");
        return true;
    case FRAME_STATE_ACK:
        (void)snprintf(out, NAME_MAX_SIZE, "state_ack");
        return true;
    case FRAME_PUSH:
        (void)snprintf(out, NAME_MAX_SIZE, "push");
        return true;
    default:
        return false;
    }
}

bool inject_asked(const char *name)
{
    return !dying && hit(name);
}

/* Is it one of those that are lost now? */
static bool is_lost(const char *point)
{
    const char *path = getenv("RINGHOLD_INJECT_LOSE");
    char line[NAME_MAX_SIZE];
    bool lost = false;
    FILE *file = path == NULL ? NULL : fopen(path, "r");

    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        lost = lost || strcmp(line, point) == 0;
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return lost;
}

bool inject_frame(bool sent, uint8_t type, struct bytes body)
{
    char wanted[NAME_MAX_SIZE] = "";
    char name[NAME_MAX_SIZE] = "";
    char point[2 * NAME_MAX_SIZE];
    const bool lose = getenv("RINGHOLD_INJECT_LOSE") != NULL;

    if (dying || (!wanted_now(wanted) && !lose) || !frame_name(type, body, name)) {
        return false;
    }
    (void)snprintf(point, sizeof point, "%s-%s", name, sent ? "sent" : "received");
    if (lose && is_lost(point)) {
        (void)fprintf(stderr, "inject: losing %s\n", point);
        return true;
    }
    if (!hit(point)) {
        return false;
    }
    if (!sent) {
        die();
    }
    dying = true;
    return false;
}

void inject_turn(void)
{
    if (dying) {
        die();
    }
}

#else

typedef int inject_is_compiled_out;

#endif
