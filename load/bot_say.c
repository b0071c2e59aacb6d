/* SPDX-License-Identifier: Apache-2.0
 *
 * What a bot sends.
 */
#include "base/assert.h"
#include "gateway/access/token.h"
#include "load/bot_inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { TOKEN_TTL_S = 3600 };

static struct bytes id_of(const struct bot *b, char text[BOT_TEXT_MAX])
{
    const int size = snprintf(text, BOT_TEXT_MAX, "%s%" PRIu32, b->all->config.prefix, b->number);

    return bytes_of(text, (size_t)size);
}

static void say_auth(struct bot *b)
{
    const struct bots_config *c = &b->all->config;
    struct token token = {.expires_s = c->unix_s + TOKEN_TTL_S, .kind = c->kind};
    char text[BOT_TEXT_MAX];
    const struct bytes id = id_of(b, text);
    struct buffer shown = {0};

    token.id_size = (uint8_t)id.size;
    memcpy(token.id, id.data, id.size);
    (void)snprintf(token.cluster, sizeof token.cluster, "%s", c->cluster);
    const enum err bad = token_put(&shown, &token, &c->keys->key[0]);
    ASSERT(bad == ERR_OK); // names were checked at the start
    packet_put_auth(&b->out, buffer_bytes(&shown));
    buffer_fini(&shown);
}

void bot_say_hello(struct bot *b)
{
    const struct hello_packet hello = {.version_min = PACKET_VERSION,
                                       .version_max = PACKET_VERSION};

    packet_put_hello(&b->out, &hello);
    if (b->all->config.keys != NULL) {
        say_auth(b);
    }
}

static void say(struct bot *b, enum packet_type type, uint8_t flags, uint32_t name,
                struct bytes payload)
{
    char text[BOT_TEXT_MAX];

    packet_put_request(&b->out,
                       type,
                       &(struct request_packet){.request = name,
                                                .flags = flags,
                                                .kind = b->all->config.kind,
                                                .id = id_of(b, text),
                                                .payload = payload});
}

/* What it has of its session. */
static struct ack_packet has(const struct bot *b)
{
    return (struct ack_packet){.pushes = b->push - 1,
                               .answers = b->asked_count > 0 ? b->asked[0].name : b->name + 1};
}

void bot_say_bind(struct bot *b)
{
    uint8_t shown[PACKET_RETURN_SIZE];

    b->next_us = UINT64_MAX;
    if (b->kept) {
        b->attempts++;
        const struct return_packet r = {.name = b->session,
                                        .has = has(b),
                                        .attempt =
                                            b->attempts <= UINT16_MAX ? (uint16_t)b->attempts : 0};

        packet_put_return(shown, &r);
        b->bind_name = ++b->name;
        say(b, PACKET_RESUME, 0, b->bind_name, bytes_of(shown, sizeof shown));
        return;
    }
    b->bind_name = ++b->name;
    say(b,
        PACKET_BIND,
        b->all->config.keep ? PACKET_KEEP : 0,
        b->bind_name,
        (struct bytes){NULL, 0});
}

void bot_say_unbind(struct bot *b)
{
    b->bound = false;
    b->unbind_name = ++b->name;
    packet_put_unbind(&b->out, b->unbind_name);
}

void bot_ack_later(struct bot *b, uint64_t now_us)
{
    if (b->kept && b->ack_us == UINT64_MAX) {
        b->ack_us = now_us + (uint64_t)BOT_ACK_MS * BOT_MS;
    }
}

void bot_say_ack(struct bot *b)
{
    const struct ack_packet ack = has(b);

    packet_put_ack(&b->out, &ack);
    b->ack_us = UINT64_MAX;
}

/* ---- requests ---- */

static void put_number(struct buffer *out, uint32_t number)
{
    char text[16];
    const int size = snprintf(text, sizeof text, "%" PRIu32, number);

    buffer_put(out, text, (size_t)size);
}

struct bytes bot_payload(struct bot *b, uint8_t line, uint32_t name)
{
    const struct bots_config *c = &b->all->config;
    struct buffer *out = &b->all->payload;

    buffer_clear(out);
    for (const char *at = c->script->line[line].payload; *at != '\0';) {
        if (strncmp(at, "{n}", 3) == 0) {
            put_number(out, name);
            at += 3;
        } else if (strncmp(at, "{bot}", 5) == 0) {
            put_number(out, b->number);
            at += 5;
        } else {
            buffer_put(out, at++, 1);
        }
    }
    if (out->size < c->size) {
        const size_t more = c->size - out->size;

        memset(buffer_reserve(out, more), '.', more);
        out->size = c->size;
    }
    return buffer_bytes(out);
}

void bot_ask(struct bot *b, uint8_t line, uint64_t now_us)
{
    const uint32_t name = ++b->name;

    say(b, PACKET_REQUEST, 0, name, bot_payload(b, line, name));
    b->asked[b->asked_count++] = (struct asked){.since_us = now_us, .name = name, .line = line};
    b->all->waiting++;
    b->all->ledger.asked++;
}

void bot_notify(struct bot *b, uint8_t line)
{
    const uint32_t name = ++b->name;

    say(b, PACKET_NOTIFY, 0, name, bot_payload(b, line, name));
    b->all->ledger.notified++;
    b->unknown++; // nobody tells whether it ran
}

void bot_say_again(struct bot *b)
{
    for (uint32_t i = 0; i < b->asked_count; i++) {
        const struct asked *a = &b->asked[i];

        say(b, PACKET_REQUEST, PACKET_AGAIN, a->name, bot_payload(b, a->line, a->name));
        b->all->ledger.again++;
    }
}
