/* SPDX-License-Identifier: Apache-2.0
 *
 * The guard rules around libraft: each looks at what goes in or out and stops
 * what would lose data.
 */
#include "raft/guard.h"

#include "raft/message.h"

#include "base/log.h"

#include <inttypes.h>
#include <string.h>

enum { CUT_G1, CUT_G2, CUT_G3, CUT_OTHER };

/* The newest of each voter. */
static void remember(struct guard *guard, const struct raft_message *from,
                     const struct raft_append_entries_result *result)
{
    size_t at = 0;

    while (at < guard->hidden_count && guard->hidden[at].from != from->server_id) {
        at++;
    }
    if (at == GUARD_VOTERS_MAX) {
        return;
    }
    guard->hidden_count += at == guard->hidden_count;
    guard->hidden[at] = (struct guard_hidden){
        .from = from->server_id, .address = from->server_address, .result = *result};
}

/* G1. The message itself is kept: it shows libraft that the follower is there. */
static void hide_success(struct guard *guard, const struct raft *raft, struct raft_message *from)
{
    struct raft_append_entries_result *result = &from->append_entries_result;

    if (raft->state == RAFT_LEADER && result->rejected == 0 && result->term == raft->current_term &&
        guard->own_stored != raft->current_term && (guard->rules_off & GUARD_G1) == 0) {
        remember(guard, from, result);
        result->last_log_index = 0;
        guard->cut[CUT_G1]++;
    }
}

bool guard_recall(struct guard *guard, const struct raft *raft, struct raft_message *out)
{
    while (guard->hidden_count > 0 && guard->own_stored == raft->current_term) {
        const struct guard_hidden *hidden = &guard->hidden[--guard->hidden_count];

        if (raft->state == RAFT_LEADER && hidden->result.term == raft->current_term) {
            *out = (struct raft_message){.type = RAFT_IO_APPEND_ENTRIES_RESULT,
                                         .append_entries_result = hidden->result,
                                         .server_id = hidden->from,
                                         .server_address = hidden->address};
            return true;
        }
    }
    return false;
}

/* G3. What is left may be an empty message: a heartbeat at the snapshot's index, which a leader of
 * this term has too, because the entry there is committed. */
static void cut_below_snapshot(struct guard *guard, const struct raft *raft,
                               struct raft_append_entries *append)
{
    const raft_index snapshot = raft->log.snapshot.last_index;

    if (append->term < raft->current_term || append->prev_log_index >= snapshot ||
        (guard->rules_off & GUARD_G3) != 0) {
        return;
    }
    const raft_index below = snapshot - append->prev_log_index;
    const unsigned count = below < append->n_entries ? (unsigned)below : append->n_entries;
    if (count > 0 && count == append->n_entries) {
        raft_free(append->entries[0].batch);
        raft_free(append->entries);
        append->entries = NULL;
    } else if (count > 0) {
        memmove(append->entries,
                append->entries + count,
                (append->n_entries - count) * sizeof *append->entries);
    }
    append->n_entries -= count;
    append->prev_log_index = snapshot;
    append->prev_log_term = raft->log.snapshot.last_term;
    guard->cut[CUT_G3]++;
}

static bool leads_term(const struct raft *raft, raft_term term)
{
    return raft->state == RAFT_LEADER && term == raft->current_term;
}

static bool is_second_vote(const struct raft *raft, const struct raft_request_vote *request)
{
    return !request->pre_vote && request->term == raft->current_term && raft->voted_for != 0 &&
           raft->voted_for != request->candidate_id;
}

static bool drop(struct guard *guard, struct raft_message *message, const char *why)
{
    log_warn("raft",
             "message_dropped",
             "from=%" PRIu64 " reason=\"%s\"",
             (uint64_t)message->server_id,
             why);
    guard->cut[CUT_OTHER]++;
    message_fini(message);
    return false;
}

static bool before_append(struct guard *guard, struct raft *raft, struct raft_message *message)
{
    struct raft_append_entries *append = &message->append_entries;

    if (leads_term(raft, append->term)) {
        return drop(guard, message, "a second leader of my term");
    }
    cut_below_snapshot(guard, raft, append);
    guard->showing = append->prev_log_index + append->n_entries;
    guard->showing_term = append->term;
    if ((guard->rules_off & GUARD_G2) == 0 && append->leader_commit > guard->showing) {
        append->leader_commit = guard->showing;
    }
    return true;
}

static bool before_install(struct guard *guard, struct raft *raft, struct raft_message *message)
{
    if (leads_term(raft, message->install_snapshot.term)) {
        return drop(guard, message, "a second leader of my term");
    }
    guard->showing = message->install_snapshot.last_index;
    guard->showing_term = message->install_snapshot.term;
    return true;
}

bool guard_before(struct guard *guard, struct raft *raft, struct raft_message *message)
{
    guard->showing = 0;
    guard->showing_term = 0;
    guard->refused = false;
    switch (message->type) {
    case RAFT_IO_APPEND_ENTRIES:
        return before_append(guard, raft, message);
    case RAFT_IO_INSTALL_SNAPSHOT:
        return before_install(guard, raft, message);
    case RAFT_IO_APPEND_ENTRIES_RESULT:
        hide_success(guard, raft, message);
        return true;
    case RAFT_IO_REQUEST_VOTE:
        if (is_second_vote(raft, &message->request_vote)) {
            // Not worth a line: candidates of one term ask each other.
            guard->cut[CUT_OTHER]++;
            return false;
        }
        return true;
    default:
        return true;
    }
}

void guard_after(struct guard *guard, const struct raft *raft)
{
    const raft_term term = guard->showing_term;

    if (term != 0 && !guard->refused && raft->current_term == term) {
        if (guard->shown_term != term) {
            guard->shown_term = term;
            guard->shown = 0;
        }
        if (guard->showing > guard->shown) {
            guard->shown = guard->showing;
        }
    }
    guard->showing = 0;
    guard->showing_term = 0;
}

void guard_send(struct guard *guard, struct raft_message *message)
{
    struct raft_append_entries_result *result = &message->append_entries_result;

    if (message->type != RAFT_IO_APPEND_ENTRIES_RESULT) {
        return;
    }
    if (result->rejected != 0) {
        guard->refused = true;
        return;
    }
    raft_index shown = guard->shown_term == result->term ? guard->shown : 0;
    if (guard->showing_term == result->term && guard->showing > shown) {
        shown = guard->showing;
    }
    if (result->last_log_index > shown && (guard->rules_off & GUARD_G2) == 0) {
        result->last_log_index = shown;
        guard->cut[CUT_G2]++;
    }
}

void guard_stored(struct guard *guard, raft_term term)
{
    if (term > guard->own_stored) {
        guard->own_stored = term;
    }
}
