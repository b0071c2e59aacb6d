/* SPDX-License-Identifier: Apache-2.0
 *
 * Probes on the wire.
 */
#include "node/books/probe.h"

#include "wire/control.h"
#include "wire/record.h"

int call_name_compare(const struct call_name *a, const struct call_name *b)
{
    if (a->node != b->node) {
        return a->node < b->node ? -1 : 1;
    }
    if (a->session != b->session) {
        return a->session < b->session ? -1 : 1;
    }
    return a->seq == b->seq ? 0 : a->seq < b->seq ? -1 : 1;
}

static Rh__CallName name_put(const struct call_name *name)
{
    Rh__CallName out = RH__CALL_NAME__INIT;

    out.node = name->node;
    out.session = name->session;
    out.seq = name->seq;
    return out;
}

static struct call_name name_get(const Rh__CallName *in)
{
    if (in == NULL) {
        return (struct call_name){0};
    }
    return (struct call_name){.node = in->node, .session = in->session, .seq = in->seq};
}

void probe_put(struct buffer *out, const struct probe *p)
{
    Rh__CallName origin = name_put(&p->origin);
    Rh__CallName call = name_put(&p->call);
    Rh__CallName greatest = name_put(&p->greatest);
    Rh__Probe probe = RH__PROBE__INIT;
    Rh__Control control = RH__CONTROL__INIT;

    probe.origin = &origin;
    probe.call = &call;
    probe.greatest = &greatest;
    probe.kind = p->kind;
    probe.id = proto_bytes(p->id);
    probe.round = p->round;
    probe.hops = p->hops;
    control.body_case = RH__CONTROL__BODY_PROBE;
    control.probe = &probe;
    control_put(out, &control);
}

enum err probe_get(const Rh__Probe *in, struct probe *p)
{
    *p = (struct probe){
        .origin = name_get(in->origin),
        .call = name_get(in->call),
        .kind = (uint16_t)in->kind,
        .id = bytes_of(in->id.data, in->id.len),
        .greatest = name_get(in->greatest),
        .round = in->round,
        .hops = in->hops,
    };
    return p->origin.seq == 0 || p->call.seq == 0 || in->kind > UINT16_MAX || p->id.size == 0 ||
                   p->id.size > RECORD_ID_MAX
               ? ERR_CORRUPT
               : ERR_OK;
}
