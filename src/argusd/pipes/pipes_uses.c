/* SPDX-License-Identifier: Apache-2.0 */
/* pipes_uses.c - which pipelines name a data set, a model or a preset that is to be removed.
 *
 * Read is the text as it stands. A value that is one parameter and no more is that parameter's
 * default; what an expression makes of what a step leaves is known in a run alone. */
#include <string.h>

#include "argusd/kit/removal.h"
#include "argusd/pipes/pipes_state.h"
#include "base/str.h"

/* "${{ params.model }}": the text that its default is. NULL: it is something else. */
static const char *uses_default(const struct pipe *p, const char *text)
{
    static const char open[] = "${{", of[] = "params.";
    char name[PIPE_NAME_MAX + 1];
    if (!text || !str_starts(text, open))
        return NULL;
    text += strlen(open);
    text += strspn(text, " ");
    if (!str_starts(text, of))
        return NULL;
    text += strlen(of);
    size_t n = strcspn(text, " }");
    const char *end = text + n + strspn(text + n, " ");
    if (n >= sizeof(name) || !str_eq(end, "}}"))
        return NULL;
    memcpy(name, text, n);
    name[n] = '\0';
    const struct pipe_param *param = pipe_find_param(p, name);
    return param && param->dflt && param->dflt->kind == NODE_SCALAR ? param->dflt->text : NULL;
}

/* What the step is given, with defaults in the place of parameters. Yours; NULL: nothing. */
static json_t *uses_with(const struct pipe *p, const struct pipe_step *s)
{
    struct buf out = BUF_INIT(PIPE_MAX_BYTES * 2);
    struct jout j = jout_begin(&out);
    json_t *with = NULL, *value;
    const char *key;
    void *next;
    if (s->with)
        node_to_json(s->with, &j, NULL);
    if (s->with && json_parse(buf_str(&out), out.len, PIPE_MAX_BYTES * 2, &with, NULL) < 0)
        with = NULL;
    buf_release(&out);
    json_object_foreach_safe (with, next, key, value) {
        const char *dflt = uses_default(p, json_string_value(value));
        if (dflt)
            (void)json_object_set_new(with, key, json_string(dflt)); /* fails for lack of memory */
    }
    return with;
}

static bool uses_in_step(const struct removal *r,
                         const struct pipeline *p,
                         const struct pipe_step *s)
{
    _cleanup_(json_unrefp) json_t *with = uses_with(p->pipe, s);
    switch ((enum pipe_uses)s->uses) {
    case PIPE_USES_JOB:
        return removal_is_in_spec(r, p->owner, p->project, with);
    case PIPE_USES_DEPLOY:
        return removal_is_named(r, p->owner, REGISTRY_MODEL, json_object_get(with, "model"));
    case PIPE_USES_PREPARE:
        return removal_is_named(r, p->owner, REGISTRY_DATASET, json_object_get(with, "name"));
    default:
        return false;
    }
}

static bool uses_in_pipeline(const struct removal *r, const struct pipeline *p)
{
    for (size_t i = 0; i < p->pipe->n_steps; i++)
        if (uses_in_step(r, p, &p->pipe->steps[i]))
            return true;
    return false;
}

void pipes_add_removal_users(const struct pipes *ps, struct removal *r)
{
    const struct pipeline *p;
    const char *name = r->entry ? r->entry->name : r->preset->name;
    for (size_t pos = 0; (p = pipes_next(ps, &pos));) {
        /* Reading one costs; few have the name in their text. */
        if (!p->pipe || !strstr(p->text, name) || !uses_in_pipeline(r, p))
            continue;
        const struct access_thing thing = pipeline_thing(p);
        const struct removal_user user = {
            .kind = REMOVAL_PIPELINE, .name = p->name, .owner = p->owner};
        removal_add(r, &user, access_check(r->who, ACCESS_PIPELINE_SEE, "see", &thing, NULL) == 0);
    }
}
