/* SPDX-License-Identifier: Apache-2.0
 *
 * Purses that pay each other: actors that call actors in the midst of a message, wherever those
 * live. (examples/trade.c is how it is done where no money may be lost with a node.)
 *
 *     CALL ann "earn 10"          10             from nowhere
 *     CALL ann "pay 3 bob"        bob            ann has 3 less, bob 3 more; both or neither
 *     CALL ann "pay 3 bob cy"     cy             by way of bob: a chain of calls
 *     CALL ann "gift 5 bob"       bob            five sends of 1, then a call: they come in order
 *     CALL ann "balance"          4
 *
 * Who pays defers its message until the answer of its call is there: it does not take the next one
 * before. An outcome that is unknown is told so, and nothing is paid back: the money may be there.
 * Each payment has a number of its payer; who is paid takes only greater ones of the same payer, so
 * a payment that came twice, or out of order, would show.
 */
#include <ringhold.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 512, WORDS_MAX = 12, PAYERS_MAX = 64, TIMEOUT_MS = 10000 };

struct payer {
    char id[64];
    uint64_t last; /* number of what it paid last */
};

struct purse {
    int64_t balance;
    uint64_t paid; /* number of my last payment */
    struct payer payer[PAYERS_MAX];
    size_t payers;
    int64_t amount; /* of the payment on its way; 0 = it is another's, and only passes here */
};

/* "balance paid", then "id last" for each payer. */
static void load(struct purse *p, char *text)
{
    char *rest = NULL;
    const char *word[2] = {strtok_r(text, " ", &rest), strtok_r(NULL, " ", &rest)};

    p->balance = word[1] == NULL ? 0 : strtoll(word[0], NULL, 10);
    p->paid = word[1] == NULL ? 0 : strtoull(word[1], NULL, 10);
    while (p->payers < PAYERS_MAX && word[1] != NULL) {
        struct payer *payer = &p->payer[p->payers];

        word[0] = strtok_r(NULL, " ", &rest);
        word[1] = strtok_r(NULL, " ", &rest);
        if (word[1] != NULL) {
            (void)snprintf(payer->id, sizeof payer->id, "%s", word[0]);
            payer->last = strtoull(word[1], NULL, 10);
            p->payers++;
        }
    }
}

static int on_activate(struct rh_actor *actor, const struct rh_bytes *state, uint64_t fence,
                       void **instance)
{
    struct purse *p = calloc(1, sizeof *p);
    char *text = state == NULL ? NULL : strndup(state->data, state->size);
    const int made = p != NULL && (state == NULL || text != NULL) ? RH_OK : RH_FAILED;

    (void)actor;
    (void)fence;
    if (made == RH_OK && text != NULL) {
        load(p, text);
    }
    if (made == RH_OK) {
        *instance = p;
    } else {
        free(p);
    }
    free(text);
    return made;
}

static int on_handoff(struct rh_actor *actor, void *instance, struct rh_out *out)
{
    const struct purse *p = instance;
    char line[128];

    (void)actor;
    (void)snprintf(line, sizeof line, "%" PRId64 " %" PRIu64, p->balance, p->paid);
    rh_out_put(out, line, strlen(line));
    for (size_t i = 0; i < p->payers; i++) {
        (void)snprintf(line, sizeof line, " %s %" PRIu64, p->payer[i].id, p->payer[i].last);
        rh_out_put(out, line, strlen(line));
    }
    return RH_OK;
}

static void on_deactivate(struct rh_actor *actor, void *instance, enum rh_why why)
{
    (void)actor;
    (void)why;
    free(instance);
}

static void say(struct rh_actor *actor, const char *error)
{
    (void)rh_reply(actor, rh_error(error));
}

/* What became of the payment: mine, or one that I passed on. */
static void on_paid(struct rh_actor *actor, void *instance, const struct rh_answer *answer,
                    void *argument)
{
    struct purse *p = instance;
    const int64_t amount = p->amount;
    char text[TEXT_MAX];

    (void)argument;
    p->amount = 0;
    if (answer->status == RH_OK) {
        (void)rh_reply(actor, rh_bytes_value(answer->payload.data, answer->payload.size));
        return;
    }
    if (answer->status == RH_UNKNOWN || answer->status == RH_TIMEOUT) {
        say(actor, "UNKNOWN it may have been paid");
        return;
    }
    p->balance += amount; // it surely was not
    (void)snprintf(text,
                   sizeof text,
                   "ERR not paid (%d): %.*s",
                   answer->status,
                   (int)answer->payload.size,
                   answer->payload.size > 0 ? (const char *)answer->payload.data : "");
    say(actor, text);
}

/* "take AMOUNT NUMBER NEXT …" to the first of the rest. */
static int pass_on(struct rh_actor *actor, const char *head, char **rest, size_t count)
{
    const struct rh_bytes id = {rest[0], strlen(rest[0])};
    char text[TEXT_MAX];
    int size = snprintf(text, sizeof text, "take %s", head);

    for (size_t i = 1; i < count; i++) {
        size += snprintf(text + size, sizeof text - (size_t)size, " %s", rest[i]);
    }
    const struct rh_bytes payload = {text, (size_t)size};
    return rh_call(actor, 0, id, payload, TIMEOUT_MS, 0, on_paid, NULL);
}

static void pay(struct rh_actor *actor, struct purse *p, char **word, size_t count)
{
    const int64_t amount = strtoll(word[1], NULL, 10);
    char head[64];

    if (amount <= 0 || amount > p->balance) {
        say(actor, "ERR too little in the purse");
        return;
    }
    (void)snprintf(head, sizeof head, "%" PRId64 " %" PRIu64, amount, ++p->paid);
    if (pass_on(actor, head, word + 2, count - 2) != RH_OK) {
        say(actor, "ERR no such payment");
        return;
    }
    p->balance -= amount;
    p->amount = amount;
    (void)rh_defer(actor); // the answer comes in on_paid()
}

static void gift(struct rh_actor *actor, struct purse *p, char **word)
{
    const struct rh_bytes id = {word[2], strlen(word[2])};
    const int64_t times = strtoll(word[1], NULL, 10);
    char text[64];

    if (times <= 0 || times > 100 || times > p->balance) {
        say(actor, "ERR too little in the purse");
        return;
    }
    for (int64_t i = 1; i < times; i++) {
        const int size = snprintf(text, sizeof text, "take 1 %" PRIu64, p->paid + 1);
        const struct rh_bytes payload = {text, (size_t)size};

        if (rh_send(actor, 0, id, payload) == RH_OK) {
            p->paid++;
            p->balance--;
        }
    }
    char one[] = "1";
    char *last[] = {word[0], one, word[2]};
    pay(actor, p, last, 3);
}

/* What a payer paid last; NULL = no room for one more. */
static struct payer *payer_of(struct purse *p, struct rh_bytes id)
{
    for (size_t i = 0; i < p->payers; i++) {
        if (strlen(p->payer[i].id) == id.size && memcmp(p->payer[i].id, id.data, id.size) == 0) {
            return &p->payer[i];
        }
    }
    if (p->payers == PAYERS_MAX || id.size >= sizeof p->payer[0].id) {
        return NULL;
    }
    struct payer *new = &p->payer[p->payers++];
    *new = (struct payer){.last = 0};
    memcpy(new->id, id.data, id.size);
    return new;
}

static void take(struct rh_actor *actor, struct purse *p, char **word, size_t count,
                 struct rh_bytes from)
{
    const int64_t amount = strtoll(word[1], NULL, 10);
    const uint64_t number = strtoull(word[2], NULL, 10);
    struct payer *payer = from.size == 0 ? NULL : payer_of(p, from);
    const struct rh_bytes me = rh_id(actor);
    char head[64];

    if (payer == NULL || amount <= 0) {
        say(actor, "ERR only a purse may pay");
        return;
    }
    if (number <= payer->last) {
        say(actor, "ERR paid twice, or out of order");
        return;
    }
    payer->last = number;
    if (count == 3) {
        p->balance += amount;
        (void)rh_reply(actor, rh_bytes_value(me.data, me.size));
        return;
    }
    (void)snprintf(head, sizeof head, "%" PRId64 " %" PRIu64, amount, ++p->paid);
    if (pass_on(actor, head, word + 3, count - 3) != RH_OK) {
        say(actor, "ERR no such payment");
        return;
    }
    (void)rh_defer(actor);
}

static void on_message(struct rh_actor *actor, void *instance, const struct rh_message *message)
{
    struct purse *p = instance;
    char text[TEXT_MAX];
    char *word[WORDS_MAX];
    char *rest = NULL;
    size_t count = 0;

    (void)snprintf(text,
                   sizeof text,
                   "%.*s",
                   (int)message->payload.size,
                   message->payload.size > 0 ? (const char *)message->payload.data : "");
    for (char *at = strtok_r(text, " ", &rest); at != NULL && count < WORDS_MAX;
         at = strtok_r(NULL, " ", &rest)) {
        word[count++] = at;
    }
    if (count == 1 && strcmp(word[0], "balance") == 0) {
        (void)rh_reply(actor, rh_integer(p->balance));
    } else if (count == 2 && strcmp(word[0], "earn") == 0) {
        p->balance += strtoll(word[1], NULL, 10);
        (void)rh_reply(actor, rh_integer(p->balance));
    } else if (count >= 3 && strcmp(word[0], "pay") == 0) {
        pay(actor, p, word, count);
    } else if (count == 3 && strcmp(word[0], "gift") == 0) {
        gift(actor, p, word);
    } else if (count >= 3 && strcmp(word[0], "take") == 0) {
        take(actor, p, word, count, message->from);
    } else {
        say(actor, "ERR earn N, pay N ID [ID...], gift N ID, or balance");
    }
}

const struct rh_actor_ops ringhold_actor = {
    .abi = RH_ABI,
    .size = sizeof(struct rh_actor_ops),
    .name = "purses",
    .activate = on_activate,
    .message = on_message,
    .handoff = on_handoff,
    .deactivate = on_deactivate,
    .idle_ms = UINT32_MAX, /* its state is nowhere else */
};
