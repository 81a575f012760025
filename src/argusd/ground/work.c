/* SPDX-License-Identifier: Apache-2.0 */
/* work.c - uv_queue_work with one allocation and two plain functions, and the shares of users; see
 * work.h. The line is as short as users may have requests: it is walked. */
#include "argusd/ground/work.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct work_shares {
    struct work *first; /* of users: as they came, those that run as well */
};

struct work {
    uv_work_t req;
    work_f run, done;
    void *arg;
    uv_loop_t *loop;
    char *user; /* NULL: argusd's own */
    bool runs;
    struct work *next;
};

/* How many run; of this user, or of all (NULL). */
static size_t work_running(const struct work_shares *ws, const char *user)
{
    size_t n = 0;
    for (const struct work *w = ws->first; w; w = w->next)
        n += w->runs && (!user || !strcmp(w->user, user));
    return n;
}

static struct work *work_next(const struct work_shares *ws)
{
    struct work *next = NULL;
    size_t least = WORK_OF_USER_MAX;
    if (work_running(ws, NULL) >= WORK_OF_USERS_MAX)
        return NULL;
    for (struct work *w = ws->first; w && least; w = w->next) {
        size_t his = w->runs ? least : work_running(ws, w->user);
        if (his < least) {
            next = w;
            least = his;
        }
    }
    return next;
}

static void work_begin(struct work *w);

static void work_pump(const struct work_shares *ws)
{
    for (struct work *w; (w = work_next(ws));) {
        w->runs = true;
        work_begin(w);
    }
}

static void work_leave(struct work_shares *ws, const struct work *w)
{
    struct work **at = &ws->first;
    while (*at && *at != w)
        at = &(*at)->next;
    if (*at)
        *at = w->next;
    work_pump(ws);
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
    if (w->user)
        work_leave(w->loop->data, w);
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
    struct work_shares *ws = loop->data;
    struct work *w = work_new(loop, run, done, arg);
    if (!ws) {
        work_begin(w);
        return;
    }
    w->user = xstrdup(user ? user : "");
    struct work **end = &ws->first;
    while (*end)
        end = &(*end)->next;
    *end = w;
    work_pump(ws);
}

void work_shares_new(uv_loop_t *loop)
{
    loop->data = xcalloc(1, sizeof(struct work_shares));
}

void work_shares_free(uv_loop_t *loop)
{
    free(loop->data);
    loop->data = NULL;
}
