/* SPDX-License-Identifier: Apache-2.0 */
/* modelcopy.c - asks the caches of a job's nodes for its model, and tells how each had it; see
 * modelcopy.h. Owns nothing but the question: the sender goes on with the answer, and the copies
 * on the disks are the truth. */
#include "argusd/launch/modelcopy.h"

#include <stdlib.h>

#include "base/message.h"
#include "base/text.h"
#include "core/spec/spec.h"

enum { TEXT_MAX = 2048 };

struct modelcopy {
    struct nodes_cache *asked;
    struct live *l;
    bool quiet;
    modelcopy_f cb;
    void *arg;
};

static void modelcopy_tell(struct live *l, const char *path, const char *how)
{
    char text[TEXT_MAX], some[TEXT_MAX / 2];
    struct message m;
    text_printf(some, "%.*s", (int)sizeof(some) - 1, how);
    message_begin(&m);
    if (path)
        jout_str(&m.j, "path", path);
    jout_str(&m.j, "how", some);
    message_end(&m, text, sizeof(text));
    jobs_note(l, "model_cache", path ? "model_cached" : "model_not_cached", text, clock_wall());
}

static void modelcopy_on_asked(const struct nodes_cache_answer *a, void *arg)
{
    struct modelcopy *m = arg;
    if (!m->quiet && !m->l->over)
        modelcopy_tell(m->l, a->path, a->how);
    m->cb(a->path, m->arg);
    free(m);
}

static void modelcopy_say(struct live *l)
{
    job_set_reason(l->job, "model_copying", NULL, "{}");
    jobs_save(l);
}

struct modelcopy *modelcopy_begin(const struct nodes *ns,
                                  struct live *l,
                                  bool quiet,
                                  modelcopy_f cb,
                                  void *arg)
{
    _cleanup_(freep) char *path = NULL, *hash = NULL, *how = NULL;
    if (!spec_find_model(l->extra.inputs, &path, &hash))
        return NULL;
    struct modelcopy *m = xcalloc(1, sizeof(*m));
    *m = (struct modelcopy){.l = l, .quiet = quiet, .cb = cb, .arg = arg};
    const struct nodes_cache_want want = {
        .job = l->job->id, .gang = &l->job->gang, .path = path, .hash = hash};
    m->asked = nodes_cache_ask(ns, &want, modelcopy_on_asked, m, &how);
    if (m->asked) {
        modelcopy_say(l);
        return m;
    }
    free(m);
    if (how && !quiet)
        modelcopy_tell(l, NULL, how);
    return NULL;
}

void modelcopy_free(struct modelcopy *m)
{
    if (!m)
        return;
    nodes_cache_free(m->asked);
    free(m);
}
