/* SPDX-License-Identifier: Apache-2.0 */
/* pipes_hash.c - what the inputs of a step are: its `with` with all values, and the hashes of the
 * data sets, models and snapshots that it names. The same inputs, the same result: an earlier item
 * stands in for one with the same hash. */
#include <stdlib.h>
#include <string.h>

#include "argusd/archive/archives.h"
#include "argusd/content/code.h"
#include "argusd/content/registry_inputs.h"
#include "argusd/pipes/pipes_state.h"
#include "argusd/submit/submitted.h"
#include "base/str.h"

enum { HASHED_MAX = 2 << 20 };

bool pipes_name_inputs(const struct pipe_life *r, const char *with, struct buf *out)
{
    const struct api *a = r->pipes->a;
    const struct http_principal p = pipes_principal(r);
    struct access_who who;
    struct spec spec = {0};
    struct problems ps = {0};
    _cleanup_(freep) char *made = NULL, *inputs = NULL, *code = NULL;
    people_who(a->people, &p, &who);
    struct submitted in = {.settings = a->settings,
                           .presets = a->presets,
                           .who = &who,
                           .text = with,
                           .len = strlen(with)};
    bool ok = submitted_read(&in, &spec, &made, &ps) == 0;
    if (ok)
        code = code_resolve(a->snapshots, r->user, &spec, &ps);
    ok = ok && !ps.errors && registry_resolve(a->registry, &who, &spec, &inputs, &ps) == 0;
    if (ok) /* a failure to append shows in out->failed */
        (void)buf_addf(out, "\n%s\n%s\n%s", str_or(made, ""), str_or(code, ""), str_or(inputs, ""));
    spec_release(&spec);
    problems_release(&ps);
    return ok;
}

bool pipes_hash_inputs(const struct pipe_life *r,
                       size_t item,
                       const char *with,
                       char ret[static HASH_HEX])
{
    const struct pipe_step *s = &r->pipe->steps[r->run.v[item].step];
    struct buf all = BUF_INIT(HASHED_MAX);
    unsigned char hash[HASH_BYTES];
    (void)buf_addf(&all, "%s\n%s", pipe_uses_to_string((enum pipe_uses)s->uses), with);
    bool ok = true;
    if (s->uses == PIPE_USES_JOB)
        ok = pipes_name_inputs(r, with, &all);
    else if (s->uses == PIPE_USES_DEPLOY)
        ok = pipes_name_deploy(r, with, &all);
    ok = ok && !all.failed;
    if (ok) {
        hash_sha256(buf_str(&all), all.len, hash);
        (void)str_hex(hash, sizeof(hash), ret);
    }
    buf_release(&all);
    return ok;
}

static bool pipes_is_there(const struct pipe_life *r, int uses, const struct pipe_item *i)
{
    if (uses == PIPE_USES_DEPLOY)
        return pipes_is_deployed(r, i);
    if (!i->job || archives_check_files(r->pipes->a->archives, i->job, NULL) < 0)
        return false;
    return uses == PIPE_USES_JOB || pipes_entry_is_ready(r, uses, i->job) > 0;
}

const struct pipe_item *pipes_find_earlier(const struct pipe_life *r,
                                           int uses,
                                           const char *hash,
                                           const struct pipe_life **ret_run)
{
    const struct pipe_life *other;
    for (size_t pos = 0; (other = pipes_next_run(r->pipes, &pos));) {
        if (!str_eq(other->user, r->user) || !str_eq(other->project, r->project))
            continue;
        for (size_t i = 0; i < other->run.n; i++)
            if (other->run.v[i].state == PIPE_SUCCEEDED && str_eq(other->run.v[i].hash, hash) &&
                pipes_is_there(r, uses, &other->run.v[i])) {
                *ret_run = other;
                return &other->run.v[i];
            }
    }
    return NULL;
}
