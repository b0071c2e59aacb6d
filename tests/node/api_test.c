/* SPDX-License-Identifier: Apache-2.0
 *
 * Every function of the public headers takes NULL, wherever it takes a pointer, and says no. Nor
 * does a node listen where anyone reaches it unless it was told so.
 */
#include "tests/test.h"

#include "tests/folder.h"
#include "tests/node/runtime_rig.h"

#include <ringhold.h>
#include <ringhold_client.h>

#include <stdio.h>
#include <stdlib.h>

static const struct rh_bytes none = {NULL, 0};
static const struct rh_bytes lost = {NULL, 3}; /* three bytes at NULL */
static const struct rh_bytes id = {"x", 1};

static void never(struct rh_actor *actor, void *instance, const struct rh_answer *answer,
                  void *argument)
{
    (void)actor;
    (void)instance;
    (void)answer;
    (void)argument;
    fail();
}

static void never_due(struct rh_actor *actor, void *instance, void *argument)
{
    (void)actor;
    (void)instance;
    (void)argument;
    fail();
}

/* ---- ringhold.h, without an actor ---- */

static int lists_nobody(void *context, const struct rh_live *live)
{
    (void)context;
    (void)live;
    fail();
    return 1;
}

static void questions(void)
{
    const struct rh_admin_options options = {.abi = RH_ABI, .size = sizeof options, .by = "me"};
    const struct rh_pin pin = {.id = id, .node = "n1"};

    assert_null(rh_admin_open(NULL));
    assert_null(rh_admin_open(&options)); // nobody to join
    rh_admin_close(NULL);
    assert_string_equal(rh_admin_said(NULL), "");
    assert_int_equal(rh_pin(NULL, &pin, 1, RH_IF_DEAD_HASH, NULL), RH_INVALID);
    assert_int_equal(rh_unpin(NULL, &pin, 1, NULL), RH_INVALID);
    assert_int_equal(rh_actors(NULL, NULL, lists_nobody, NULL), RH_INVALID);
}

static void versions(void)
{
    assert_memory_equal(rh_version(), RH_VERSION, strlen(RH_VERSION)); // "+next" may be behind it
    assert_int_equal(rh_version_number(), RH_VERSION_NUMBER);
}

static void values(void)
{
    assert_int_equal(rh_text(NULL).bytes.size, 0);
    assert_int_equal(rh_error(NULL).bytes.size, 0);
    assert_int_equal(rh_error(NULL).type, RH_ERROR);
}

static void replies(void)
{
    const struct rh_token token = rh_defer(NULL);

    assert_int_equal(rh_reply(NULL, rh_nil()), RH_INVALID);
    assert_null(token.scene);
    assert_int_equal(rh_reply_later(token, rh_nil()), RH_GONE);
    assert_int_equal(rh_reply_later(token, (struct rh_value){RH_BYTES, 0, lost}), RH_INVALID);
    assert_int_equal(rh_done(token, RH_OK), RH_GONE);
    assert_int_equal(rh_after(NULL, 1, never_due, NULL), RH_INVALID);
    assert_null(rh_life(NULL).scene);
    assert_int_equal(rh_post(token, never_due, NULL), RH_GONE);
    assert_int_equal(rh_post(token, NULL, NULL), RH_INVALID);
}

static void asks(void)
{
    assert_int_equal(rh_call(NULL, 0, id, none, 10, 0, never, NULL), RH_INVALID);
    assert_int_equal(rh_call_owned(NULL, 0, id, none, 10, 0, never, NULL, free), RH_INVALID);
    assert_int_equal(rh_call_owned(NULL, 0, id, none, 10, 0, never, NULL, NULL), RH_INVALID);
    assert_int_equal(rh_send(NULL, 0, id, none), RH_INVALID);
    assert_int_equal(rh_send_once(NULL, 0, id, none), RH_INVALID);
    assert_int_equal(rh_push(NULL, none), RH_INVALID);
    assert_int_equal(rh_push_one(NULL, 1, none), RH_INVALID);
    assert_int_equal(rh_push_ids(NULL, 0, &id, 1, none), RH_INVALID);
    assert_int_equal(rh_kick(NULL, RH_KICK_GAME, NULL), RH_INVALID);
    assert_int_equal(rh_kick_one(NULL, 1, RH_KICK_GAME, NULL), RH_INVALID);
    assert_int_equal(rh_rebind(NULL, 0, id), RH_INVALID);
    assert_int_equal(rh_rebind_one(NULL, 1, 0, id), RH_INVALID);
}

static void groups(void)
{
    struct rh_group *group = rh_group_new(7, 2);
    struct rh_bytes at_null = lost;

    rh_group_free(NULL);
    assert_int_equal(rh_group_join(NULL, id), RH_INVALID);
    assert_int_equal(rh_group_join(group, lost), RH_INVALID);
    assert_int_equal(rh_group_leave(NULL, id), RH_GONE);
    assert_int_equal(rh_group_leave(group, lost), RH_GONE);
    assert_int_equal(rh_group_has(NULL, id), 0);
    assert_int_equal(rh_group_has(group, lost), 0);
    assert_int_equal(rh_group_count(NULL), 0);
    assert_null(rh_group_at(NULL, 0).data);
    assert_int_equal(rh_group_push(NULL, group, none), RH_INVALID);
    rh_group_save(group, NULL);
    rh_group_save(NULL, NULL);
    assert_null(rh_group_load(NULL));
    assert_null(rh_group_load(&at_null));
    rh_group_free(group);
}

static void life(void)
{
    struct rh_bytes at_null = lost;

    assert_int_equal(rh_timer_start(NULL, 1, 0, NULL), 0);
    assert_int_equal(rh_timer_call(NULL, 1, 0, never_due, NULL, free), 0);
    assert_int_equal(rh_timer_call(NULL, 1, 0, NULL, NULL, NULL), 0);
    assert_int_equal(rh_timer_stop(NULL, 1), RH_INVALID);
    assert_int_equal(rh_passivate(NULL), RH_INVALID);
    assert_int_equal(rh_fail(NULL, NULL), RH_INVALID);
    assert_int_equal(rh_deposed(NULL, NULL), RH_INVALID);
    assert_int_equal(rh_flush_soon(NULL), RH_INVALID);
    assert_null(rh_id(NULL).data);
    assert_int_equal(rh_fence(NULL), 0);
    assert_int_equal(rh_incarnation(NULL).fence, 0);
    assert_int_equal(rh_incarnation(NULL).start, 0);
    rh_incarnation_text(rh_incarnation(NULL), NULL);
    assert_int_equal(rh_state_get(NULL, id, &at_null), RH_INVALID);
    assert_int_equal(rh_state_next(NULL, none, &at_null, &at_null), RH_INVALID);
    assert_int_equal(rh_state_put(NULL, id, none), RH_INVALID);
    assert_int_equal(rh_state_delete(NULL, id), RH_INVALID);
    assert_int_equal(rh_state_undo(NULL), RH_INVALID);
    assert_int_equal(rh_alarm_set(NULL, id, 1, 0, none), RH_INVALID);
    assert_int_equal(rh_alarm_cancel(NULL, id), RH_INVALID);
    assert_int_equal(rh_alarm_next(NULL, none, NULL), RH_INVALID);
    assert_null(rh_shared(NULL));
    rh_out_put(NULL, "x", 1);
    rh_ids_put(NULL, id);
}

static void never_told(struct rh_node *node, const struct rh_answer *answer, void *argument)
{
    (void)node;
    (void)answer;
    (void)argument;
    fail();
}

static void nodes(void)
{
    struct rh_node_options o = {.abi = RH_ABI, .size = sizeof o};
    const struct rh_kind no_ops = {.number = 0};
    char f[256];

    folder_make(f, sizeof f);
    assert_null(rh_node_start(NULL));
    assert_int_equal(rh_node_run(NULL), 1);
    assert_null(rh_node_start(&o));
    o.name = "n1";
    assert_null(rh_node_start(&o));
    o.join = "127.0.0.1:1";
    assert_null(rh_node_start(&o));
    o.data = f;
    o.kind_count = 1;
    assert_null(rh_node_start(&o));
    o.kinds = &no_ops;
    assert_null(rh_node_start(&o));
    assert_int_equal(rh_node_call(NULL, 0, id, none, 10, 0, never_told, NULL), RH_INVALID);
    assert_int_equal(rh_node_owner(NULL, 0, id, f), RH_INVALID);
    assert_int_equal(rh_node_drain(NULL), RH_INVALID);
    rh_node_stop(NULL);
    assert_int_equal(rh_node_wait(NULL), 1);
    assert_int_equal(rh_node_fd(NULL), -1);
    assert_int_equal(rh_node_poll(NULL, 0), RH_INVALID);
    folder_remove(f);
}

/* ---- ringhold_client.h ---- */

static void clients(void)
{
    const struct rhc_options o = {.abi = RHC_ABI, .size = sizeof o};
    const struct rhc_bytes one = {"x", 1};
    const struct rhc_bytes three = {NULL, 3};
    const struct rhc_request good = {.id = one};
    const struct rhc_request bad[] = {{.id = three}, {.id = one, .payload = three}};
    struct rhc_event event;
    size_t room = 1;
    void *memory = malloc(rhc_size(&o));
    struct rhc *c = rhc_init(memory, &o);

    assert_int_equal(rhc_size(NULL), 0);
    assert_null(rhc_init(NULL, &o));
    assert_null(rhc_init(memory, NULL));
    assert_int_equal(rhc_start(NULL, 1), RHC_INVALID);
    rhc_stop(NULL);
    assert_int_equal(rhc_set_token(NULL, "t"), RHC_INVALID);
    assert_int_equal(rhc_set_token(c, NULL), RHC_DONE);
    assert_int_equal(rhc_ask(NULL, &good, 1, NULL), RHC_INVALID);
    assert_int_equal(rhc_ask(c, NULL, 1, NULL), RHC_INVALID);
    assert_int_equal(rhc_tell(NULL, &good, 1), RHC_INVALID);
    assert_int_equal(rhc_tell(c, NULL, 1), RHC_INVALID);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(rhc_ask(c, &bad[i], 1, NULL), RHC_INVALID);
        assert_int_equal(rhc_tell(c, &bad[i], 1), RHC_INVALID);
    }
    assert_int_equal(rhc_bind(NULL, 0, one), RHC_INVALID);
    assert_int_equal(rhc_bind(c, 0, three), RHC_INVALID);
    assert_int_equal(rhc_unbind(NULL), RHC_INVALID);
    assert_int_equal(rhc_wishes(NULL), RHC_NOTHING);
    assert_int_equal(rhc_gateway(NULL), 0);
    rhc_connected(NULL, 1);
    rhc_disconnected(NULL, NULL, 1);
    assert_null(rhc_room(NULL, &room));
    assert_int_equal(room, 0);
    assert_null(rhc_room(c, NULL));
    rhc_received(NULL, 1, 1);
    assert_null(rhc_output(NULL).data);
    rhc_sent(NULL, 1, 1);
    assert_int_equal(rhc_next(NULL, &event), 0);
    assert_int_equal(rhc_next(c, NULL), 0);
    rhc_tick(NULL, 1);
    assert_true(rhc_wake_ms(NULL) == UINT64_MAX);
    assert_int_equal(rhc_state(NULL), RHC_ENDED);
    assert_true(rhc_now_ms() > 0);
    assert_string_equal(rhc_status_name(UINT32_MAX), "?");
    free(memory);
}

static void nobody(void *context, const struct rhc_event *event)
{
    (void)context;
    (void)event;
}

static void lines(void)
{
    const struct rhc_options o = {.abi = RHC_ABI, .size = sizeof o};

    assert_null(rhc_tcp_new(NULL, &o, nobody, NULL));
    assert_null(rhc_tcp_new("127.0.0.1:1", NULL, nobody, NULL));
    struct rhc_tcp *untold = rhc_tcp_new("127.0.0.1:1", &o, NULL, NULL); // nobody is told

    assert_non_null(untold);
    assert_int_equal(rhc_start(rhc_tcp_client(untold), rhc_now_ms()), RHC_DONE);
    rhc_stop(rhc_tcp_client(untold));
    rhc_tcp_poll(untold, 0);
    rhc_tcp_free(untold);
    assert_null(rhc_tcp_client(NULL));
    assert_int_equal(rhc_tcp_fd(NULL), -1);
    assert_int_equal(rhc_tcp_wants_write(NULL), 0);
    assert_int_equal(rhc_tcp_wait_ms(NULL), -1);
    rhc_tcp_poll(NULL, 0);
    rhc_tcp_free(NULL);
}

static void nothing_is_an_error_and_no_crash(void **state)
{
    (void)state;
    versions();
    values();
    questions();
    replies();
    asks();
    groups();
    life();
    nodes();
    clients();
    lines();
}

/* ---- with an actor ---- */

static int begin(struct rh_actor *actor, const struct rh_bytes *state, uint64_t fence,
                 void **instance)
{
    (void)actor;
    (void)state;
    (void)fence;
    *instance = NULL;
    return RH_OK;
}

static void say(struct rh_actor *actor, void *instance, const struct rh_message *message)
{
    struct rh_group *group = rh_group_new(7, 0);

    (void)instance;
    assert_int_equal(rh_after(actor, 1, NULL, NULL), RH_INVALID);
    assert_int_equal(rh_call(actor, 1, lost, none, 10, 0, never, NULL), RH_INVALID);
    assert_int_equal(rh_call(actor, 1, id, lost, 10, 0, never, NULL), RH_INVALID);
    assert_int_equal(rh_call(actor, 1, id, none, 10, 0, NULL, NULL), RH_INVALID);
    assert_int_equal(rh_send(actor, 1, lost, none), RH_INVALID);
    assert_int_equal(rh_send(actor, 1, id, lost), RH_INVALID);
    assert_int_equal(rh_push(actor, lost), RH_INVALID);
    assert_int_equal(rh_push_one(actor, 1, lost), RH_INVALID);
    assert_int_equal(rh_push_ids(actor, 1, NULL, 1, none), RH_INVALID);
    assert_int_equal(rh_push_ids(actor, 1, &lost, 1, none), RH_INVALID);
    assert_int_equal(rh_push_ids(actor, 1, &id, 1, lost), RH_INVALID);
    assert_int_equal(rh_kick(actor, RH_KICK_GAME, NULL), RH_NO_SESSION);
    assert_int_equal(rh_rebind(actor, 1, lost), RH_INVALID);
    assert_int_equal(rh_group_push(actor, NULL, none), RH_INVALID);
    assert_int_equal(rh_group_push(actor, group, lost), RH_INVALID);
    assert_int_equal(rh_reply(actor, (struct rh_value){RH_BYTES, 0, lost}), RH_INVALID);
    if (message->payload.size > 4) {
        assert_int_equal(rh_deposed(actor, "FENCED"), RH_OK);
    } else if (message->payload.size > 0) {
        assert_int_equal(rh_fail(actor, NULL), RH_OK);
    } else {
        assert_int_equal(rh_reply(actor, rh_error(NULL)), RH_OK);
    }
    rh_group_free(group);
}

static int hand_over(struct rh_actor *actor, void *instance, struct rh_out *out)
{
    struct rh_group *group = rh_group_new(7, 0);

    (void)actor;
    (void)instance;
    rh_group_save(NULL, out);
    rh_group_save(group, NULL);
    rh_group_free(group);
    rh_out_put(out, NULL, 0);
    rh_out_put(out, "state", 5);
    return RH_OK;
}

static void end(struct rh_actor *actor, void *instance, enum rh_why why)
{
    (void)actor;
    (void)instance;
    (void)why;
}

static void an_actor_that_gives_nothing_is_told_so(void **state)
{
    static const struct rh_actor_ops ops = {
        .abi = RH_ABI,
        .size = sizeof ops,
        .name = "nothing",
        .activate = begin,
        .message = say,
        .handoff = hand_over,
        .deactivate = end,
    };
    struct runtime_rig t;

    (void)state;
    runtime_rig_open(&t, &ops, NULL);
    (void)runtime_rig_call(&t, "");
    assert_int_equal(t.code, ANSWER_APP_ERROR);
    assert_string_equal(t.text, "");
    runtime_export(t.actor);
    assert_int_equal(t.error, ERR_OK);
    assert_true(bytes_equal(buffer_bytes(&t.state), bytes_of("state", 5)));
    runtime_discard(t.actor, RH_MOVED);
    runtime_rig_close(&t);

    runtime_rig_open(&t, &ops, NULL);
    (void)runtime_rig_call(&t, "fail");
    assert_int_equal(t.code, ANSWER_APP_ERROR);
    assert_int_equal(t.told[VERB_FAIL], 1);
    runtime_rig_close(&t);

    runtime_rig_open(&t, &ops, NULL);
    (void)runtime_rig_call(&t, "deposed");
    assert_int_equal(t.code, ANSWER_APP_ERROR);
    assert_string_equal(t.text, "FENCED");
    assert_int_equal(t.told[VERB_FAIL], 1);
    runtime_rig_close(&t);
}

/* ---- where a node listens ---- */

static void a_node_listens_beyond_loopback_only_if_told_so(void **state)
{
    struct rh_node_options o = {
        .abi = RH_ABI, .size = sizeof o, .name = "n1", .join = "127.0.0.1:1", .keep_signals = 1};
    char f[256];

    (void)state;
    folder_make(f, sizeof f);
    o.data = f;
    o.listen = "0.0.0.0:0";
    o.advertise = "127.0.0.1:7";
    assert_null(rh_node_start(&o)); // in the clear
    o.listen = "[::]:0";
    assert_null(rh_node_start(&o));
    o.listen = "0.0.0.0:0";
    o.insecure = 1;
    o.advertise = NULL;
    assert_null(rh_node_start(&o)); // nobody can dial that
    o.advertise = "127.0.0.1:7";
    struct rh_node *node = rh_node_start(&o);

    assert_non_null(node);
    rh_node_stop(node);
    assert_int_equal(rh_node_wait(node), 0); // it never was of the fleet
    folder_remove(f);
}

/* ---- and none is left out ---- */

/* The name of the function that a line of a header declares; false: it declares none. */
static bool name_of(const char *line, const char *mark, char *name, size_t size)
{
    const char *open = strchr(line, '(');
    const char *at = open;

    if (strncmp(line, mark, strlen(mark)) != 0 || open == NULL) {
        return false;
    }
    while (at[-1] == '_' || (at[-1] >= 'a' && at[-1] <= 'z')) {
        at--;
    }
    (void)snprintf(name, size, "%.*s(", (int)(open - at), at);
    return true;
}

static char *whole(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = calloc(1, (size_t)1 << 20);

    assert_non_null(file);
    assert_true(fread(text, 1, ((size_t)1 << 20) - 1, file) > 0);
    (void)fclose(file);
    return text;
}

struct header {
    const char *path;
    const char *mark; /* of what is public */
};

static size_t check_header(struct header header, const char *here)
{
    FILE *file = fopen(header.path, "r");
    char line[512];
    char name[128];
    size_t count = 0;

    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        if (name_of(line, header.mark, name, sizeof name)) {
            if (strstr(here, name) == NULL) {
                fail_msg("%s) is not called here", name);
            }
            count++;
        }
    }
    (void)fclose(file);
    return count;
}

static void each_function_of_the_headers_was_called(void **state)
{
    char *here = whole("tests/node/api_test.c");

    (void)state;
    assert_true(check_header((struct header){"include/ringhold.h", "RH_API "}, here) >= 40);
    assert_true(check_header((struct header){"include/ringhold_client.h", "RHC_API "}, here) >= 25);
    free(here);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_an_error_and_no_crash),
        cmocka_unit_test(an_actor_that_gives_nothing_is_told_so),
        cmocka_unit_test(a_node_listens_beyond_loopback_only_if_told_so),
        cmocka_unit_test(each_function_of_the_headers_was_called),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
