/* SPDX-License-Identifier: Apache-2.0 */
/* removalplan.c - DELETE of a data set, model or preset with ?dry_run=1: what would break, by name,
 * and nothing is done.
 *
 * Jobs and presets are asked here; the rooms above the API add theirs (api.h: add_removal_users). A
 * job holds its own copy of what a preset said, so no job is broken by a preset that goes. */
#include "argusd/api/content/removalplan.h"

#include <string.h>

#include "argusd/kit/part.h"
#include "argusd/kit/removal.h"
#include "base/str.h"

enum { REMOVALPLAN_BYTES_MAX = 1 << 20 };

static void removalplan_add_jobs(struct removal *r, struct resource_ask *q)
{
    struct api_eyes eyes = {q->a, http_req_principal(q->req)};
    for (size_t i = r->entry->used.n; i-- > 0;) {
        const struct live *l = jobs_find_id(q->a->jobs, r->entry->used.v[i]);
        if (!l)
            continue;
        const struct removal_user user = {
            .kind = REMOVAL_JOB, .name = l->job->id, .owner = l->job->user, .keeps = true};
        removal_add(r, &user, api_sees_job(l->job->id, &eyes));
    }
}

/* The preset as it is used when nothing is said but what must be. */
static json_t *removalplan_sample(const struct preset *p)
{
    struct buf out = BUF_INIT(DOC_MAX_BYTES);
    struct problems ps = {0};
    json_t *spec = NULL;
    if (preset_sample(p, &out, &ps) == 0 &&
        json_parse(buf_str(&out), out.len, DOC_MAX_BYTES, &spec, NULL) < 0)
        spec = NULL;
    problems_release(&ps);
    buf_release(&out);
    return spec;
}

static void removalplan_add_presets(struct removal *r)
{
    const struct preset_item *i;
    for (size_t pos = 0; (i = presets_next(r->a->presets, &pos));) {
        /* Reading one costs; few have the name in their text. */
        if (!i->project || !i->preset || !strstr(i->text, r->entry->name))
            continue;
        _cleanup_(json_unrefp) json_t *spec = removalplan_sample(i->preset);
        if (!removal_is_in_spec(r, i->changed_by, i->project, spec))
            continue;
        const struct removal_user user = {
            .kind = REMOVAL_PRESET, .name = i->name, .owner = i->project};
        removal_add(r, &user, presets_may(i, r->who, ACCESS_PRESET_SEE, "see", NULL) == 0);
    }
}

void api_plan_removal(struct resource_ask *q,
                      const struct registry_entry *entry,
                      const struct preset_item *preset)
{
    char ref[REGISTRY_REF_MAX];
    struct removal r = {.a = q->a,
                        .who = &q->who,
                        .entry = entry,
                        .preset = preset,
                        .name = entry ? registry_ref(entry, ref) : preset->name};
    struct buf out = BUF_INIT(REMOVALPLAN_BYTES_MAX);
    struct jout j = jout_begin(&out);
    if (entry) {
        removalplan_add_jobs(&r, q);
        removalplan_add_presets(&r);
    }
    if (q->a->add_removal_users)
        q->a->add_removal_users(q->a, &r);
    field_to_json(&removal_table, &r, FIELD_ALL, FIELD_PAGE, &j, NULL);
    http_reply_json(q->req, 200, &out, api_reader_barrier(q->a));
    buf_release(&out);
    removal_release(&r);
}

#define OR_PLAN(noun) "{\"anyOf\":[" REF(noun) "," REF("RemovalPlan") "]}"
static const struct http_schema schemas[] = {
    {.name = "RemovalUser", .table = &removal_user_table},
    {.name = "RemovalPlan", .table = &removal_table},
    {.name = "DatasetOrPlan", .json = OR_PLAN("Dataset")},
    {.name = "ModelOrPlan", .json = OR_PLAN("Model")},
    {.name = "PresetOrPlan", .json = OR_PLAN("Preset")},
};
const struct api_part part_removalplan = {NULL, 0, schemas, array_len(schemas)};
