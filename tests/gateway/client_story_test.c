/* SPDX-License-Identifier: Apache-2.0
 *
 * Plays tests/story/client-*.txt: a command, "----", what the clients see and
 * the node is asked, an empty line. REWRITE=1 writes what happened instead.
 *
 *     start          no ring yet          ring          one node, linked
 *     N> TEXT        client N sends TEXT; "\r\n" is added, \r \n \x00 are escapes, \ at the end
 *                    keeps the line open
 *     #K VALUE       request K is answered: i5 integer, bTEXT bulk, sTEXT simple, n nothing,
 *                    eTEXT error value, rTEXT bytes, xTEXT actor's error, k no such kind,
 *                    c cold, o overload
 *     after MS       lost (the node's link)   back   close N   end N (N sends no more)
 */
#include "tests/gateway/client_rig.h"

#include "tests/stories.h"

#include <inttypes.h>
#include <stdlib.h>

enum { CLIENTS = 10 };

static struct client_rig rig;
static bool running;
static struct client *client[CLIENTS];
static size_t shown; /* requests shown so far */
static FILE *out;

static void stop(void)
{
    for (size_t i = 0; i < CLIENTS; i++) {
        if (client[i] != NULL) {
            client_rig_free(&rig, client[i]);
            client[i] = NULL;
        }
    }
    client_rig_fini(&rig);
}

static void start(void)
{
    struct clients_config clients = clients_config_default();
    struct router_config router = router_config_default();

    if (running) {
        stop();
    }
    clients.version = "0.1.0";
    clients.port = 6380;
    (void)snprintf(clients.name, sizeof clients.name, "g1");
    router.gateway = 7;
    client_rig_init(&rig, &clients, &router);
    running = true;
    shown = 0;
}

static void print(struct bytes bytes)
{
    for (size_t i = 0; i < bytes.size; i++) {
        const uint8_t c = bytes.data[i];

        if (c == '\r') {
            (void)fputs("\\r", out);
        } else if (c == '\n') {
            (void)fputs("\\n", out);
        } else if (c < ' ' || c > '~') {
            (void)fprintf(out, "\\x%02x", c);
        } else {
            (void)fputc(c, out);
        }
    }
}

static void show_request(size_t number)
{
    const struct request_record q = client_rig_request(&rig, number);
    struct args args;

    (void)fprintf(out, "#%zu asks ", number);
    print(q.id);
    (void)fputs((q.flags & REQUEST_NO_REPLY) != 0 ? ", no reply:" : ":", out);
    if ((q.flags & REQUEST_COMMAND) != 0) {
        assert_int_equal(args_get(q.body, &args), ERR_OK);
        for (size_t i = 0; i < args.count; i++) {
            (void)fputc(' ', out);
            print(args.arg[i]);
        }
    } else {
        (void)fputs(" payload ", out);
        print(q.body);
    }
    (void)fputc('\n', out);
}

static void show_client(size_t n)
{
    struct client *c = client[n];
    const struct bytes output = client_output(c);

    if (output.size > 0) {
        (void)fprintf(out, "%zu< ", n);
        print(output);
        (void)fputc('\n', out);
        client_sent(c, output.size, rig.rig.now_us);
    }
    if (client_is_done(c)) {
        (void)fprintf(out, "%zu is closed\n", n);
        client_rig_free(&rig, c);
        client[n] = NULL;
    }
}

static void show(void)
{
    while (shown < rig.request_count) {
        show_request(++shown);
    }
    for (size_t n = 0; n < CLIENTS; n++) {
        if (client[n] != NULL) {
            show_client(n);
        }
    }
}

/* Undo escapes in place; returns the size. */
static size_t unescape(char *text)
{
    size_t to = 0;

    for (size_t i = 0; text[i] != '\0'; i++) {
        if (text[i] == '\\' && text[i + 1] == 'r') {
            text[to++] = '\r';
            i++;
        } else if (text[i] == '\\' && text[i + 1] == 'n') {
            text[to++] = '\n';
            i++;
        } else if (text[i] == '\\' && text[i + 1] == 'x') {
            text[to++] = (char)strtol((char[]){text[i + 2], text[i + 3], '\0'}, NULL, 16);
            i += 3;
        } else {
            text[to++] = text[i];
        }
    }
    return to;
}

static void play_send(size_t n, char *text)
{
    const size_t length = strlen(text);
    const bool open = length > 0 && text[length - 1] == '\\';
    struct buffer in = {0};

    if (client[n] == NULL) {
        char address[32];

        (void)snprintf(address, sizeof address, "10.0.0.%zu:1000", n);
        client[n] = client_new(rig.all, CLIENT_RESP, address, rig.rig.now_us);
    }
    if (open) {
        text[length - 1] = '\0';
    }
    buffer_put(&in, text, unescape(text));
    if (!open) {
        buffer_put(&in, "\r\n", 2);
    }
    client_rig_bytes(&rig, client[n], buffer_bytes(&in));
    buffer_fini(&in);
}

static void play_answer(size_t number, const char *what)
{
    const struct bytes text = bytes_of(what + 1, strlen(what + 1));
    struct value value = {.text = text};

    if (what[0] == 'r') {
        client_rig_answer(&rig, number, ANSWER_OK, text);
    } else if (what[0] == 'x') {
        client_rig_answer(&rig, number, ANSWER_APP_ERROR, text);
    } else if (what[0] == 'k') {
        client_rig_answer(&rig, number, ANSWER_NO_KIND, text);
    } else if (what[0] == 'c' || what[0] == 'o') {
        client_rig_answer(&rig, number, what[0] == 'c' ? ANSWER_COLD : ANSWER_OVERLOAD, text);
    } else {
        value.type = (enum value_type)what[0];
        value.integer = strtoll(what + 1, NULL, 10);
        client_rig_value(&rig, number, &value);
    }
}

static bool play_event(const char *line)
{
    unsigned long long a = 0;

    // NOLINTBEGIN(cert-err34-c)
    if (strcmp(line, "start") == 0) {
        start();
    } else if (strcmp(line, "ring") == 0) {
        client_rig_ring(&rig);
        client_rig_do(&rig, &rig.rig.effects);
    } else if (strcmp(line, "lost") == 0) {
        client_rig_event(&rig, (struct router_event){.type = ROUTER_NODE_DOWN, .slot = 1});
    } else if (strcmp(line, "back") == 0) {
        client_rig_event(
            &rig, (struct router_event){.type = ROUTER_NODE_UP, .slot = 1, .incarnation = 10});
    } else if (sscanf(line, "after %llu", &a) == 1) {
        rig.rig.now_us += a * 1000;
        client_rig_event(&rig, (struct router_event){.type = ROUTER_TICK});
    } else if (sscanf(line, "close %llu", &a) == 1) {
        client_rig_free(&rig, client[a]);
        client[a] = NULL;
    } else if (sscanf(line, "end %llu", &a) == 1) {
        client_on_end(client[a]);
    } else {
        return false;
    }
    // NOLINTEND(cert-err34-c)
    return true;
}

static void play(char *line)
{
    char what[256];
    unsigned number = 0;

    line[strcspn(line, "\n")] = '\0';
    if (line[0] >= '0' && line[0] <= '9' && line[1] == '>' && line[2] == ' ') {
        play_send((size_t)(line[0] - '0'), line + 3);
    } else if (sscanf(line, "#%u %255[^\n]", &number, what) == 2) { // NOLINT(cert-err34-c)
        play_answer(number, what);
    } else if (!play_event(line)) {
        (void)fprintf(out, "unknown command\n");
    }
    show();
}

static void play_line(char *line, FILE *to)
{
    out = to;
    play(line);
}

static void every_story_of_a_client_plays_as_written(void **state)
{
    static const struct stories stories = {.play = play_line};

    (void)state;
    stories_play(&stories, "client");
    stop();
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test(every_story_of_a_client_plays_as_written),
    };

    return cmocka_run_group_tests(cases, NULL, NULL);
}
