/* SPDX-License-Identifier: Apache-2.0 */
/* stackask.c - see stackask.h. While `busy` a worker has the ask to itself. */
#include "argusd/stackask.h"

#include <stdlib.h>
#include <string.h>

#include "argusd/work.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/log.h"
#include "base/str.h"
#include "fsroot/fsroot.h"

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

    /* Of the work under way. */
    bool must_end;
    bool complete;
    size_t expected;
    int result;
    struct err err;
};

static void on_closed(uv_handle_t *h)
{
    struct stackask *s = container_of(h, struct stackask, timer);
    stacks_free(s->samples[0]);
    stacks_free(s->samples[1]);
    free(s->root);
    free(s->job);
    free(s->text);
    free(s);
}

static void finish(struct stackask *s)
{
    struct stacks_verdict v;
    stackask_f done = s->done;
    s->done = NULL;
    s->step = STEP_END;
    uv_close((uv_handle_t *)&s->timer, on_closed);
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

/* name: "stacks/3/w1.json", of the node w1. */
static void read_answer(struct stackask *s, const char *name, size_t *left)
{
    const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;
    size_t room = *left < FSROOT_STACKS_BYTES ? *left : FSROOT_STACKS_BYTES;
    _cleanup_(buf_release) struct buf text = BUF_INIT(room);
    _cleanup_(json_unrefp) json_t *o = NULL;
    if (fsroot_stacks_read(s->root, s->job, s->k, name, &text, NULL) < 0 ||
        json_parse(buf_str(&text), text.len, FSROOT_STACKS_BYTES, &o, NULL) < 0)
        return; /* as if it had not answered */
    *left -= text.len;
    _cleanup_(freep) char *node = xstrndup(base, strlen(base) - strlen(".json"));
    (void)stacks_add(s->samples[s->round], node, o); /* how many is seen when they are judged */
}

static void gather(struct stackask *s)
{
    _cleanup_(strv_release) struct strv names = {0};
    size_t left = BYTES_MAX;
    s->result = fsroot_stacks_answers(s->root, s->job, s->k, s->n, &names, &s->expected, &s->err);
    s->complete = s->result == 0 && (names.n >= s->expected || s->must_end);
    if (!s->complete)
        return;
    s->samples[s->round] = stacks_new();
    for (size_t i = 0; i < names.n && left; i++)
        read_answer(s, names.v[i], &left);
}

static void run(void *arg)
{
    struct stackask *s = arg;
    if (s->step == STEP_ASK)
        s->result = fsroot_stacks_ask(s->root, s->job, s->k, s->text, &s->n, &s->err);
    else
        gather(s);
}

/* ---- on the loop ---- */

static void enter(struct stackask *s, enum step step)
{
    s->step = step;
    s->since = clock_mono();
}

static void done(void *arg)
{
    struct stackask *s = arg;
    s->busy = false;
    bool is_last = s->step == STEP_WAIT && s->complete && (s->round || !s->expected);
    if (!s->done || s->result < 0 || is_last) {
        finish(s);
    } else if (s->step == STEP_ASK) {
        enter(s, STEP_WAIT);
    } else if (s->complete) {
        s->round = 1;
        enter(s, STEP_PAUSE);
    }
}

static void on_tick(uv_timer_t *t)
{
    struct stackask *s = container_of(t, struct stackask, timer);
    usec_t now = clock_mono();
    if (s->busy)
        return;
    if (!s->done) {
        finish(s);
        return;
    }
    if (s->step == STEP_PAUSE && now - s->since < STACKASK_PAUSE)
        return;
    if (s->step == STEP_PAUSE)
        enter(s, STEP_ASK);
    s->must_end = s->step == STEP_WAIT && now - s->since >= STACKASK_PATIENCE;
    s->busy = true;
    work_start(s->loop, run, done, s);
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
    (void)uv_timer_init(loop, &s->timer);                 /* never fails */
    (void)uv_timer_start(&s->timer, on_tick, 0, TICK_MS); /* cannot fail */
    return s;
}

void stackask_cancel(struct stackask *s)
{
    if (!s)
        return;
    s->done = NULL;
    if (!s->busy && s->step != STEP_END)
        finish(s);
}
