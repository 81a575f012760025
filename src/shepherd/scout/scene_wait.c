/* SPDX-License-Identifier: Apache-2.0 */
/* scene_wait.c - the shepherd's side of scene.h: asks, and waits for whoever lives.
 *
 * A scout writes its file in scouts/ again every few seconds. One whose file stays as it is died,
 * with its node perhaps, and is not waited for. Only changes of that time are looked at, since
 * clocks of machines differ. */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "base/text.h"
#include "fsroot/attempt/launch.h"
#include "shepherd/scout/scene.h"

#define DEAD_AFTER (20 * USEC_SEC)
enum { SCOUTS_MAX = 4096, AGAIN_MS = 50 };
static const char END[] = ".json";

struct scene_wait {
    char *attempt, *why;
    usec_t asked_at, until; /* mono */
    struct pairs seen;      /* node of each scout, and when its file was written */
    atomic_bool is_over;
    atomic_int owners; /* the thread and the shepherd: the last one frees */
};

static void scene_wait_release(struct scene_wait *w)
{
    pairs_release(&w->seen);
    free(w->attempt);
    free(w->why);
    free(w);
}

static void scene_wait_let_go(struct scene_wait *w)
{
    if (atomic_fetch_sub(&w->owners, 1) == 1)
        scene_wait_release(w);
}

/* The node whose scout wrote the file, or NULL when it is not a scout's file. The caller frees
 * it. */
static char *node_of(const char *name)
{
    size_t n = strlen(name), end = sizeof(END) - 1;
    return *name != '.' && n > end && str_ends(name, END) ? xstrndup(name, n - end) : NULL;
}

enum { CHANGED_MAX = 48 };

/* When a scout's file was written, as a text; "" when it is gone. */
static void changed_of(const char *attempt, const char *node, char text[static CHANGED_MAX])
{
    struct stat st;
    _cleanup_(freep) char *path = xasprintf("%s/" ATTEMPT_SCOUTS "/%s%s", attempt, node, END);
    text[0] = 0;
    if (stat(path, &st) == 0)
        text_printf_to(text, CHANGED_MAX, "%lld.%ld", (long long)st.st_mtim.tv_sec,
                       st.st_mtim.tv_nsec);
}

static bool see_scout(int dir, const char *name, void *arg)
{
    struct scene_wait *w = arg;
    char changed[CHANGED_MAX];
    (void)dir;
    _cleanup_(freep) char *node = node_of(name);
    if (node) {
        changed_of(w->attempt, node, changed);
        pairs_set(&w->seen, node, changed);
    }
    return w->seen.n < SCOUTS_MAX;
}

static void find_scouts(struct scene_wait *w)
{
    _cleanup_(freep) char *path = xasprintf("%s/" ATTEMPT_SCOUTS, w->attempt);
    file_each_name(path, see_scout, w);
}

static bool scene_wait_ask(struct scene_wait *w)
{
    find_scouts(w);
    if (!w->seen.n)
        return false;
    _cleanup_(buf_release) struct buf text = BUF_INIT(4096);
    _cleanup_(freep) char *dir = xasprintf("%s/" ATTEMPT_SCENE, w->attempt);
    _cleanup_(freep) char *path = xasprintf("%s/" ATTEMPT_SCENE_ASK, w->attempt);
    struct jout j = jout_begin(&text);
    jout_open(&j, NULL, '{');
    jout_time(&j, "at", clock_wall());
    jout_str(&j, "why", w->why);
    jout_close(&j, '}');
    return file_mkdirs(dir, 0755, NULL) == 0 &&
           file_write(path, buf_str(&text), text.len, 0644, 0, NULL) == 0;
}

static bool is_complete(const struct scene_wait *w, usec_t mono)
{
    char changed[CHANGED_MAX];
    if (mono >= w->until)
        return true;
    for (size_t i = 0; i < w->seen.n; i++) {
        const char *node = w->seen.v[i].key;
        if (scene_is_gathered(w->attempt, node))
            continue;
        changed_of(w->attempt, node, changed);
        if (mono < w->asked_at + DEAD_AFTER || !str_eq(changed, w->seen.v[i].value))
            return false;
    }
    return true;
}

static void *wait_for_scouts(void *arg)
{
    struct scene_wait *w = arg;
    if (scene_wait_ask(w))
        while (!is_complete(w, clock_mono()))
            (void)poll(NULL, 0, AGAIN_MS);
    atomic_store(&w->is_over, true);
    scene_wait_let_go(w);
    return NULL;
}

struct scene_wait *scene_ask(const char *attempt, const char *why)
{
    pthread_t thread;
    usec_t now = clock_mono();
    struct scene_wait *w = xcalloc(1, sizeof(*w));
    w->attempt = xstrdup(attempt);
    w->why = xstrdup(why);
    w->asked_at = now;
    w->until = now + SCENE_PATIENCE;
    atomic_init(&w->owners, 2);
    if (pthread_create(&thread, NULL, wait_for_scouts, w) != 0) {
        scene_wait_release(w);
        return NULL;
    }
    (void)pthread_detach(thread); /* cannot fail for a thread of ours */
    return w;
}

bool scene_is_over(const struct scene_wait *w)
{
    return atomic_load(&w->is_over) || clock_mono() >= w->until;
}

void scene_wait_free(struct scene_wait *w)
{
    if (w)
        scene_wait_let_go(w);
}
