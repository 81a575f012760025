/* SPDX-License-Identifier: Apache-2.0 */
/* simulation_read.c - what the options of a simulation mean, as texts of a command line or of a
 * query. */
#include <string.h>

#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "core/past/simulation.h"

enum { SHOWN_MAX = 40, OPTION_MAX = 32 };

/* why: a code with what the option takes. */
static int bad_option(const struct simulation_texts *t,
                      const char *option,
                      const char *text,
                      size_t n,
                      const char *why,
                      struct err *err)
{
    char shown[SHOWN_MAX + 1], name[OPTION_MAX];
    text_printf(shown, "%.*s", n < SHOWN_MAX ? (int)n : SHOWN_MAX, text);
    text_printf(name, "%s%s", t->dashes ? "--" : "", option);
    return message_refuse(err, ERR_BAD_REQUEST, "simulation_option",
                          MESSAGE_ARGS(MESSAGE_STR("text", shown), MESSAGE_STR("option", name),
                                       MESSAGE_OF("takes", message_code(why), "{}")));
}

static int read_nodes(const struct simulation_texts *t,
                      struct simulation_opts *ret,
                      struct err *err)
{
    char n[16] = "";
    int64_t nodes, gpus;
    const char *x = strchr(t->nodes, 'x');
    if (x && x - t->nodes < (ptrdiff_t)sizeof(n))
        memcpy(n, t->nodes, (size_t)(x - t->nodes));
    if (!x || str_to_int(n, 1, SIMULATION_MAX_NODES, &nodes, NULL) < 0 ||
        str_to_int(x + 1, 1, SIMULATION_MAX_GPUS, &gpus, NULL) < 0)
        return bad_option(t, "nodes", t->nodes, strlen(t->nodes), "simulation_takes_nodes", err);
    ret->nodes = (int)nodes;
    ret->gpus_per_node = (int)gpus;
    return 0;
}

static int read_guess(const struct simulation_texts *t,
                      struct simulation_opts *ret,
                      struct err *err)
{
    const char *text = str_or(t->guess, "1-5");
    char low[16] = "";
    size_t n = strcspn(text, "-");
    if (n < sizeof(low))
        memcpy(low, text, n);
    if (str_to_real(low, &ret->guess_low, NULL) < 0 ||
        str_to_real(text + n + (text[n] == '-'), &ret->guess_high, NULL) < 0 ||
        ret->guess_low < 1 || ret->guess_high < ret->guess_low || ret->guess_high > 1000)
        return bad_option(t, "guess", text, strlen(text), "simulation_takes_guess", err);
    return 0;
}

static int read_policies(const struct simulation_texts *t,
                         struct simulation_opts *ret,
                         struct err *err)
{
    const char *text = str_or(t->policy, "fifo,easy,fair");
    if (!*text)
        return bad_option(t, "policy", text, 0, "simulation_takes_policy", err);
    while (*text) {
        char word[16] = "";
        size_t n = strcspn(text, ",");
        if (n < sizeof(word))
            memcpy(word, text, n);
        enum sched_policy p = sched_policy_from_string(word);
        if (p == SCHED_POLICY_END)
            return bad_option(t, "policy", text, n, "simulation_takes_policy", err);
        ret->policies[p] = true;
        text += n + (text[n] == ',');
    }
    return 0;
}

static int read_load(const struct simulation_texts *t, struct simulation_opts *ret, struct err *err)
{
    const char *text = str_or(t->load, "0.85");
    if (str_to_real(text, &ret->load, NULL) < 0 || ret->load < 0.001 || ret->load > 100)
        return bad_option(t, "load", text, strlen(text), "simulation_takes_load", err);
    return 0;
}

/* EVERY,SAVE,RESTART */
static int read_checkpoints(const struct simulation_texts *t,
                            struct simulation_opts *ret,
                            struct err *err)
{
    const char *text = str_or(t->checkpoints, "30m,1m,3m"), *list = text, *it;
    usec_t *const to[] = {&ret->costs.every, &ret->costs.save, &ret->costs.restart};
    size_t n, got = 0;
    while ((it = str_item(&list, &n))) {
        char word[16] = "";
        if (n < sizeof(word))
            memcpy(word, it, n);
        if (got == array_len(to) || span_from_string(word, to[got], NULL) < 0)
            break;
        got++;
    }
    if (it || got != array_len(to))
        return bad_option(t, "checkpoints", text, strlen(text), "simulation_takes_checkpoints",
                          err);
    return 0;
}

static int read_restartable(const struct simulation_texts *t,
                            struct simulation_opts *ret,
                            struct err *err)
{
    const char *text = str_or(t->restartable, "1");
    double *to = &ret->costs.restartable;
    if (str_to_real(text, to, NULL) < 0 || *to < 0 || *to > 1)
        return bad_option(t, "restartable", text, strlen(text), "simulation_takes_restartable",
                          err);
    return 0;
}

int simulation_read(const struct simulation_texts *t, struct simulation_opts *ret, struct err *err)
{
    struct simulation_opts o = {.name = t->trace,
                                .gpus_per_node = SIMULATION_GPUS,
                                .seed = (uint64_t)t->seed,
                                .pool = t->pool,
                                .learner = !t->no_learner};
    if (t->nodes && t->load)
        return message_refuse(err, ERR_BAD_REQUEST, "simulation_nodes_and_load",
                              MESSAGE_ARGS(MESSAGE_STR("dashes", t->dashes ? "--" : "")));
    int r = read_load(t, &o, err);
    if (r == 0 && t->nodes)
        r = read_nodes(t, &o, err);
    if (r == 0)
        r = read_guess(t, &o, err);
    if (r == 0)
        r = read_policies(t, &o, err);
    if (r == 0)
        r = read_checkpoints(t, &o, err);
    if (r == 0)
        r = read_restartable(t, &o, err);
    if (r == 0)
        *ret = o;
    return r;
}
