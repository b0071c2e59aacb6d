/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the audit history into state.db and lists it.
 */
#include "storage/state/event_sqlite.h"

#include "base/mem.h"
#include "base/stamp.h"
#include "storage/log/statement_sqlite.h"
#include "wire/control.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { EVENTS_KEPT = 10000, EVENT_TEXT_MAX = 255 };

static const char *desire_name(const Rh__CommandDesire *in, bool asked)
{
    switch (in->leaving) {
    case DESIRE_DRAIN:
        return "drain";
    case DESIRE_STAY:
        return "cancel";
    case DESIRE_STOP:
        return !asked ? "stop" : in->successor[0] == '\0' ? "remove" : "replace";
    default:
        return "weight";
    }
}

/* What an operator did by its word, else what the command is. */
static const char *command_name(const Rh__Command *command)
{
    const bool asked = command->by[0] != '\0';

    switch (command->body_case) {
    case RH__COMMAND__BODY_INIT:
        return "init";
    case RH__COMMAND__BODY_REGISTER_:
        return "register";
    case RH__COMMAND__BODY_BEGIN:
        return asked ? "resolve" : "begin";
    case RH__COMMAND__BODY_COMMIT:
        return asked ? "resolve" : "commit";
    case RH__COMMAND__BODY_ABORT:
        return asked ? "resolve" : "abort";
    case RH__COMMAND__BODY_DESIRE:
        return desire_name(command->desire, asked);
    case RH__COMMAND__BODY_FENCE:
        return "fence";
    case RH__COMMAND__BODY_REASSIGN:
        return "reassign";
    case RH__COMMAND__BODY_DEREGISTER:
        return asked ? "remove" : "deregister";
    case RH__COMMAND__BODY_VOTER:
        return "voter";
    case RH__COMMAND__BODY_SETTLED:
        return "settled";
    case RH__COMMAND__BODY_LEASE:
        return "lease";
    case RH__COMMAND__BODY_NOTE:
        return command->note->action[0] == '\0' ? "note" : command->note->action;
    case RH__COMMAND__BODY_DAEMONS:
        return "daemons";
    case RH__COMMAND__BODY_FORMAT:
        return "upgrade";
    case RH__COMMAND__BODY_AHEAD:
        return "ahead";
    case RH__COMMAND__BODY_QUARANTINE:
        return command->quarantine->add ? "quarantine" : "release";
    case RH__COMMAND__BODY_PIN:
        return command->pin->n_add > 0 ? "pin" : "unpin";
    case RH__COMMAND__BODY_REMEMBER:
        return "forget"; // a node's is not told
    case RH__COMMAND__BODY__NOT_SET:
    case _RH__COMMAND__BODY__CASE_IS_INT_SIZE:
        break;
    }
    return "unknown";
}

/* "3/boss-7", cut to `size`. */
static void put_actor(char *text, size_t size, const char *before, const Rh__Actor *actor)
{
    char name[ACTOR_NAME_SIZE];

    (void)snprintf(text, size, "%s%s", before, proto_actor(actor, name));
}

/* "3/boss-7 at n2, and 4 others". */
static void put_pins(const Rh__CommandPin *in, char *text, size_t size)
{
    const size_t count = in->n_add + in->n_remove;
    const Rh__Pin *first = in->n_add > 0 ? in->add[0] : in->n_remove > 0 ? in->remove[0] : NULL;
    size_t used;

    if (first == NULL) {
        return;
    }
    if (first->actor != NULL) {
        put_actor(text, size, "actor ", first->actor);
    } else {
        (void)snprintf(text, size, "cells %" PRIu32 "..%" PRIu32, first->from, first->to - 1);
    }
    used = strlen(text);
    if (in->n_add > 0) {
        (void)snprintf(text + used, size - used, " at %.64s", first->node);
        used += strlen(text + used);
    }
    if (count > 1) {
        (void)snprintf(text + used, size - used, ", and %zu others", count - 1);
    }
}

/* "actor 3/boss-7, and 4 others". */
static void put_rows(const Rh__CommandRemember *in, char *text, size_t size)
{
    if (in->n_rows > 0) {
        put_actor(text, size, "actor ", in->rows[0]->actor);
    }
    if (in->n_rows > 1) {
        const size_t used = strlen(text);

        (void)snprintf(text + used, size - used, ", and %zu others", in->n_rows - 1);
    }
}

/* "txn 12", "node n2": what it is about, beside what `why` says. */
static void subject_of(const Rh__Command *command, const struct state_result *result, char *text,
                       size_t size)
{
    text[0] = '\0';
    if (command->body_case == RH__COMMAND__BODY_REGISTER_) {
        (void)snprintf(text, size, "node %s", command->register_->name);
    } else if (command->body_case == RH__COMMAND__BODY_DESIRE) {
        (void)snprintf(text, size, "node %s", command->desire->name);
    } else if (command->body_case == RH__COMMAND__BODY_NOTE) {
        (void)snprintf(text, size, "%s", command->note->subject);
    } else if (command->body_case == RH__COMMAND__BODY_FORMAT) {
        (void)snprintf(text, size, "format %" PRIu32, command->format->format);
    } else if (command->body_case == RH__COMMAND__BODY_FENCE) {
        (void)snprintf(text, size, "incarnation %s", STAMP(command->fence->incarnation));
    } else if (command->body_case == RH__COMMAND__BODY_DAEMONS) {
        (void)snprintf(
            text, size, "daemons %.64s, %" PRIu32, command->daemons->name, command->daemons->count);
    } else if (command->body_case == RH__COMMAND__BODY_QUARANTINE) {
        put_actor(text, size, "actor ", command->quarantine->actor);
    } else if (command->body_case == RH__COMMAND__BODY_PIN) {
        put_pins(command->pin, text, size);
    } else if (command->body_case == RH__COMMAND__BODY_REMEMBER) {
        put_rows(command->remember, text, size);
    } else if (command->body_case == RH__COMMAND__BODY_REASSIGN &&
               command->reassign->incarnation == 0) {
        (void)snprintf(text, size, "nobody's vnodes");
    } else if (command->body_case == RH__COMMAND__BODY_REASSIGN) {
        (void)snprintf(text, size, "incarnation %s", STAMP(command->reassign->incarnation));
    } else if (command->body_case == RH__COMMAND__BODY_DEREGISTER) {
        (void)snprintf(text, size, "incarnation %s", STAMP(command->deregister->incarnation));
    } else if (result->txn != 0) {
        (void)snprintf(text, size, "txn %s", STAMP(result->txn));
    }
}

/* "its process died while it ran 3/boss-7, 0/ann" into `text`. */
static const char *death_of(const Rh__CommandRegister *in, char *text, size_t size)
{
    static const char begin[] = "its process died while it ran ";
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; in->died != 0 && in->died == in->replaces && i < in->n_suspects; i++) {
        put_actor(text + used, size - used, i == 0 ? begin : ", ", in->suspects[i]);
        used += strlen(text + used);
    }
    return text;
}

/* Of those that others told of only the ones whose request had met a death before. */
static const char *deaths_of(const Rh__CommandReassign *in, char *text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; i < in->n_suspects; i++) {
        if (in->suspects[i]->before != 0) {
            put_actor(text + used,
                      size - used,
                      used == 0 ? "the second death of a request to " : ", ",
                      in->suspects[i]->actor);
            used += strlen(text + used);
        }
    }
    return text;
}

/* "weight 3", "by n5" into `text`. */
static const char *desire_why(const Rh__CommandDesire *in, char *text, size_t size)
{
    text[0] = '\0';
    if (in->leaving == DESIRE_KEEP) {
        (void)snprintf(text, size, "weight %" PRIu32, in->weight);
    } else if (in->successor[0] != '\0') {
        (void)snprintf(text, size, "by %s", in->successor);
    }
    return text;
}

/* Of a refusal its cause, else what the command itself gives as its reason. May use `text`. */
static const char *why_of(const Rh__Command *command, const struct state_result *result, char *text,
                          size_t size)
{
    if (result->why != NULL) {
        return result->why;
    }
    if (command->body_case == RH__COMMAND__BODY_BEGIN) {
        return command->by[0] == '\0' ? command->begin->why : "begun anew";
    }
    if (command->body_case == RH__COMMAND__BODY_COMMIT) {
        return command->by[0] == '\0' ? "" : "committed";
    }
    if (command->body_case == RH__COMMAND__BODY_NOTE) {
        return command->note->what;
    }
    if (command->body_case == RH__COMMAND__BODY_DESIRE) {
        return desire_why(command->desire, text, size);
    }
    if (command->body_case == RH__COMMAND__BODY_REGISTER_) {
        return death_of(command->register_, text, size);
    }
    if (command->body_case == RH__COMMAND__BODY_REASSIGN) {
        return deaths_of(command->reassign, text, size);
    }
    return command->body_case == RH__COMMAND__BODY_ABORT ? command->abort->why : "";
}

void event_put(struct statements *statements, sqlite3 *db, const Rh__Command *command,
               const struct state_result *result)
{
    if (command->body_case == RH__COMMAND__BODY_REMEMBER && command->by[0] == '\0') {
        return; // a node's word of its actors, many a second: the history is of what people ask
    }
    struct statement q =
        statement_kept(statements,
                       db,
                       "INSERT INTO event(time_us, proposer, command, accepted, stamp, why,"
                       " subject, asked_by, reason) VALUES(?,?,?,?,?,?,?,?,?)");
    char subject[EVENT_TEXT_MAX + 1];
    char why[EVENT_TEXT_MAX + 1];

    subject_of(command, result, subject, sizeof subject);
    statement_number(&q, command->time_us);
    statement_number(&q, command->proposer);
    statement_text(&q, command_name(command));
    statement_number(&q, result->accepted);
    statement_number(&q, result->stamp);
    statement_text(&q, why_of(command, result, why, sizeof why));
    statement_text(&q, subject);
    statement_text(&q, command->by);
    statement_text(&q, command->reason);
    statement_run(&q);
    statement_close(&q);
    q = statement_kept(statements, db, "DELETE FROM event WHERE id <= last_insert_rowid() - ?");
    statement_number(&q, EVENTS_KEPT);
    statement_run(&q);
    statement_close(&q);
}

void event_upgrade(sqlite3 *db)
{
    static const char *const columns[] = {"subject", "asked_by", "reason"};
    char sql[96];

    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++) {
        // Where the column is there already this fails, and should.
        (void)snprintf(
            sql, sizeof sql, "ALTER TABLE event ADD COLUMN %s TEXT DEFAULT ''", columns[i]);
        (void)sqlite3_exec(db, sql, NULL, NULL, NULL);
    }
}

static char *get_text(struct statement *q)
{
    char text[EVENT_TEXT_MAX + 1] = "";

    (void)statement_get_text(q, text, sizeof text);
    return mem_string(text);
}

/* Those of the shell; an older version wrote them all as 'note'. */
#define NOTES "'note', 'coordinators'"

bool event_has_note(sqlite3 *db, const char *subject, const char *what)
{
    struct statement q = statement_open(
        db, "SELECT 1 FROM event WHERE command IN (" NOTES ") AND subject = ? AND why = ? LIMIT 1");

    statement_text(&q, subject);
    statement_text(&q, what);
    const bool has = statement_row(&q);
    statement_close(&q);
    return has;
}

bool event_ends_with_note(sqlite3 *db, const char *subject, const char *what)
{
    struct statement q = statement_open(db,
                                        "SELECT why = ? FROM event WHERE command IN (" NOTES
                                        ") AND subject = ? ORDER BY id DESC LIMIT 1");

    statement_text(&q, what);
    statement_text(&q, subject);
    const bool is = statement_row(&q) && statement_get_number(&q) != 0;
    statement_close(&q);
    return is;
}

void event_list(sqlite3 *db, uint32_t limit, Rh__AdminReply *reply)
{
    struct statement q =
        statement_open(db,
                       "SELECT id, time_us, proposer, command, accepted, stamp, subject, why,"
                       " asked_by, reason FROM event ORDER BY id DESC LIMIT ?");

    statement_number(&q, limit);
    while (statement_row(&q)) {
        Rh__EventRow *row = mem_new(1, sizeof *row);

        *row = (Rh__EventRow)RH__EVENT_ROW__INIT;
        row->id = statement_get_number(&q);
        row->time_us = statement_get_number(&q);
        row->proposer = statement_get_number(&q);
        row->command = get_text(&q);
        row->accepted = statement_get_number(&q) != 0;
        row->stamp = statement_get_number(&q);
        row->subject = get_text(&q);
        row->why = get_text(&q);
        row->by = get_text(&q);
        row->reason = get_text(&q);
        reply->events = mem_resize(reply->events, (reply->n_events + 1) * sizeof(Rh__EventRow *));
        reply->events[reply->n_events++] = row;
    }
    statement_close(&q);
}
