/* SPDX-License-Identifier: Apache-2.0 */
/* simulate_read.c - what the options of a simulation mean. */
#include <string.h>

#include "argus/simulate/simulate.h"
#include "base/str.h"

static int read_nodes(const char *text, struct simulate_opts *ret, struct err *err)
{
    char n[16] = "";
    int64_t nodes, gpus;
    const char *x = strchr(text, 'x');
    if (x && x - text < (ptrdiff_t)sizeof(n))
        memcpy(n, text, (size_t)(x - text));
    if (!x || str_to_int(n, 1, SIMULATE_MAX_NODES, &nodes, NULL) < 0 ||
        str_to_int(x + 1, 1, SIMULATE_MAX_GPUS, &gpus, NULL) < 0)
        return err_set(err, ERR_USAGE,
                       "'%.40s' is no value for '--nodes': it takes nodes x GPUs, as 64x8 (at most "
                       "%dx%d)",
                       text, SIMULATE_MAX_NODES, SIMULATE_MAX_GPUS);
    ret->nodes = (int)nodes;
    ret->gpus_per_node = (int)gpus;
    return 0;
}

static int read_guess(const char *text, struct simulate_opts *ret, struct err *err)
{
    char low[16] = "";
    size_t n = strcspn(text, "-");
    if (n < sizeof(low))
        memcpy(low, text, n);
    if (str_to_real(low, &ret->guess_low, NULL) < 0 ||
        str_to_real(text + n + (text[n] == '-'), &ret->guess_high, NULL) < 0 ||
        ret->guess_low < 1 || ret->guess_high < ret->guess_low || ret->guess_high > 1000)
        return err_set(
            err, ERR_USAGE,
            "'%.40s' is no value for '--guess': it takes two factors from 1 to 1000, as 1-5", text);
    return 0;
}

static int read_policies(const char *text, struct simulate_opts *ret, struct err *err)
{
    if (!*text)
        return err_set(err, ERR_USAGE, "'--policy' is empty: it takes fifo, easy, fair");
    while (*text) {
        char word[16] = "";
        size_t n = strcspn(text, ",");
        if (n < sizeof(word))
            memcpy(word, text, n);
        enum sched_policy p = sched_policy_from_string(word);
        if (p == SCHED_POLICY_END)
            return err_set(err, ERR_USAGE,
                           "'%.*s' is no value for '--policy': it takes fifo, easy, fair",
                           n < 40 ? (int)n : 40, text);
        ret->policies[p] = true;
        text += n + (text[n] == ',');
    }
    return 0;
}

static int read_load(const char *text, struct simulate_opts *ret, struct err *err)
{
    if (str_to_real(text, &ret->load, NULL) < 0 || ret->load < 0.001 || ret->load > 100)
        return err_set(err, ERR_USAGE,
                       "'%.40s' is no value for '--load': it takes 0.001 to 100, as 0.85", text);
    return 0;
}

int simulate_read(const struct simulate_texts *t, struct simulate_opts *ret, struct err *err)
{
    struct simulate_opts o = {.file = t->trace,
                              .gpus_per_node = SIMULATE_GPUS,
                              .seed = (uint64_t)t->seed,
                              .pool = t->pool,
                              .learner = !t->no_learner};
    if (!t->trace)
        return err_set(err, ERR_USAGE, "'--trace FILE' is needed: the jobs to replay");
    if (t->nodes && t->load)
        return err_set(err, ERR_USAGE, "'--nodes' and '--load' both say how many nodes: give one");
    int r = read_load(str_or(t->load, "0.85"), &o, err);
    if (r == 0 && t->nodes)
        r = read_nodes(t->nodes, &o, err);
    if (r == 0)
        r = read_guess(str_or(t->guess, "1-5"), &o, err);
    if (r == 0)
        r = read_policies(str_or(t->policy, "fifo,easy,fair"), &o, err);
    if (r == 0)
        *ret = o;
    return r;
}
