/* SPDX-License-Identifier: Apache-2.0
 *
 * Clients under test on a real router with one node, whose requests are kept
 * until the test answers them.
 */
#ifndef TESTS_GATEWAY_CLIENT_RIG_H
#define TESTS_GATEWAY_CLIENT_RIG_H

#include "base/mem.h"
#include "gateway/client/client.h"
#include "tests/gateway/router_rig.h"
#include "wire/args.h"

enum { CLIENT_RIG_REQUESTS = 16384 };

struct client_rig {
    struct rig rig;
    struct clients *all;
    struct router_effects effects; /* of client calls */
    struct buffer *request;        /* owned: record number i + 1, as sent to the node */
    size_t request_count;
};

static inline void client_rig_init(struct client_rig *r, const struct clients_config *clients,
                                   const struct router_config *router)
{
    *r = (struct client_rig){0};
    rig_init(&r->rig, router);
    r->request = mem_new(CLIENT_RIG_REQUESTS, sizeof *r->request);
    r->all = clients_new(clients, r->rig.router, r->rig.now_us);
}

/* The ring is known and its one node linked. */
static inline void client_rig_ring(struct client_rig *r)
{
    rig_add_member(&r->rig, 1, 10);
    ring_create(&r->rig.leader.ring, RIG_VNODES, 1, 5);
    rig_config(&r->rig);
    rig_step(&r->rig, (struct router_event){.type = ROUTER_NODE_UP, .slot = 1, .incarnation = 10});
}

static inline void client_rig_fini(struct client_rig *r)
{
    clients_free(r->all);
    for (size_t i = 0; i < r->request_count; i++) {
        buffer_fini(&r->request[i]);
    }
    mem_free(r->request);
    router_effects_fini(&r->effects);
    rig_fini(&r->rig);
}

/* Do what the router wants: keep requests, hand out replies. */
static inline void client_rig_do(struct client_rig *r, const struct router_effects *effects)
{
    for (size_t i = 0; i < effects->count; i++) {
        const struct router_effect *e = &effects->item[i];
        const struct bytes bytes = {effects->bytes.data + e->at, e->size};

        if (e->type == ROUTER_SEND_NODE && r->request_count < CLIENT_RIG_REQUESTS) {
            buffer_put(&r->request[r->request_count++], bytes.data, bytes.size);
        } else if (e->type == ROUTER_REPLY && clients_find(r->all, e->session) != NULL) {
            client_on_reply(clients_find(r->all, e->session), e, bytes, r->rig.now_us);
        } else if (e->type == ROUTER_VOUCH && clients_find(r->all, e->session) != NULL) {
            client_vouch(clients_find(r->all, e->session), e->version, r->rig.now_us);
        }
    }
}

static inline void client_rig_do_effects(struct client_rig *r)
{
    client_rig_do(r, &r->effects);
    router_effects_clear(&r->effects);
}

static inline void client_rig_event(struct client_rig *r, struct router_event event)
{
    rig_step(&r->rig, event);
    client_rig_do(r, &r->rig.effects);
}

static inline void client_rig_bytes(struct client_rig *r, struct client *c, struct bytes in)
{
    client_on_bytes(c, in, r->rig.now_us, &r->effects);
    client_rig_do_effects(r);
}

static inline void client_rig_text(struct client_rig *r, struct client *c, const char *text)
{
    client_rig_bytes(r, c, bytes_of(text, strlen(text)));
}

static inline void client_rig_free(struct client_rig *r, struct client *c)
{
    client_free(c, r->rig.now_us, &r->effects);
    client_rig_do_effects(r);
}

/* Request `number`, 1 and up. */
static inline struct request_record client_rig_request(const struct client_rig *r, size_t number)
{
    struct reader in = {.at = r->request[number - 1].data, .left = r->request[number - 1].size};
    struct request_record q = {0};

    return request_get(&in, &q) == ERR_OK ? q : (struct request_record){0};
}

static inline void client_rig_answer(struct client_rig *r, size_t number, enum answer_code code,
                                     struct bytes body)
{
    const struct request_record q = client_rig_request(r, number);
    const struct answer_record a = {.gateway = q.gateway,
                                    .session = q.session,
                                    .seq = q.seq,
                                    .fence = q.version,
                                    .version = q.version,
                                    .copy = q.copy,
                                    .code = (uint8_t)code,
                                    .body = body};

    client_rig_event(r, (struct router_event){.type = ROUTER_ANSWER, .slot = 1, .answer = &a});
}

static inline void client_rig_value(struct client_rig *r, size_t number, const struct value *value)
{
    struct buffer body = {0};

    value_put(&body, value);
    client_rig_answer(r, number, ANSWER_OK, buffer_bytes(&body));
    buffer_fini(&body);
}

#endif
