/* SPDX-License-Identifier: Apache-2.0 */
/* needscheck.c - see needscheck.h. What a probe did not see is no reason: a node that was not
 * looked at yet fits. A job goes by the content of its snapshots; what they need goes by their
 * rows, since people edit it. */
#include "argusd/launch/needscheck.h"

#include <stdlib.h>
#include <string.h>

#include "argusd/content/code.h"
#include "argusd/content/snapshots.h"
#include "argusd/ground/jobspec.h"
#include "base/json.h"
#include "base/message.h"
#include "base/str.h"

enum { CODE_MAX = 64 << 10 };

/* "a b"; NULL: nothing. Heap. */
static char *needs_of_one(const struct snapshot *s, bool own_python)
{
    _cleanup_(freep) char *all = strv_join(&s->needs, " ");
    char *text = own_python ? needs_beside_own_python(all) : xstrdup(all);
    if (!*text)
        freep(&text);
    return text;
}

/* The row of a snapshot that a spec names; NULL: it has gone, or is another one by now. */
static const struct snapshot *row_of(const struct needscheck_ask *ask, const json_t *use)
{
    const char *user = json_get_bool(use, "common", false) ? NULL : ask->user;
    const struct snapshot *s = snapshots_find(ask->snapshots, user, json_get_str(use, "name", ""));
    return s && str_eq(s->hash, json_get_str(use, "hash", "")) ? s : NULL;
}

static json_t *uses_of(const struct needscheck_ask *ask)
{
    json_t *v = NULL;
    if (!ask->code || json_parse(ask->code, strlen(ask->code), CODE_MAX, &v, NULL) < 0)
        return NULL;
    return v;
}

char *needscheck_of(const struct needscheck_ask *ask)
{
    _cleanup_(json_unrefp) json_t *v = uses_of(ask);
    _cleanup_(strv_release) struct strv all = {0};
    size_t i;
    const json_t *use;
    json_array_foreach (v, i, use) {
        const struct snapshot *s = row_of(ask, use);
        _cleanup_(freep) char *one = s ? needs_of_one(s, ask->own_python) : NULL;
        if (one && !strv_has(&all, one)) /* code and working_dir may be one snapshot */
            strv_add(&all, one);
    }
    return all.n ? strv_join(&all, " ") : NULL;
}

/* Most specs do not have the key, and are not read for it: 10,000 may wait. */
bool needscheck_own_python(const struct settings *settings, const struct job *job)
{
    if (!strstr(str_or(job->spec, ""), "py_executable"))
        return false;
    const struct spec *spec = jobspec_of(settings, job);
    return spec && spec->py_executable && *spec->py_executable;
}

/* The first node that is known not to fit it. */
static void needscheck_tell(const struct sched *sched,
                            const struct snapshot *s,
                            const char *needs,
                            const char *key,
                            const char *pool,
                            enum problem_level level,
                            struct problems *ps)
{
    struct sched_fit_count n;
    struct sched_gap gap = {.node = ""};
    size_t pos = 0;
    sched_count_fit(sched, pool, needs, &n);
    while (n.unfit && sched_gap_next(sched, pool, needs, &pos, &gap) && !*gap.lacks.has)
        ;
    if (n.unfit)
        problems_add(ps, level, key, 0, 0, "needs_not_fit",
                     MESSAGE_ARGS(MESSAGE_STR("ref", s->ref), MESSAGE_NUM("unfit", n.unfit),
                                  MESSAGE_NUM("all", n.nodes), MESSAGE_STR("node", gap.node),
                                  MESSAGE_STR("need", gap.lacks.need),
                                  MESSAGE_STR("has", gap.lacks.has)));
}

void needscheck(const struct sched *sched,
                const struct needscheck_ask *ask,
                const char *pool,
                struct problems *ps)
{
    _cleanup_(json_unrefp) json_t *v = uses_of(ask);
    _cleanup_(freep) char *all = needscheck_of(ask);
    struct sched_fit_count n = {0};
    size_t i;
    const json_t *use;
    if (!all)
        return;
    sched_count_fit(sched, pool, all, &n);
    enum problem_level level = n.nodes && n.unfit == n.nodes ? PROBLEM_ERROR : PROBLEM_WARNING;
    json_array_foreach (v, i, use) {
        const struct snapshot *s = row_of(ask, use);
        _cleanup_(freep) char *needs = s ? needs_of_one(s, ask->own_python) : NULL;
        if (needs)
            needscheck_tell(sched, s, needs, json_get_str(use, "key", "code"), pool, level, ps);
    }
}
