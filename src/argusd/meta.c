/* SPDX-License-Identifier: Apache-2.0 */
/* meta.c - meta.json, so that a job's directory explains itself; see meta.h. */
#include "argusd/meta.h"

#include <stdlib.h>

#include "argusd/view.h"
#include "argusd/work.h"
#include "base/log.h"
#include "base/str.h"
#include "fsroot/fsroot.h"

enum { META_MAX = 4 << 20 };

struct writing {
    uv_loop_t *loop;
    const struct settings *settings;
    struct live *l;
    char *root, *job, *text, *post;
    int k;
    struct err err;
    int result;
};

static void run(void *arg)
{
    struct writing *w = arg;
    w->result = fsroot_meta_write(w->root, w->job, w->text, &w->err);
    if (w->result == 0 && w->post)
        w->result =
            fsroot_debug_write(w->root, w->job, w->k, "ray_job_list_post.txt", w->post, &w->err);
}

static void done(void *arg)
{
    struct writing *w = arg;
    struct live *l = w->l;
    if (w->result < 0)
        log_debug("meta", "%s job=%s", w->err.text, w->job);
    l->meta_busy = false;
    if (l->meta_again) {
        l->meta_again = false;
        meta_write(w->loop, w->settings, l);
    }
    free(w->root);
    free(w->job);
    free(w->text);
    free(w->post);
    free(w);
    jobs_idle(l);
}

/* What is known of the attempts in Ray at the end, for debug/. */
static char *post_text(const struct job *j)
{
    struct buf out = BUF_INIT(64 << 10);
    char at[CLOCK_TEXT_MAX];
    for (int i = 0; i < j->n_attempts; i++) {
        const struct attempt *a = &j->attempts[i];
        (void)buf_addf(&out, "%s %s", a->ray_id, attempt_phase_to_string(a->phase));
        (void)buf_addf(&out, " ended %s: %s\n", clock_to_string(a->ended_at, at),
                       str_or(a->end_text, "")); /* overflow: the rest is missing */
    }
    return buf_take(&out);
}

void meta_write(uv_loop_t *loop, const struct settings *settings, struct live *l)
{
    const struct attempt *a = job_attempt(l->job);
    if (!a || (a->phase == ATTEMPT_PLANNED && a->k == 1))
        return; /* its directory is not there yet; it is written once Ray has it */
    if (l->meta_busy) {
        l->meta_again = true;
        return;
    }
    struct buf out = BUF_INIT(META_MAX);
    struct jout j = jout_begin(&out);
    view_job(&j, settings, l->job, &l->extra, l, NULL);
    (void)buf_addc(&out, '\n');
    struct writing *w = xcalloc(1, sizeof(*w));
    *w = (struct writing){.loop = loop,
                          .settings = settings,
                          .l = l,
                          .k = a->k,
                          .root = xstrdup(settings->shared_root),
                          .job = xstrdup(l->job->id),
                          .text = buf_take(&out)};
    if (job_state_is_terminal(l->job->state))
        w->post = post_text(l->job);
    l->meta_busy = true;
    jobs_busy(l);
    work_start(loop, run, done, w);
}
