/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands that come together ask and are answered as if each had come alone, whatever stands
 * between them.
 */
#include "tests/test.h"

#include "tests/gateway/gateway_rig.h"

#define LONG_64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define LONG_255 \
    LONG_64 LONG_64 LONG_64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde"
#define PARENT "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

/* What is plain, and goes a short way behind another. */
static const char *const plain[] = {
    "*3\r\n$3\r\nSET\r\n$5\r\nkey:1\r\n$1\r\nv\r\n",
    "*2\r\n$3\r\nGET\r\n$5\r\nkey:1\r\n",
    "*3\r\n$4\r\nCALL\r\n$10\r\nplayer:123\r\n$64\r\n" LONG_64 "\r\n",
    "*2\r\n$4\r\nINCR\r\n$16\r\nkey:000000000001\r\n",
};

static const char traced[] =
    "*5\r\n$4\r\nCALL\r\n$1\r\na\r\n$2\r\nhi\r\n$5\r\nTRACE\r\n$55\r\n" PARENT "\r\n";

static const char *const others[] = {
    "*2\r\n$3\r\nGET\r\n$255\r\n" LONG_255 "\r\n",
    "*2\r\n$3\r\nGET\r\n$256\r\n" LONG_255 "f\r\n", // no id
    "*2\r\n$3\r\nGET\r\n$0\r\n\r\n",
    "*2\r\n$3\r\nGET\r\n$1\r\nx\r\n",
    "*3\r\n$3\r\nSET\r\n$5\r\nkey:1\r\n$0\r\n\r\n",
    "*3\r\n$3\r\nSET\r\n$5\r\nkey:1\r\n$255\r\n" LONG_255 "\r\n",
    "*3\r\n$3\r\nSET\r\n$5\r\nkey:1\r\n$32\r\n0123456789abcdef0123456789abcdef\r\n",
    "*4\r\n$3\r\nSET\r\n$5\r\nkey:1\r\n$1\r\nv\r\n$2\r\nNX\r\n",
    "*2\r\n$3\r\nget\r\n$5\r\nkey:1\r\n",
    "*1\r\n$3\r\nGET\r\n",
    "*3\r\n$3\r\nGET\r\n$5\r\nkey:1\r\n$5\r\nkey:2\r\n", // wrong count
    "*3\r\n$4\r\nCALL\r\n$7\r\n@7/boss\r\n$2\r\nhi\r\n",
    "*3\r\n$4\r\nCALL\r\n$5\r\n@home\r\n$2\r\nhi\r\n",
    "*3\r\n$4\r\nCALL\r\n$4\r\n@0/a\r\n$2\r\nhi\r\n",
    "*3\r\n$4\r\nCALL\r\n$3\r\n@7/\r\n$2\r\nhi\r\n", // no id
    traced,
    "*3\r\n$4\r\nTELL\r\n$1\r\na\r\n$2\r\nhi\r\n",
    "*3\r\n$4\r\nMGET\r\n$1\r\na\r\n$1\r\nb\r\n",
    "*5\r\n$4\r\nMSET\r\n$1\r\na\r\n$1\r\n1\r\n$1\r\nb\r\n$1\r\n2\r\n",
    "*1\r\n$4\r\nPING\r\n",
    "*2\r\n$4\r\nPING\r\n$2\r\nhi\r\n",
    "*2\r\n$5\r\nWHERE\r\n$1\r\na\r\n",
    "*1\r\n$4\r\nNONE\r\n",
    "*1\r\n$5\r\nMULTI\r\n",
    "*1\r\n$7\r\nDISCARD\r\n",
    "*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n",
    "GET key:1\r\n",
    "\r\n",
    "*0\r\n",
    "*2\r\n$3\r\nGET\r\n$001\r\nx\r\n", // it closes, as do those that follow
    "*2\r\n$3\r\nGET\r\n$1\r\nxy\r\n",
    "*2\r\n$3\r\nGET\r\n$-1\r\n",
    "*2\r\n$3\r\nGET\r\n:1\r\n",
    "*1\r\n$4\r\nQUIT\r\n",
};

enum { PLAIN = sizeof plain / sizeof plain[0], OTHERS = sizeof others / sizeof others[0] };

struct run_rig {
    struct gateway_rig gateway;
    struct buffer asked;  /* owned: what the node was asked, in its order */
    struct buffer output; /* owned: what the client was told */
};

static void put_sized(struct buffer *out, struct bytes text)
{
    const uint32_t size = (uint32_t)text.size;

    buffer_put(out, &size, sizeof size);
    buffer_put(out, text.data, text.size);
}

/* The node says what it was asked. */
static void takes(void *context, const struct stream_taken *t)
{
    struct run_rig *rig = CONTAINER_OF(context, struct run_rig, gateway.node);
    const struct stream_request *q = t->request;
    struct buffer value = {0};

    buffer_put(&rig->asked, &q->kind, sizeof q->kind);
    buffer_put(&rig->asked, &q->flags, sizeof q->flags);
    put_sized(&rig->asked, q->id);
    put_sized(&rig->asked, q->body);
    value_put(&value, &(struct value){.type = VALUE_BULK, .text = q->id});
    const struct stream_answer a = {.rid = q->rid, .token = 1, .body = buffer_bytes(&value)};
    server_answer(&t->by->stream, &a);
    buffer_fini(&value);
}

static void begin(struct run_rig *rig)
{
    *rig = (struct run_rig){0};
    gateway_rig_init(&rig->gateway, GATEWAY_RIG_GET, true);
    rig->gateway.node.take = takes;
    rig->gateway.clients = 1;
}

static void end(struct run_rig *rig)
{
    gateway_rig_fini(&rig->gateway);
    buffer_fini(&rig->asked);
    buffer_fini(&rig->output);
}

/* So many bytes come at once. */
static void comes(struct run_rig *rig, struct bytes text)
{
    buffer_clear(&rig->gateway.input[0]);
    buffer_put(&rig->gateway.input[0], text.data, text.size);
    gateway_rig_there(&rig->gateway);
    router_check(rig->gateway.base.rig.router);
}

/* All is answered. */
static void ends(struct run_rig *rig)
{
    struct client *c = rig->gateway.client[0];
    struct router_stats router;

    do {
        gateway_rig_node(&rig->gateway);
        gateway_rig_frames(&rig->gateway);
        router_check(rig->gateway.base.rig.router);
        const struct bytes out = client_output(c);
        buffer_put(&rig->output, out.data, out.size);
        client_sent(c, out.size, rig->gateway.base.rig.now_us);
        client_resume(c, rig->gateway.base.rig.now_us, &rig->gateway.base.effects);
        gateway_rig_stage_effects(&rig->gateway);
        gateway_rig_logs(&rig->gateway);
        router_stats(rig->gateway.base.rig.router, &router);
    } while (router.in_flight > 0 || client_output(c).size > 0);
}

static void check_alike(struct run_rig *a, struct run_rig *b)
{
    struct router_stats router[2];
    struct clients_stats clients[2];

    assert_true(bytes_equal(buffer_bytes(&a->asked), buffer_bytes(&b->asked)));
    assert_true(bytes_equal(buffer_bytes(&a->output), buffer_bytes(&b->output)));
    router_stats(a->gateway.base.rig.router, &router[0]);
    router_stats(b->gateway.base.rig.router, &router[1]);
    clients_stats(a->gateway.base.all, &clients[0]);
    clients_stats(b->gateway.base.all, &clients[1]);
    assert_int_equal(router[0].requests, router[1].requests);
    assert_int_equal(router[0].replied, router[1].replied);
    assert_int_equal(clients[0].commands, clients[1].commands);
    assert_int_equal(clients[0].errors, clients[1].errors);
    assert_int_equal(clients[0].bad_input, clients[1].bad_input);
}

/* These commands: each alone into `rig`, and all of them behind each other into `batch`. */
static void each_alone(struct run_rig *rig, const char *const *command, size_t count,
                       struct buffer *batch)
{
    begin(rig);
    buffer_clear(batch);
    for (size_t i = 0; i < count; i++) {
        comes(rig, bytes_of(command[i], strlen(command[i])));
        buffer_put(batch, command[i], strlen(command[i]));
    }
    ends(rig);
}

/* What comes in two parts is as what comes one by one. */
static void check_cut(struct run_rig *one, struct bytes batch, size_t cut)
{
    struct run_rig rig;

    begin(&rig);
    comes(&rig, bytes_of(batch.data, cut));
    comes(&rig, bytes_of(batch.data + cut, batch.size - cut));
    ends(&rig);
    check_alike(one, &rig);
    end(&rig);
}

static void whatever_stands_among_plain_commands_is_run_in_its_place(void **state)
{
    struct run_rig one;
    struct buffer batch = {0};

    (void)state;
    for (size_t i = 0; i < OTHERS; i++) {
        const char *command[4 * PLAIN + 2];
        size_t count = 0;

        for (size_t n = 0; n < (size_t)2 * PLAIN; n++) {
            command[count++] = plain[n % PLAIN];
        }
        command[count++] = others[i];
        for (size_t n = 0; n < PLAIN; n++) {
            command[count++] = plain[n];
        }
        command[count++] = others[i];
        for (size_t n = 0; n < PLAIN; n++) {
            command[count++] = plain[n];
        }
        each_alone(&one, command, count, &batch);
        assert_true(one.asked.size > 0 && one.output.size > 0);
        check_cut(&one, buffer_bytes(&batch), 0);
        end(&one);
    }
    buffer_fini(&batch);
}

static void wherever_a_batch_is_cut_it_is_the_same(void **state)
{
    const char *const command[] = {plain[0],
                                   plain[1],
                                   plain[2],
                                   others[3],
                                   others[11],
                                   plain[2],
                                   others[17],
                                   plain[3],
                                   plain[3]};
    struct run_rig one;
    struct buffer batch = {0};

    (void)state;
    each_alone(&one, command, sizeof command / sizeof command[0], &batch);
    for (size_t cut = 0; cut <= batch.size; cut++) {
        check_cut(&one, buffer_bytes(&batch), cut);
    }
    end(&one);
    buffer_fini(&batch);
}

static void many_plain_commands_are_counted_as_they_are(void **state)
{
    enum { MANY = 700 };
    const char *command[MANY];
    struct run_rig one;
    struct buffer batch = {0};

    (void)state;
    for (size_t i = 0; i < MANY; i++) {
        command[i] = plain[(i / 3) % PLAIN];
    }
    each_alone(&one, command, MANY, &batch);
    check_cut(&one, buffer_bytes(&batch), 0);
    check_cut(&one, buffer_bytes(&batch), batch.size / 2);
    end(&one);
    buffer_fini(&batch);
}

static void any_mixture_however_it_is_cut_is_the_same(void **state)
{
    enum { MIXTURES = 300, COMMANDS = 40 };
    uint64_t draws = 0;
    struct buffer batch = {0};

    (void)state;
    for (size_t i = 0; i < MIXTURES; i++) {
        const char *command[COMMANDS];
        struct run_rig one;

        for (size_t n = 0; n < COMMANDS; n++) {
            const uint64_t draw = table_mix(++draws);

            command[n] = draw % 4 == 0 ? others[draw / 4 % OTHERS] : plain[draw / 4 % PLAIN];
        }
        each_alone(&one, command, COMMANDS, &batch);
        check_cut(&one, buffer_bytes(&batch), table_mix(++draws) % batch.size);
        end(&one);
    }
    buffer_fini(&batch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whatever_stands_among_plain_commands_is_run_in_its_place),
        cmocka_unit_test(wherever_a_batch_is_cut_it_is_the_same),
        cmocka_unit_test(many_plain_commands_are_counted_as_they_are),
        cmocka_unit_test(any_mixture_however_it_is_cut_is_the_same),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
