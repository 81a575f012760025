/* SPDX-License-Identifier: Apache-2.0 */
/* hiding.c - see hiding.h. The values are those of now: one that was changed since the job read it
 * is known no more. */
#include "argusd/kit/hiding.h"

#include "argusd/ground/jobspec.h"
#include "base/str.h"
#include "core/spec/spec_secret.h"

static void hiding_add_stored(const struct api *a, const struct job *job, struct mask *ret)
{
    const struct secret *k;
    struct strv names = {0};
    struct pairs values = {0};
    for (size_t pos = 0; (k = secrets_next(a->secrets, &pos));)
        if (str_eq(k->owner, k->of_project ? job->project : job->user) &&
            !strv_has(&names, k->name))
            strv_add(&names, k->name);
    /* Twice, since the user's own of a name stands before the project's. */
    secrets_reveal(a->secrets, job->user, "", &names, &values);
    for (size_t i = 0; i < values.n; i++)
        mask_add(ret, values.v[i].value);
    pairs_wipe(&values);
    secrets_reveal(a->secrets, "", job->project, &names, &values);
    for (size_t i = 0; i < values.n; i++)
        mask_add(ret, values.v[i].value);
    pairs_wipe(&values);
    strv_release(&names);
}

void hiding_add(const struct api *a, const struct job *job, struct mask *ret)
{
    struct pairs open = {0}, secret = {0};
    struct strv hidden = {0};
    const struct spec *spec = jobspec_of(a->settings, job);
    hiding_add_stored(a, job, ret);
    if (spec) {
        mask_env(ret, &spec->env, NULL, &open, &secret);
        spec_list_secrets(spec, &hidden);
    }
    for (size_t i = 0; i < hidden.n; i++)
        mask_add(ret, hidden.v[i]);
    strv_release(&hidden);
    pairs_release(&open);
    pairs_wipe(&secret);
}
