/* SPDX-License-Identifier: Apache-2.0 */
/* rootwatch.c - see rootwatch.h. The check itself runs on a worker thread, since it may hang for
 * as long as its file server likes; one at a time. */
#include "argusd/ground/rootwatch.h"

#include <stdlib.h>
#include <string.h>

#include "argusd/ground/rootnames.h"
#include "argusd/ground/tools.h"
#include "argusd/ground/work.h"
#include "base/log.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "core/job/job.h"
#include "fsroot/attempt/install.h"
#include "fsroot/tree/root.h"
#include "fsroot/tree/rootfile.h"

enum { ROOT_POLL_MS = 15000, ROOT_RETRY_MS = 2000 };
static const usec_t ROOT_HANG = 10 * USEC_SEC;

/* All that the worker thread touches. */
struct root_check {
    struct rootwatch *w;
    char *root, *shepherd, *hook, *mark;
    struct fsroot_status status;
    struct err err;
    int placed;
    struct strv names; /* other paths to it */
    bool was_ok;       /* once, in this life: then it is not prepared anew */
};

struct rootwatch {
    uv_loop_t *loop;
    const struct settings *settings;
    struct events *events;
    const char *mark;
    void (*changed)(void *arg);
    void *arg;
    uv_timer_t timer;
    int handles; /* the timer and checks that still point here */
    bool closing, ok, was_ok, known, hangs;
    usec_t asked_at; /* monotonic; 0 = no check is under way */
    struct err trouble;
    char why[JOB_REASON_TEXT_MAX]; /* arguments of shared_root_unavailable */
    uint64_t free_bytes;
    usec_t write_took; /* of the last check that worked */
    struct strv names; /* other paths to it, as the last look that worked found them */
};

const struct strv *rootwatch_names(const struct rootwatch *w)
{
    return &w->names;
}

bool rootwatch_is_ok(const struct rootwatch *w)
{
    return w->ok;
}

bool rootwatch_is_known(const struct rootwatch *w)
{
    return w->known;
}

bool rootwatch_hangs(const struct rootwatch *w)
{
    return w->hangs;
}

void rootwatch_why(const struct rootwatch *w, const char **ret_code, const char **ret_text)
{
    bool is_well = w->known && !w->trouble.code;
    *ret_code = is_well ? "" : w->known ? "shared_root_unavailable" : "shared_root_not_seen";
    *ret_text = is_well ? "" : w->known ? w->why : "{}";
}

const struct err *rootwatch_trouble(const struct rootwatch *w)
{
    return &w->trouble;
}

uint64_t rootwatch_free_bytes(const struct rootwatch *w)
{
    return w->free_bytes;
}

usec_t rootwatch_write_took(const struct rootwatch *w)
{
    return w->write_took;
}

static void rootwatch_let_go(struct rootwatch *w)
{
    if (--w->handles == 0 && w->closing) {
        strv_release(&w->names);
        free(w);
    }
}

/* Nodes look for it: a path that is there and has it is this root and no other. */
static int place_mark(struct root_check *k)
{
    static const char text[] = "Argus: the shared root of one argusd; nodes look for this file\n";
    bool is_there;
    int r = rootfile_look_for(k->root, k->mark, &is_there, &k->err);
    if (r < 0 || is_there)
        return r;
    return rootfile_write(k->root, k->mark, 0, text, sizeof(text) - 1, 0644, 0, &k->err);
}

static void run_check(void *arg)
{
    struct root_check *k = arg;
    int r = fsroot_check(k->root, clock_mono, &k->status, &k->err);
    if (r == 0 && k->was_ok)
        r = fsroot_check_mounted(k->root, &k->err);
    else if (r == 0 && !k->status.prepared)
        r = fsroot_prepare(k->root, &k->err);
    if (r == 0)
        k->placed = r = fsroot_install(k->root, k->shepherd, k->hook, &k->err);
    if (r >= 0)
        r = tools_place(k->root, &k->err);
    if (r > 0)
        k->placed += r;
    if (r >= 0)
        r = place_mark(k) < 0 ? k->err.code : r;
    if (r >= 0)
        k->err = (struct err){0};
    if (r >= 0)
        rootnames_find(k->root, &k->names);
}

static void set_root(struct rootwatch *w, const struct err *trouble)
{
    bool ok = trouble->code == 0;
    bool news = !w->known || ok != w->ok;
    w->ok = ok;
    w->known = true;
    w->trouble = *trouble;
    message_write(w->why, sizeof(w->why), MESSAGE_ARGS(MESSAGE_ERR("why", &w->trouble)));
    if (!news)
        return;
    if (!ok)
        log_warn("root", "%s", w->trouble.text);
    static const struct access_thing thing = {.kind = ACCESS_KIND_CLUSTER};
    struct events_note note = {.thing = &thing,
                               .kind = ok ? "root_ok" : "root_bad",
                               .actor = "argusd",
                               .code = ok ? "shared_root_ok" : "shared_root_unavailable",
                               .text = ok ? "{}" : w->why};
    events_add(w->events, &note, clock_wall());
    w->changed(w->arg);
}

static void take_root(struct rootwatch *w, struct root_check *k)
{
    w->hangs = false;
    w->asked_at = 0;
    w->free_bytes = k->status.free_bytes;
    w->was_ok |= k->err.code == 0;
    if (k->err.code == 0) {
        w->write_took = k->status.write_took;
        strv_release(&w->names);
        w->names = k->names;
        k->names = (struct strv){0};
    }
    if (k->placed > 0)
        log_info("root", "placed %d program files below '%s'", k->placed, k->root);
    set_root(w, &k->err);
}

void rootwatch_turn(struct rootwatch *w)
{
    struct err trouble = {0};
    if (!w->asked_at || w->hangs || clock_mono() - w->asked_at < ROOT_HANG)
        return;
    w->hangs = true;
    (void)message_refuse(&trouble, ERR_UNAVAILABLE, "shared_root_hangs",
                         MESSAGE_NO_ARGS); /* only fills it */
    set_root(w, &trouble);
}

static void start_check(uv_timer_t *t);

static void done_check(void *arg)
{
    struct root_check *k = arg;
    struct rootwatch *w = k->w;
    if (!w->closing) {
        take_root(w, k);
        (void)uv_timer_start(&w->timer, start_check, w->ok ? ROOT_POLL_MS : ROOT_RETRY_MS,
                             0); /* cannot fail */
    }
    free(k->root);
    free(k->shepherd);
    free(k->hook);
    free(k->mark);
    strv_release(&k->names);
    free(k);
    rootwatch_let_go(w);
}

static void start_check(uv_timer_t *t)
{
    struct rootwatch *w = container_of(t, struct rootwatch, timer);
    struct root_check *k = xcalloc(1, sizeof(*k));
    k->w = w;
    k->was_ok = w->was_ok;
    w->asked_at = clock_mono();
    k->root = xstrdup(w->settings->shared_root);
    k->shepherd = xstrdup(w->settings->shepherd);
    k->hook = xstrdup(w->settings->hook);
    k->mark = xstrdup(w->mark);
    w->handles++;
    work_start(w->loop, run_check, done_check, k);
}

struct rootwatch *rootwatch_new(uv_loop_t *loop,
                                const struct settings *settings,
                                struct events *events,
                                const char *mark,
                                void (*changed)(void *arg),
                                void *arg)
{
    struct rootwatch *w = xcalloc(1, sizeof(*w));
    *w = (struct rootwatch){.loop = loop,
                            .settings = settings,
                            .events = events,
                            .mark = mark,
                            .changed = changed,
                            .arg = arg,
                            .handles = 1};
    (void)uv_timer_init(loop, &w->timer); /* never fails */
    return w;
}

void rootwatch_start(struct rootwatch *w)
{
    start_check(&w->timer);
}

static void rootwatch_on_timer_closed(uv_handle_t *h)
{
    rootwatch_let_go(container_of(h, struct rootwatch, timer));
}

void rootwatch_free(struct rootwatch *w)
{
    if (!w)
        return;
    w->closing = true;
    uv_close((uv_handle_t *)&w->timer, rootwatch_on_timer_closed);
}
