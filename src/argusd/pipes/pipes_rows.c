/* SPDX-License-Identifier: Apache-2.0 */
/* pipes_rows.c - pipelines and runs as rows of the store, and back. A run that this version cannot
 * read any more has failed; it stays, with the items that were stored. */
#include <stdlib.h>
#include <string.h>

#include "argusd/pipes/pipes_state.h"
#include "argusd/web/changes.h"
#include "base/log.h"
#include "base/str.h"

enum { ORDER_STEP = 64 };

/* ---- rows ---- */

#define ROW(of, key, ftype, ...)                                                                   \
    {                                                                                              \
        .name = #key, .type = ftype, .offset = offsetof(struct of, key), __VA_ARGS__               \
    }
enum { BOTH = FIELD_STORED | FIELD_SHOWN | FIELD_LISTED, WHOLE = FIELD_STORED | FIELD_SHOWN };
static const struct field pipeline_rows[] = {
    ROW(pipeline, name, FIELD_STR, .flags = BOTH | FIELD_ALWAYS),
    ROW(pipeline, owner, FIELD_STR, .flags = BOTH | FIELD_ALWAYS, .doc = "user who stored it"),
    ROW(pipeline,
        project,
        FIELD_STR,
        .flags = BOTH | FIELD_ALWAYS,
        .doc = "project whose members see it"),
    ROW(pipeline, text, FIELD_STR, .flags = WHOLE | FIELD_ALWAYS, .doc = "YAML, as it was given"),
    ROW(pipeline, hash, FIELD_TEXT, .size = HASH_HEX, .flags = BOTH, .doc = "SHA-256 of the text"),
    ROW(pipeline, created_at, FIELD_TIME, .flags = BOTH),
    ROW(pipeline, changed_at, FIELD_TIME, .flags = BOTH),
    ROW(pipeline,
        cron,
        FIELD_STR,
        .flags = BOTH,
        .doc = "five fields of its schedule, as cron has them"),
    ROW(pipeline, zone, FIELD_STR, .flags = BOTH, .doc = "time zone of the schedule; null: UTC"),
    ROW(pipeline,
        schedule_params,
        FIELD_JSON,
        .flags = WHOLE,
        .schema = "{\"type\":[\"object\",\"null\"],\"additionalProperties\":{\"description\":"
                  "\"of the parameter's type\"}}",
        .doc = "parameters of its runs"),
    ROW(pipeline, next_at, FIELD_TIME, .flags = BOTH, .doc = "next time of its schedule"),
    ROW(pipeline, owner_away, FIELD_BOOL, .flags = FIELD_STORED),
};
const struct field_table pipeline_table = {.name = "Pipeline",
                                           .rows = pipeline_rows,
                                           .n = array_len(pipeline_rows),
                                           .size = sizeof(struct pipeline)};

static const struct field life_rows[] = {
    ROW(pipe_life, id, FIELD_STR, .flags = BOTH | FIELD_ALWAYS),
    ROW(pipe_life, pipeline, FIELD_STR, .flags = BOTH | FIELD_ALWAYS),
    ROW(pipe_life, owner, FIELD_STR, .flags = BOTH | FIELD_ALWAYS, .doc = "owner of the pipeline"),
    ROW(pipe_life,
        user,
        FIELD_STR,
        .flags = BOTH | FIELD_ALWAYS,
        .doc = "user whose jobs its steps are"),
    ROW(pipe_life, project, FIELD_STR, .flags = BOTH | FIELD_ALWAYS),
    ROW(pipe_life, number, FIELD_INT, .flags = BOTH),
    ROW(pipe_life, state, FIELD_ENUM, .names = pipe_state_names, .flags = BOTH),
    ROW(pipe_life, text, FIELD_STR, .flags = WHOLE | FIELD_ALWAYS, .doc = "the pipeline as it was"),
    ROW(pipe_life,
        params,
        FIELD_JSON,
        .flags = WHOLE,
        .schema = "{\"type\":\"object\",\"additionalProperties\":{\"description\":\"of the "
                  "parameter's type\"}}"),
    ROW(pipe_life, force, FIELD_BOOL, .flags = WHOLE, .doc = "no earlier run stands in for a step"),
    ROW(pipe_life, by_schedule, FIELD_BOOL, .flags = BOTH),
    ROW(pipe_life, cancelled, FIELD_BOOL, .flags = WHOLE),
    ROW(pipe_life, created_at, FIELD_TIME, .flags = BOTH),
    ROW(pipe_life, started_at, FIELD_TIME, .flags = BOTH, .doc = "null: it waits for another run"),
    ROW(pipe_life, ended_at, FIELD_TIME, .flags = BOTH),
    ROW(pipe_life, items, FIELD_LIST, .of = &pipe_item_table, .flags = FIELD_STORED),
};
const struct field_table pipe_life_table = {.name = "PipelineRun",
                                            .rows = life_rows,
                                            .n = array_len(life_rows),
                                            .size = sizeof(struct pipe_life)};

char *pipes_key(const char *owner, const char *name)
{
    return xasprintf("%s/%s", owner, name);
}

void pipes_save(const struct pipes *ps, const struct pipeline *p)
{
    _cleanup_(freep) char *key = pipes_key(p->owner, p->name);
    _cleanup_(freep) char *body = field_to_text(&pipeline_table, p, FIELD_STORED, FIELD_ROW);
    struct store_entry row = {
        .kind = PIPES_ENTRY_PIPELINE, .name = key, .body = body, .at = clock_wall()};
    store_put_entry(ps->a->store, &row);
    changes_tell_pipeline(ps->a->changes, p->name, p->owner, p->project);
}

void pipes_save_run(struct pipe_life *r)
{
    pipes_index_run(r);
    if (r->pipe)
        r->items = (struct field_list){.v = r->run.v, .n = r->run.n};
    _cleanup_(freep) char *body = field_to_text(&pipe_life_table, r, FIELD_STORED, FIELD_ROW);
    if (r->pipe)
        r->items = (struct field_list){0};
    struct store_entry row = {
        .kind = PIPES_ENTRY_RUN, .name = r->id, .body = body, .at = clock_wall()};
    store_put_entry(r->pipes->a->store, &row);
    changes_tell_pipeline(r->pipes->a->changes, r->id, r->user, r->project);
}

void pipeline_free(struct pipeline *p)
{
    pipe_free(p->pipe);
    field_release(&pipeline_table, p);
    free(p);
}

void pipe_life_free(struct pipe_life *r)
{
    pipes_unindex_run(r);
    for (size_t i = 0; i < r->run.n; i++)
        pipes_drop_work(r, i);
    pipe_run_release(&r->run);
    pipe_free(r->pipe);
    field_release(&pipe_life_table, r);
    free(r);
}

/* Reads the text; NULL: this version cannot. */
struct pipe *pipes_read_text(const char *text, struct problems *problems)
{
    struct pipe *p = NULL;
    return pipe_read(text, strlen(text), &p, problems) == 0 ? p : NULL;
}

void pipes_open_run(struct pipe_life *r)
{
    r->run = (struct pipe_run){.pipe = r->pipe,
                               .id = r->id,
                               .user = r->user,
                               .project = r->project,
                               .number = r->number,
                               .params = json_loads(str_or(r->params, "{}"), 0, NULL),
                               .is_cancelled = r->cancelled};
    if (!r->run.params)
        r->run.params = json_object();
    pipe_run_begin(&r->run);
}

void pipes_add_run(struct pipes *ps, struct pipe_life *r)
{
    if (ps->n_order == ps->cap_order) {
        ps->cap_order += ORDER_STEP;
        ps->order = xrealloc(ps->order, ps->cap_order, sizeof(struct pipe_life *));
    }
    size_t at = ps->n_order++;
    for (; at && ps->order[at - 1]->number > r->number; at--)
        ps->order[at] = ps->order[at - 1];
    ps->order[at] = r;
    r->pipes = ps;
    (void)map_set(ps->runs, r->id, r); /* ids are unique */
    ps->n_live += !r->ended_at;
}

/* ---- rows at the start ---- */

static void pipes_restore_pipeline(struct pipes *ps, const struct store_entry *row)
{
    struct problems problems = {0};
    struct pipeline *p = xcalloc(1, sizeof(*p));
    if (!field_from_text(&pipeline_table, row->body, FIELD_STORED, p) || !p->owner || !p->name) {
        log_warn("pipes", "a row of pipeline '%s' cannot be read: it is left out", row->name);
        pipeline_free(p);
        return;
    }
    p->pipe = pipes_read_text(str_or(p->text, ""), &problems);
    problems_release(&problems);
    (void)map_set(ps->by_key, row->name, p); /* rows have different names */
}

/* What was stored of an item, into the item that the text makes. One that was begun and got neither
 * a job nor a version of a service (which its `left` names) is begun again. Of another step that is
 * under way without a job, `left` is an earlier try's, which an older argusd did not clear. */
static void pipes_take_item(const struct pipe *pipe,
                            struct pipe_item *item,
                            struct pipe_item *stored)
{
    int step = item->step;
    field_release(&pipe_item_table, item);
    *item = *stored;
    item->step = step;
    *stored = (struct pipe_item){0};
    if (item->state == PIPE_RUNNING && !item->job && pipe->steps[step].uses != PIPE_USES_DEPLOY)
        set_str(&item->left, NULL);
    if (item->state == PIPE_RUNNING && !item->job && !item->left) {
        item->state = PIPE_WAITING;
        item->tries -= item->tries > 0;
    }
}

static void pipes_take_items(struct pipe_life *r)
{
    struct pipe_item *stored = r->items.v;
    for (size_t k = 0; k < r->items.n; k++)
        for (size_t i = 0; i < r->run.n; i++)
            if (stored[k].name && str_eq(r->run.v[i].name, stored[k].name)) {
                pipes_take_item(r->pipe, &r->run.v[i], &stored[k]);
                break;
            }
    for (size_t k = 0; k < r->items.n; k++)
        field_release(&pipe_item_table, &stored[k]);
    free(r->items.v);
    r->items = (struct field_list){0};
}

static void pipes_restore_run(struct pipes *ps, const struct store_entry *row)
{
    struct problems problems = {0};
    struct pipe_life *r = xcalloc(1, sizeof(*r));
    r->pipes = ps;
    if (!field_from_text(&pipe_life_table, row->body, FIELD_STORED, r) || !r->id) {
        log_warn("pipes", "the row of run '%s' cannot be read: it is left out", row->name);
        pipe_life_free(r);
        return;
    }
    r->pipe = pipes_read_text(str_or(r->text, ""), &problems);
    problems_release(&problems);
    if (r->pipe) {
        pipes_open_run(r);
        pipes_take_items(r);
    } else if (!r->ended_at) {
        log_warn("pipes", "run '%s' cannot be read by this version: it has failed", r->id);
        r->state = PIPE_FAILED;
        r->ended_at = clock_wall();
    }
    pipes_add_run(ps, r);
}

void pipes_restore(struct pipes *ps, const struct store_entry *row)
{
    if (!strcmp(row->kind, PIPES_ENTRY_PIPELINE))
        pipes_restore_pipeline(ps, row);
    else if (!strcmp(row->kind, PIPES_ENTRY_RUN))
        pipes_restore_run(ps, row);
    else if (str_to_int(row->body, 0, INT64_MAX, &ps->last_number, NULL) < 0)
        log_warn("pipes", "the number of the last run cannot be read: %.40s", row->body);
}
