/* SPDX-License-Identifier: Apache-2.0
 *
 * Faults that wait for a rare frame: of one kind that is drawn, to one process or to any, the next
 * is where the link breaks, in front of it or behind it; or all of it is lost, held back or
 * repeated for a while. What is seldom said is so met as often as what is said all the time.
 */
#include "sim/fleet.h"
#include "wire/control.h"
#include "wire/frame.h"

#define MS UINT64_C(1000)
#define S  UINT64_C(1000000)

enum { CONTROL = 256 }; /* kinds from there on: what a control message says */

static const int kinds[] = {
    FRAME_STATE,
    FRAME_STATE_ACK,
    FRAME_PUSH,
    FRAME_ANSWER,
    FRAME_REQUEST,
    CONTROL + RH__CONTROL__BODY_SETTLE, /* on data links, too */
    CONTROL + RH__CONTROL__BODY_SETTLED,
    CONTROL + RH__CONTROL__BODY_ADOPTED,
    CONTROL + RH__CONTROL__BODY_PROBE,
    CONTROL + RH__CONTROL__BODY_REGISTER_, /* on links of coordinators alone, from here on */
    CONTROL + RH__CONTROL__BODY_REG_OK,
    CONTROL + RH__CONTROL__BODY_BYE,
    CONTROL + RH__CONTROL__BODY_RENEW,
    CONTROL + RH__CONTROL__BODY_GRANT,
    CONTROL + RH__CONTROL__BODY_PREPARE,
    CONTROL + RH__CONTROL__BODY_PREPARE,
    CONTROL + RH__CONTROL__BODY_PREPARED,
    CONTROL + RH__CONTROL__BODY_STALE,
    CONTROL + RH__CONTROL__BODY_REFUSED,
    CONTROL + RH__CONTROL__BODY_COMMIT,
    CONTROL + RH__CONTROL__BODY_MOVES,
    CONTROL + RH__CONTROL__BODY_CANCEL,
    CONTROL + RH__CONTROL__BODY_CANCEL,
    CONTROL + RH__CONTROL__BODY_POLL,
    CONTROL + RH__CONTROL__BODY_POLL_ANSWER,
    CONTROL + RH__CONTROL__BODY_GET_CONFIG,
    CONTROL + RH__CONTROL__BODY_CONFIG,
    CONTROL + RH__CONTROL__BODY_BARRED,
    CONTROL + RH__CONTROL__BODY_LEADER,
    CONTROL + RH__CONTROL__BODY_NOT_LEADER,
};

enum { KINDS = sizeof kinds / sizeof kinds[0], KINDS_OF_DATA = 9 };

int aim_kind(int type, struct bytes bytes)
{
    Rh__Control *message = type == FRAME_CONTROL ? control_get(bytes) : NULL;
    const int kind = message != NULL ? CONTROL + (int)message->body_case : type;

    control_free(message);
    return kind;
}

static void later(struct fleet *f);

static void on_aim(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    const bool calm =
        f->profile == PROFILE_CALM; // links between nodes and gateways alone may break
    const uint64_t what = prng_between(&f->aims, 0, calm ? 1 : NET_AIM_WHATS - 1);
    const bool data = calm || (f->players != NULL && prng_chance(&f->aims, 50));
    struct net_aim *aim = &f->network.aim;

    (void)event;
    if (f->healed) {
        return;
    }
    *aim = (struct net_aim){
        .what = (enum net_aim_what)what,
        .kind = kinds[prng_between(&f->aims, 0, (data ? KINDS_OF_DATA : KINDS) - 1)],
        .only = prng_chance(&f->aims, 50),
        .to = fleet_process(f, (unsigned)prng_between(&f->aims, 0, fleet_size(f) - 1))->number,
        .until_us = f->world.now_us + prng_between(&f->aims, 20 * MS, 3 * S),
    };
    if (f->options.held_back != 0) {
        aim->what = NET_AIM_HOLD;
        aim->kind = f->options.held_back;
    }
    later(f);
}

static void later(struct fleet *f)
{
    const uint64_t from_us =
        f->network.aim.until_us > f->world.now_us ? f->network.aim.until_us : f->world.now_us;

    world_at(&f->world,
             from_us + prng_between(&f->aims, 0, 2 * f->faults.aim_us),
             (struct world_event){.run = on_aim, .context = f});
}

void aim_start(struct fleet *f)
{
    if (f->faults.aim_us > 0) {
        later(f);
    }
}

/* Drawn by itself, so that the others stay as they were. */
void aim_draw(struct fleet *f, uint64_t seed)
{
    const bool fits = f->profile != PROFILE_ROLES && f->profile != PROFILE_CLOCKS &&
                      (f->profile != PROFILE_CALM || f->faults.reset_us > 0);

    f->aims.state = seed ^ 0x61696d73u;
    if (fits && (prng_chance(&f->aims, 25) || f->options.held_back != 0)) {
        f->faults.aim_us = prng_between(&f->aims, 20 * MS, 1 * S);
    }
}
