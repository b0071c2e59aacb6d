/* SPDX-License-Identifier: Apache-2.0
 *
 * Judges a client that wants to bind itself, against those that are bound.
 */
#include "node/runtime/bond.h"

#include "base/mutant.h"
#include "base/table.h"

bool bond_is_of(const struct bond *have, const struct note *note)
{
    return have->gateway == note->gateway && have->connection == note->connection;
}

uint64_t bond_session(const struct bond *b)
{
    const uint64_t connection = table_mix(table_mix(b->gateway) ^ b->connection) ^ b->round;
    const uint64_t mixed = table_mix(b->session != 0 ? b->session : connection);

    return mixed >> 1 == 0 ? 1 : mixed >> 1; // which scripts count as positive, too
}

bool bond_is_over(const struct bond *b)
{
    return b->kicked || b->rebind.id_size > 0;
}

/* Its client has come again since, and left the line by which this was said: it would take the
 * place of its own client. Of one connection the round tells what is newer: keep_return(). */
static bool is_stale(const struct bond *have, const struct note *note)
{
    const uint32_t attempt = round_attempt(note->round);

    return attempt != 0 && attempt <= round_attempt(have->round) && !bond_is_of(have, note) &&
           !mutant(M_STALERETURN);
}

static enum bound_result judge_return(const struct bond *have, const struct note *note)
{
    if (have == NULL || have->kicked) {
        return BOUND_GONE;
    }
    if (mutant(M_ANYKEY)) {
        return BOUND_KEPT;
    }
    if (have->session != note->session) {
        return BOUND_OLD;
    }
    // Of another key: its actor was begun afresh since, and its client did not hear of that.
    if (have->key != note->key) {
        return BOUND_GONE;
    }
    return is_stale(have, note) ? BOUND_OLD : BOUND_KEPT;
}

enum bound_result bond_judge(const struct bond *have, const struct note *note)
{
    const bool again = note->type == NOTE_RESUME || note->type == NOTE_RENEW;

    if (note->type == NOTE_RETURN) {
        return judge_return(have, note);
    }
    if (have == NULL) {
        return BOUND_NEW;
    }
    if (bond_is_of(have, note)) {
        if (again) {
            return have->kicked ? BOUND_REFUSED : BOUND_KEPT;
        }
        // A copy of what ran, or bound again after UNBIND.
        return note->round == have->round ? BOUND_KEPT : BOUND_NEW;
    }
    if (again && !bond_stamp_before(have->stamp, note->stamp)) {
        return BOUND_OLD;
    }
    return BOUND_NEW;
}
