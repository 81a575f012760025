/* SPDX-License-Identifier: Apache-2.0 */
/* secretcheck.c - see secretcheck.h. Values are opened here for the comparison alone, and wiped; a
 * refusal names the secret, never its value. */
#include "argusd/launch/secretcheck.h"

#include <string.h>

#include "argusd/ground/jobspec.h"
#include "base/json.h"
#include "base/message.h"
#include "base/str.h"
#include "fsroot/attempt/mask.h"

enum { RESOLVED_MAX = 8 << 20, TOLD_MIN = 8 }; /* shorter ones stand in any text */

bool secretcheck_holds(const struct spec *spec)
{
    for (size_t i = 0; i < spec->env.n; i++)
        if (*spec->env.v[i].value && str_is_secret_name(spec->env.v[i].key))
            return true;
    return false;
}

/* The name of the first whose value stands in one of the texts, or NULL. */
static const char *find_told(const struct pairs *values, const char *text, const char *resolved)
{
    for (size_t i = 0; i < values->n; i++) {
        struct mask mask = {0};
        if (strlen(values->v[i].value) >= TOLD_MIN)
            mask_add(&mask, values->v[i].value);
        bool told = mask_finds(&mask, text) || mask_finds(&mask, resolved);
        mask_release(&mask);
        if (told)
            return values->v[i].key;
    }
    return NULL;
}

int secretcheck(const struct secrets *s,
                const char *user,
                const struct spec *spec,
                const char *text,
                struct err *err)
{
    if (!spec->secrets.n)
        return 0;
    int r = secrets_check(s, user, spec->project, &spec->secrets, err);
    if (r < 0)
        return r;
    struct pairs values = {0};
    struct buf resolved = BUF_INIT(RESOLVED_MAX);
    struct jout j = jout_begin(&resolved);
    spec_to_json(spec, &j, NULL);
    secrets_reveal(s, user, spec->project, &spec->secrets, &values);
    const char *told = find_told(&values, text, buf_str(&resolved));
    if (told) {
        _cleanup_(freep) char *variable = xasprintf("$%s", told);
        r = message_refuse(
            err, ERR_BAD_SPEC, "secret_in_spec",
            MESSAGE_ARGS(MESSAGE_STR("secret", told), MESSAGE_STR("variable", variable)));
    }
    pairs_wipe(&values);
    buf_release(&resolved);
    return r;
}

int secretcheck_open(struct secrets *s,
                     const struct settings *settings,
                     const struct job *job,
                     struct pairs *ret,
                     struct err *err)
{
    const struct spec *spec = jobspec_of(settings, job);
    return spec ? secrets_take(s, job->user, job->project, &spec->secrets, clock_wall(), ret, err)
                : 0;
}
