/* SPDX-License-Identifier: Apache-2.0
 *
 * What goes ahead of a hold: images of actors that go on. Specification §8.7.
 *
 *     NOT YET  -the number is durable, the target is linked-> GOES: until `until_us`
 *     GOES     -all cells were looked at, all that was asked for was sent, and taken but for the
 *               last of it-> OVER
 *     any      -its time is up-> OVER: the hold may begin, and what was not sent goes in it
 *
 * The images are of the transaction's own stream (node/host/handover.h): what comes later of an
 * actor replaces what went before. An actor to which something happens after its image left is not
 * `copied` any more, and the hold has it exported as if nothing had gone ahead; of one that ends an
 * empty image follows. Nothing here is promised to anybody before the hold: no vote, no cell.
 *
 * One transaction's go after the other's, and some actors are asked at a time, as that is a turn of
 * the loop in which nobody else is served. How fast: `move_rate`, and never more than a quarter of
 * the time. Some take longer where the loop or the workers have much to do, and three times as long
 * nothing more is asked for.
 */
#include "node/host/hold.h"

#include "base/mutant.h"
#include "node/host/inside.h"

enum {
    US = 1000000,
    ROOM_US = 20000,    /* as much may go at once as in that time */
    PAID_US = 60000000, /* more time pays for nothing, so that all fits in 64 bits */
    SOME = 16,          /* actors are asked together: that is a turn of the loop, … */
    SOME_SIZE = 131072, /* … or so many bytes */
    FETCHED = 4,        /* cells on, whose first actor will be in the cache */
    IDLE_SHARE = 3,     /* of the time of each batch */
    EACH_US = 1000,     /* for an actor whose image went there is so much more time, … */
    ROUNDS_MAX = 3,     /* … up to so many times that of a round without, … */
    TIME_SHARE = 4,     /* … and to that part of the time that its transaction has */
    STAGED_SHARE = 8    /* no more of what a target takes goes ahead */
};

bool ahead_is_over(const struct hold *hold)
{
    return hold->ahead.state == AHEAD_OVER;
}

/* The hold that this cell is given away by, and with which arc. */
static struct hold *giver_of(const struct host *h, uint32_t cell, const struct part_arc **arc)
{
    for (size_t i = 0; i < h->txns.participant.part_count; i++) {
        struct hold *hold = hold_of(h->txns.participant.part[i]);

        *arc = hold_arc(hold, cell, true);
        if (*arc != NULL) {
            return hold;
        }
    }
    return NULL;
}

static bool is_waited_for(const struct host *h, const struct hold *hold)
{
    return hold->part->state == PART_PERSIST && hold->durable && hold->since_us == 0 &&
           hold->ahead.state != AHEAD_OVER && hold_unreached(h, hold) == NULL;
}

static bool goes(const struct host *h, const struct hold *hold)
{
    return hold->ahead.state == AHEAD_GOES && is_waited_for(h, hold);
}

bool ahead_gives(const struct host *h, uint32_t cell)
{
    const struct part_arc *arc = NULL;

    return giver_of(h, cell, &arc) != NULL;
}

/* All but the last, which the target does not acknowledge by itself before the end comes. */
static bool all_taken(const struct host *h, const struct hold *hold)
{
    const struct handover_stream *s = hold_first_stream(hold);

    while (s != NULL && s->unsent == 0 && s->in_flight < hold_ack_size(&h->config)) {
        s = hold_next_stream(hold, s);
    }
    return s == NULL;
}

/* The cell that is next, or false: there is none. */
static bool next_cell(struct hold *hold, uint32_t *cell)
{
    const struct prepare *p = &hold->part->prepare;
    struct ahead *ahead = &hold->ahead;

    while (ahead->arc < p->arc_count) {
        const struct part_arc *arc = &p->arc[ahead->arc];

        ahead->cell = ahead->cell < arc->from ? arc->from : ahead->cell;
        if (arc->out && ahead->cell < arc->to) {
            *cell = ahead->cell++;
            return true;
        }
        ahead->arc++;
        ahead->cell = 0;
    }
    return false;
}

static void copy_cell(struct host *h, struct hold *hold, uint32_t cell)
{
    struct actor *next = NULL;

    if (cell + FETCHED < h->actors.cell_count) {
        pool_fetch(&h->actors.pool, h->actors.cell[cell + FETCHED]);
    }
    for (struct actor *a = cell_first(&h->actors, cell); a != NULL; a = next) {
        next = cell_next(&h->actors, cell, a);
        if (!a->sent && actor_copy(h, a)) {
            hold->ahead.asked++;
            h->txns.ahead.asked_us = h->txns.ahead.asked == 0 ? h->now_us : h->txns.ahead.asked_us;
            h->txns.ahead.asked++;
            h->txns.ahead.room -= HOST_AHEAD_COST;
        }
    }
}

static bool may_ask(const struct host *h, const struct hold *hold)
{
    return h->txns.ahead.room > 0 && h->now_us >= h->txns.ahead.next_us &&
           h->txns.ahead.asked * h->work.image_size < SOME_SIZE &&
           h->work.exports_asked < h->config.exports_at_once && lease_policy_may_start(h) &&
           hold->ahead.size < h->config.staged_size_max / STAGED_SHARE;
}

static bool is_time_up(const struct host *h, const struct ahead *ahead)
{
    return h->now_us >= ahead->until_us || h->now_us >= ahead->latest_us;
}

/* All its cells were looked at, and those that were asked have yet to answer: which most steps
 * meanwhile find. */
static bool is_waiting(const struct host *h, const struct hold *hold)
{
    const struct ahead *ahead = &hold->ahead;

    if (ahead->state != AHEAD_GOES || ahead->asked == 0 ||
        ahead->arc < hold->part->prepare.arc_count || is_time_up(h, ahead)) {
        return false;
    }
    const struct handover_stream *s = hold_first_stream(hold);
    while (s != NULL && !hold_has_some(s)) {
        s = hold_next_stream(hold, s);
    }
    return s == NULL;
}

static void begin(const struct host *h, struct hold *hold)
{
    const uint64_t round_us = (uint64_t)h->config.ahead_ms * 1000;
    const uint64_t time_us = (uint64_t)hold->part->prepare.deadline_ms * 1000;
    const uint64_t share_us = hold->begun_us + time_us / TIME_SHARE;
    struct ahead *ahead = &hold->ahead;

    ahead->state = AHEAD_GOES;
    ahead->until_us = h->now_us + round_us;
    ahead->latest_us = h->now_us + round_us * ROUNDS_MAX;
    if (time_us > 0 && share_us < ahead->latest_us) {
        ahead->latest_us = share_us;
    }
}

static void ask_some(struct host *h, struct hold *hold)
{
    const uint64_t sent = hold->ahead.sent; // of those that have no instance there is one at once
    uint32_t cell = 0;

    while (hold->ahead.asked + hold->ahead.sent - sent < SOME && !is_time_up(h, &hold->ahead) &&
           may_ask(h, hold) && next_cell(hold, &cell)) {
        copy_cell(h, hold, cell);
    }
}

/* Two side by side would both need the time of both. */
static bool another_goes(const struct host *h)
{
    size_t i = 0;

    while (i < h->txns.participant.part_count && !goes(h, hold_of(h->txns.participant.part[i]))) {
        i++;
    }
    return i < h->txns.participant.part_count;
}

static void go_on(struct host *h, struct hold *hold)
{
    struct ahead *ahead = &hold->ahead;

    if (ahead->state == AHEAD_NOT_YET && another_goes(h)) {
        return;
    }
    if (ahead->state == AHEAD_NOT_YET) {
        begin(h, hold);
    }
    if (h->txns.ahead.asked == 0) { // else the next come after a pause behind the last answer
        ask_some(h, hold);
    }
    // Not what leaves in this step: the hold would wait until that is taken.
    const bool taken = ahead->asked == 0 && all_taken(h, hold);
    for (struct handover_stream *s = hold_first_stream(hold); s != NULL;
         s = hold_next_stream(hold, s)) {
        if (hold_has_some(s) || (ahead->asked == 0 && s->unsent > 0)) {
            hold_pump(h, s);
        }
    }
    const bool looked = ahead->arc == hold->part->prepare.arc_count ||
                        ahead->size >= h->config.staged_size_max / STAGED_SHARE;
    if (is_time_up(h, ahead) || hold->part->refused || (looked && taken)) {
        ahead->state = AHEAD_OVER;
    }
}

/* An image may be larger than all the room. Time in which nothing waits pays for that, too. */
static void make_room(struct host *h)
{
    struct ahead_pace *pace = &h->txns.ahead;
    const uint64_t passed_us =
        h->now_us - pace->at_us < PAID_US ? h->now_us - pace->at_us : PAID_US;
    const int64_t most = (int64_t)(h->config.move_rate * ROOM_US / US);

    pace->room += (int64_t)(h->config.move_rate * passed_us / US);
    pace->room = pace->room < most ? pace->room : most;
    pace->at_us = h->now_us;
}

void ahead_go_on(struct host *h)
{
    bool begun = false;

    for (size_t i = 0; i < h->txns.participant.part_count; i++) {
        struct hold *hold = hold_of(h->txns.participant.part[i]);

        if (is_waiting(h, hold) || !is_waited_for(h, hold)) {
            continue;
        }
        if (h->config.move_rate == 0) {
            hold->ahead.state = AHEAD_OVER;
            continue;
        }
        if (!begun) {
            make_room(h);
            begun = true;
        }
        go_on(h, hold);
    }
}

bool host_is_paced(const struct host *h)
{
    size_t i = 0;

    while (i < h->txns.participant.part_count &&
           !is_waited_for(h, hold_of(h->txns.participant.part[i]))) {
        i++;
    }
    return i < h->txns.participant.part_count && h->txns.ahead.asked == 0;
}

static void batch_ended(struct host *h)
{
    struct ahead_pace *pace = &h->txns.ahead;

    pace->asked = 0;
    pace->next_us = h->now_us + IDLE_SHARE * (h->now_us - pace->asked_us);
}

/* One that was asked has answered; the last of its batch says how long that took. */
static void note_answered(struct host *h, struct hold *hold)
{
    struct ahead_pace *pace = &h->txns.ahead;

    if (hold != NULL && hold->ahead.asked > 0) {
        hold->ahead.asked--;
    }
    if (pace->asked > 0) {
        pace->asked--;
        if (pace->asked == 0) {
            batch_ended(h);
        }
    }
}

void ahead_tick(struct host *h)
{
    const struct ahead_pace *pace = &h->txns.ahead;

    if (pace->asked > 0 && h->now_us - pace->asked_us >= (uint64_t)h->config.ahead_ms * 1000) {
        batch_ended(h);
    }
}

void ahead_on_answer(struct host *h, const struct actor *a)
{
    const struct part_arc *arc = NULL;

    note_answered(h, giver_of(h, ring_point_cell(actor_position(a)), &arc));
}

void ahead_on_copied(struct host *h, struct actor *a, struct image *image)
{
    const struct part_arc *arc = NULL;
    struct hold *hold = giver_of(h, ring_point_cell(actor_position(a)), &arc);

    if (hold == NULL) {
        return; // the transaction ended meanwhile
    }
    struct handover_stream *s = hold_stream(hold, arc, h->membership.incarnation);
    if (s->ended) {
        return;
    }
    stream_add(s, image);
    hold->ahead.until_us += EACH_US;
    hold->ahead.sent++;
    hold->ahead.size += image->data.size;
    h->txns.ahead.sent++;
    h->txns.ahead.room -= (int64_t)image->data.size;
    a->sent = a->copied = true;
}

void ahead_on_removed(struct host *h, const struct actor *a)
{
    const struct part_arc *arc = NULL;
    struct hold *hold = giver_of(h, ring_point_cell(actor_position(a)), &arc);

    if (hold == NULL) {
        return;
    }
    struct handover_stream *s = hold_stream(hold, arc, h->membership.incarnation);
    if (!s->ended && !mutant(M_ENDEDIMAGE)) {
        struct image *nothing = image_make(actor_name(a), NULL, NULL, NULL);

        stream_add(s, nothing);
        image_free(nothing);
    }
}
