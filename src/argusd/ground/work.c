/* SPDX-License-Identifier: Apache-2.0 */
/* work.c - uv_queue_work with one allocation and two plain functions, in the turn of its user; see
 * work.h. */
#include "argusd/ground/work.h"

#include <assert.h>
#include <stdlib.h>

#include "argusd/ground/turns.h"
#include "base/mem.h"

struct work {
    uv_work_t req;
    work_f run, done;
    void *arg;
    uv_loop_t *loop;
    char *user; /* NULL: argusd's own, which has no turn */
    struct turn turn;
};

static void work_begin(struct work *w);

static void work_pump(struct turns *shares)
{
    for (struct turn *t; (t = turns_next(shares, WORK_OF_USERS_MAX));)
        work_begin(container_of(t, struct work, turn));
}

static void on_work(uv_work_t *req)
{
    struct work *w = container_of(req, struct work, req);
    w->run(w->arg);
}

static void work_on_done(uv_work_t *req, int status)
{
    struct work *w = container_of(req, struct work, req);
    work_f done = w->done;
    void *arg = w->arg;
    (void)status; /* nobody cancels */
    if (w->user) {
        turns_leave(w->loop->data, &w->turn);
        work_pump(w->loop->data);
    }
    free(w->user);
    free(w);
    done(arg);
}

static void work_begin(struct work *w)
{
    int r = uv_queue_work(w->loop, &w->req, on_work, work_on_done);
    assert(r == 0); /* it only refuses a NULL callback */
    (void)r;
}

static struct work *work_new(uv_loop_t *loop, work_f run, work_f done, void *arg)
{
    struct work *w = xcalloc(1, sizeof(*w));
    w->loop = loop;
    w->run = run;
    w->done = done;
    w->arg = arg;
    return w;
}

void work_start(uv_loop_t *loop, work_f run, work_f done, void *arg)
{
    work_begin(work_new(loop, run, done, arg));
}

void work_start_for(uv_loop_t *loop, const char *user, work_f run, work_f done, void *arg)
{
    struct turns *shares = loop->data;
    struct work *w = work_new(loop, run, done, arg);
    if (!shares) {
        work_begin(w);
        return;
    }
    w->user = xstrdup(user ? user : "");
    w->turn.user = w->user;
    turns_add(shares, &w->turn);
    work_pump(shares);
}

void work_shares_new(uv_loop_t *loop)
{
    struct turns *shares = xcalloc(1, sizeof(*shares));
    shares->most_of_one = WORK_OF_USER_MAX;
    loop->data = shares;
}

void work_shares_free(uv_loop_t *loop)
{
    free(loop->data);
    loop->data = NULL;
}
