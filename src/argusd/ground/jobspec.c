/* SPDX-License-Identifier: Apache-2.0 */
/* jobspec.c - see jobspec.h. A text that does not read is tried once, too. */
#include "argusd/ground/jobspec.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"

char *jobspec_user_root(const struct settings *settings, const char *user)
{
    return xasprintf("%s/users/%s", settings->shared_root, user);
}

int jobspec_read(const struct settings *settings,
                 const char *text,
                 size_t len,
                 const char *user,
                 bool want_places,
                 struct spec *ret,
                 struct problems *ps)
{
    struct doc *d = NULL;
    if (doc_parse(text, len, want_places, &d, ps) < 0)
        return ERR_BAD_SPEC;
    struct spec_limits lim = {.gpus_per_job = (double)settings->gpus_per_job};
    _cleanup_(freep) char *uroot = jobspec_user_root(settings, user);
    struct spec_roots roots = {.shared_root = settings->shared_root, .user_root = uroot};
    int r = spec_read(doc_root(d), &lim, ret, ps);
    if (r == 0)
        r = spec_expand(ret, &roots, ps);
    doc_free(d);
    return r;
}

const struct spec *jobspec_of(const struct settings *settings, const struct job *job)
{
    struct job_read *kept = job->read;
    if (kept->tried)
        return kept->spec;
    struct problems ps = {0};
    kept->tried = true;
    kept->spec = xcalloc(1, sizeof(*kept->spec));
    if (jobspec_read(settings, job->spec, strlen(job->spec), job->user, false, kept->spec, &ps) <
        0) {
        spec_release(kept->spec);
        freep(&kept->spec);
    }
    problems_release(&ps);
    return kept->spec;
}
