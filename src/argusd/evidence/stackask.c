/* SPDX-License-Identifier: Apache-2.0 */
/* stackask.c - see stackask.h. While `busy` a worker has the ask to itself. */
#include "argusd/evidence/stackask.h"

#include <stdlib.h>
#include <string.h>

#include "argusd/ground/work.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/log.h"
#include "base/str.h"
#include "fsroot/attempt/stacks.h"

enum { TICK_MS = 1000, BYTES_MAX = 64 << 20 };

enum step { STEP_ASK, STEP_WAIT, STEP_PAUSE, STEP_END };

struct stackask {
    uv_timer_t timer;
    uv_loop_t *loop;
    char *root, *job, *text;
    int k;
    stackask_f done; /* NULL: cancelled */
    void *arg;
    bool busy;

    enum step step;
    int round;    /* 0, 1 */
    usec_t since; /* mono: of this step */
    int n;        /* of the newest ask */
    struct stacks *samples[2];
    struct pairs seen; /* the scouts, and when their files were written, at the first ask */
    struct strv dead;  /* of these, who gave no sign of life since */

    /* What belongs to the work under way. */
    bool must_end, is_late;
    bool complete;
    size_t expected; /* who has answered or may yet */
    int result;
    struct err err;
};

static void stackask_on_closed(uv_handle_t *h)
{
    struct stackask *s = container_of(h, struct stackask, timer);
    stacks_free(s->samples[0]);
    stacks_free(s->samples[1]);
    pairs_release(&s->seen);
    strv_release(&s->dead);
    free(s->root);
    free(s->job);
    free(s->text);
    free(s);
}

static void stackask_finish(struct stackask *s)
{
    struct stacks_verdict v;
    stackask_f done = s->done;
    s->done = NULL;
    s->step = STEP_END;
    uv_close((uv_handle_t *)&s->timer, stackask_on_closed);
    if (!done)
        return;
    if (s->result < 0) {
        log_warn("hang", "%s job=%s", s->err.text, s->job);
        done(NULL, 0, s->arg);
        return;
    }
    struct stacks *none = stacks_new();
    stacks_judge(s->samples[0] ? s->samples[0] : none, s->samples[1] ? s->samples[1] : none, &v);
    done(&v, s->n, s->arg);
    stacks_free(none);
}

/* ---- in the worker ---- */

static void read_answer(struct stackask *s, const char *node, size_t *left)
{
    size_t room = *left < FSROOT_STACKS_BYTES ? *left : FSROOT_STACKS_BYTES;
    _cleanup_(buf_release) struct buf text = BUF_INIT(room);
    _cleanup_(json_unrefp) json_t *o = NULL;
    if (fsroot_stacks_read(s->root, s->job, s->k, s->n, node, &text, NULL) < 0 ||
        json_parse(buf_str(&text), text.len, FSROOT_STACKS_BYTES, &o, NULL) < 0)
        return; /* as if it had not answered */
    *left -= text.len;
    (void)stacks_add(s->samples[s->round], node, o); /* how many is seen when they are judged */
}

/* Its file is still the one of the first ask. */
static bool is_dead(const struct stackask *s, const char *node, const char *written)
{
    return (s->is_late || strv_has(&s->dead, node)) && str_eq(pairs_find(&s->seen, node), written);
}

/* How many may still answer. */
static size_t count_waited(struct stackask *s,
                           const struct strv *answers,
                           const struct pairs *scouts)
{
    size_t waited = 0;
    for (size_t i = 0; i < scouts->n; i++) {
        const struct pair *it = &scouts->v[i];
        if (strv_has(answers, it->key))
            continue;
        if (!is_dead(s, it->key, it->value))
            waited++;
        else if (!strv_has(&s->dead, it->key))
            strv_add(&s->dead, it->key);
    }
    return waited;
}

static void stackask_gather(struct stackask *s)
{
    _cleanup_(strv_release) struct strv nodes = {0};
    _cleanup_(pairs_release) struct pairs scouts = {0};
    size_t left = BYTES_MAX;
    s->result = fsroot_stacks_answers(s->root, s->job, s->k, s->n, &nodes, &s->err);
    if (s->result == 0)
        s->result = fsroot_scouts_list(s->root, s->job, s->k, &scouts, &s->err);
    size_t waited = count_waited(s, &nodes, &scouts);
    s->expected = nodes.n + waited;
    s->complete = s->result == 0 && (!waited || s->must_end);
    if (!s->complete)
        return;
    s->samples[s->round] = stacks_new();
    for (size_t i = 0; i < nodes.n && left; i++)
        read_answer(s, nodes.v[i], &left);
}

static void stackask_ask(struct stackask *s)
{
    if (!s->round)
        s->result = fsroot_scouts_list(s->root, s->job, s->k, &s->seen, &s->err);
    if (s->result == 0)
        s->result = fsroot_stacks_ask(s->root, s->job, s->k, s->text, &s->n, &s->err);
}

static void stackask_run(void *arg)
{
    struct stackask *s = arg;
    if (s->step == STEP_ASK)
        stackask_ask(s);
    else
        stackask_gather(s);
}

/* ---- on the loop ---- */

static void enter(struct stackask *s, enum step step)
{
    s->step = step;
    s->since = clock_mono();
}

static void stackask_done(void *arg)
{
    struct stackask *s = arg;
    s->busy = false;
    bool is_last = s->step == STEP_WAIT && s->complete && (s->round || !s->expected);
    if (!s->done || s->result < 0 || is_last) {
        stackask_finish(s);
    } else if (s->step == STEP_ASK) {
        enter(s, STEP_WAIT);
    } else if (s->complete) {
        s->round = 1;
        enter(s, STEP_PAUSE);
    }
}

static void stackask_on_tick(uv_timer_t *t)
{
    struct stackask *s = container_of(t, struct stackask, timer);
    usec_t now = clock_mono();
    if (s->busy)
        return;
    if (!s->done) {
        stackask_finish(s);
        return;
    }
    if (s->step == STEP_PAUSE && now - s->since < STACKASK_PAUSE)
        return;
    if (s->step == STEP_PAUSE)
        enter(s, STEP_ASK);
    s->is_late = s->step == STEP_WAIT && now - s->since >= STACKASK_DEAD;
    s->must_end = s->step == STEP_WAIT && now - s->since >= STACKASK_PATIENCE;
    s->busy = true;
    work_start(s->loop, stackask_run, stackask_done, s);
}

struct stackask *stackask_start(uv_loop_t *loop,
                                const char *root,
                                const char *job,
                                int k,
                                const char *why,
                                stackask_f done_f,
                                void *arg)
{
    struct stackask *s = xcalloc(1, sizeof(*s));
    struct buf text = BUF_INIT(4096);
    struct jout j = jout_begin(&text);
    jout_open(&j, NULL, '{');
    jout_time(&j, "at", clock_wall());
    jout_str(&j, "why", why);
    jout_close(&j, '}');
    s->loop = loop;
    s->root = xstrdup(root);
    s->job = xstrdup(job);
    s->text = text.failed ? xstrdup("{}") : xstrdup(buf_str(&text));
    s->k = k;
    s->done = done_f;
    s->arg = arg;
    buf_release(&text);
    (void)uv_timer_init(loop, &s->timer);                          /* never fails */
    (void)uv_timer_start(&s->timer, stackask_on_tick, 0, TICK_MS); /* cannot fail */
    return s;
}

void stackask_cancel(struct stackask *s)
{
    if (!s)
        return;
    s->done = NULL;
    if (!s->busy && s->step != STEP_END)
        stackask_finish(s);
}
