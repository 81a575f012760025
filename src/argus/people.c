/* SPDX-License-Identifier: Apache-2.0 */
/* people.c - see people.h. Tables of names and numbers; -o json and yaml print the server's
 * answer as it is. */
#include "argus/people.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "argus/jobview.h"
#include "argus/listing.h"
#include "base/str.h"

enum { PATH_MAX_BYTES = 4096, BODY_MAX_BYTES = 256 << 10 };

/* ---- calls ---- */

int people_call(struct cli *cli,
                const char *method,
                const char *kind,
                const char *name,
                const char *rest,
                json_t *body,
                json_t **ret,
                struct err *err)
{
    _cleanup_(json_unrefp) json_t *taken = body;
    _cleanup_(buf_release) struct buf path = BUF_INIT(PATH_MAX_BYTES);
    (void)buf_addf(&path, "/v1/%s%s", kind, name ? "/" : ""); /* failed is looked at below */
    if (name)
        url_escape(&path, name);
    (void)buf_adds(&path, rest);
    if (path.failed)
        return err_set(err, ERR_USAGE, "'%.60s…' is too long for a name", str_or(name, ""));
    char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
    struct request request = {.method = method,
                              .path = buf_str(&path),
                              .content_type = text ? "application/json" : NULL,
                              .body = text,
                              .body_len = text ? strlen(text) : 0};
    int r = client_json(cli->client, &request, ret, err);
    free(text);
    return r;
}

int people_change(struct cli *cli,
                  const char *method,
                  const char *kind,
                  const char *name,
                  json_t *body,
                  const char *what,
                  struct err *err)
{
    _cleanup_(json_unrefp) json_t *answer = NULL;
    bool makes = str_eq(method, "POST");
    int r = people_call(cli, method, kind, makes ? NULL : name, "", body, &answer, err);
    if (r >= 0)
        (void)fprintf(cli->out, "%.*s %s %s\n", (int)strlen(kind) - 1, kind,
                      json_get_str(answer, "name", name), what);
    return r;
}

void people_set_text(json_t *body, const char *key, const char *value)
{
    if (value)
        (void)json_object_set_new(body, key, json_string(value)); /* fails for lack of memory */
}

void people_set_list(json_t *body, const char *key, const struct strv *list)
{
    json_t *all = json_array();
    for (size_t i = 0; i < list->n; i++) {
        const char *at = list->v[i], *item;
        for (size_t n; (item = str_item(&at, &n));)
            (void)json_array_append_new(all, json_stringn(item, n)); /* as above */
    }
    if (list->n)
        (void)json_object_set(body, key, all);
    json_decref(all);
}

int people_set_number(json_t *body, const char *key, const char *value, struct err *err)
{
    double v = 0;
    if (!value)
        return 0;
    if (str_eq(value, "none") || str_eq(value, "-")) {
        (void)json_object_del(body, key); /* it may not be there */
        return 0;
    }
    if (str_to_real(value, &v, NULL) < 0 || !(v >= 0))
        return err_set(err, ERR_USAGE, "'%.40s' is no limit: give a number, or none", value);
    bool whole = v < 1e15 && v == (double)(json_int_t)v;
    (void)json_object_set_new(body, key, whole ? json_integer((json_int_t)v) : json_real(v));
    return 0;
}

/* ---- texts of cells ---- */

/* "a,b" of a list of texts: yours to free(). */
static char *joined(const json_t *object, const char *key)
{
    struct buf out = BUF_INIT(BODY_MAX_BYTES);
    size_t i;
    json_t *v;
    json_array_foreach (json_get_array(object, key), i, v)
        (void)buf_addf(&out, "%s%s", i ? "," : "", str_or(json_string_value(v), "?"));
    return buf_take(&out);
}

static void add_joined(struct table *t, const json_t *object, const char *key)
{
    char *text = joined(object, key);
    table_add(t, STYLE_PLAIN, text);
    free(text);
}

/* "4/8": what is used of what may be. */
static void add_use(struct table *t, const json_t *row, const char *used, const char *limit)
{
    const json_t *quota = json_get_object(row, "quota"), *usage = json_get_object(row, "usage");
    char use[40], most[40] = "-";
    double v = json_get_real(quota, limit, -1);
    double u = json_get_real(usage, used, 0);
    (void)snprintf(use, sizeof(use), "%.*f", u < 1e9 && u == (double)(int64_t)u ? 0 : 1,
                   u); /* fits */
    if (v >= 0)
        (void)snprintf(most, sizeof(most), "%g", v);
    table_addf(t, STYLE_PLAIN, "%s/%s", use, most);
}

/* ---- tables ---- */

static const struct column USERS_COLUMNS[] = {
    {.title = MSG_USER, .flags = COLUMN_FLEX, .least = 12},
    {.title = MSG_ROLE},
    {.title = MSG_STATE},
    {.title = MSG_PROJECTS, .flags = COLUMN_FLEX, .least = 8},
    {.title = MSG_TOKENS, .flags = COLUMN_RIGHT},
    {.title = MSG_JOBS, .flags = COLUMN_RIGHT, .rank = 2},
    {.title = MSG_LAST_USE, .rank = 1},
    {.title = MSG_NOTE, .flags = COLUMN_FLEX, .least = 8, .rank = 3},
};

static void add_user(struct table *t, const json_t *u, const struct when *w)
{
    char text[WHEN_TEXT_MAX];
    const json_t *usage = json_get_object(u, "usage");
    bool off = json_get_bool(u, "disabled", false);
    table_add(t, STYLE_PLAIN, jobview_str(u, "name"));
    table_add(t, STYLE_PLAIN, jobview_str(u, "role"));
    table_add(t, off ? STYLE_YELLOW : STYLE_PLAIN, off ? "disabled" : "active");
    add_joined(t, u, "projects");
    table_addf(t, STYLE_PLAIN, "%d", (int)json_get_int(u, "tokens", 0));
    table_addf(t, STYLE_PLAIN, "%d",
               (int)(json_get_int(usage, "running", 0) + json_get_int(usage, "queued", 0)));
    table_add(t, STYLE_PLAIN, when_point(w, when_get(u, "last_use_at"), text));
    table_add(t, STYLE_PLAIN, json_get_str(u, "note", ""));
}

void people_print_users(struct cli *cli, const json_t *answer, int output, bool utc)
{
    static const struct listing l = {.key = "users",
                                     .columns = USERS_COLUMNS,
                                     .n_columns = array_len(USERS_COLUMNS),
                                     .add_row = add_user,
                                     .none = LISTING_SILENT};
    listing_print(cli, &l, answer, output, utc);
}

static const struct column TOKENS_COLUMNS[] = {
    {.title = MSG_ID},
    {.title = MSG_NAME, .flags = COLUMN_FLEX, .least = 6},
    {.title = MSG_USER, .flags = COLUMN_FLEX, .least = 6},
    {.title = MSG_ROLE},
    {.title = MSG_STATE},
    {.title = MSG_EXPIRES},
    {.title = MSG_LAST_USE, .rank = 1},
    {.title = MSG_MADE, .rank = 2},
};

static void add_token(struct table *t, const json_t *k, const struct when *w)
{
    char text[WHEN_TEXT_MAX];
    const char *state = jobview_str(k, "state");
    table_add(t, STYLE_PLAIN, jobview_str(k, "id"));
    table_add(t, STYLE_PLAIN, json_get_str(k, "name", ""));
    table_add(t, STYLE_PLAIN, jobview_str(k, "user"));
    table_add(t, STYLE_PLAIN, jobview_str(k, "role"));
    table_add(t, str_eq(state, "works") ? STYLE_PLAIN : STYLE_YELLOW, state);
    table_add(t, STYLE_PLAIN, when_point(w, when_get(k, "expires_at"), text));
    table_add(t, STYLE_PLAIN, when_point(w, when_get(k, "last_use_at"), text));
    table_add(t, STYLE_PLAIN, when_point(w, when_get(k, "created_at"), text));
}

void people_print_tokens(struct cli *cli, const json_t *answer, int output, bool utc)
{
    static const struct listing l = {.key = "tokens",
                                     .columns = TOKENS_COLUMNS,
                                     .n_columns = array_len(TOKENS_COLUMNS),
                                     .add_row = add_token,
                                     .none = LISTING_SILENT};
    listing_print(cli, &l, answer, output, utc);
}

static const struct column SECRETS_COLUMNS[] = {
    {.title = MSG_NAME, .flags = COLUMN_FLEX, .least = 12},
    {.title = MSG_USER, .flags = COLUMN_FLEX, .least = 6},
    {.title = MSG_PROJECT, .flags = COLUMN_FLEX, .least = 6},
    {.title = MSG_MADE, .rank = 1},
    {.title = MSG_LAST_USE},
};

static void add_secret(struct table *t, const json_t *k, const struct when *w)
{
    char text[WHEN_TEXT_MAX];
    table_add(t, STYLE_PLAIN, jobview_str(k, "name"));
    table_add(t, STYLE_PLAIN, json_get_str(k, "user", ""));
    table_add(t, STYLE_PLAIN, json_get_str(k, "project", ""));
    table_add(t, STYLE_PLAIN, when_point(w, when_get(k, "created_at"), text));
    table_add(t, STYLE_PLAIN, when_point(w, when_get(k, "last_use_at"), text));
}

void people_print_secrets(struct cli *cli, const json_t *answer, int output, bool utc)
{
    static const struct listing l = {.key = "secrets",
                                     .columns = SECRETS_COLUMNS,
                                     .n_columns = array_len(SECRETS_COLUMNS),
                                     .add_row = add_secret,
                                     .none = LISTING_SILENT};
    listing_print(cli, &l, answer, output, utc);
}

static const struct column PROJECTS_COLUMNS[] = {
    {.title = MSG_PROJECT, .flags = COLUMN_FLEX, .least = 12},
    {.title = MSG_MEMBERS, .flags = COLUMN_FLEX, .least = 10},
    {.title = MSG_POOL, .flags = COLUMN_FLEX, .least = 6},
    {.title = MSG_SHARE, .flags = COLUMN_RIGHT},
    {.title = MSG_PRIO, .flags = COLUMN_RIGHT},
    {.title = MSG_GPU_USE, .flags = COLUMN_RIGHT},
    {.title = MSG_JOBS, .flags = COLUMN_RIGHT},
    {.title = MSG_NOTE, .flags = COLUMN_FLEX, .least = 8, .rank = 1},
};

static void add_project(struct table *t, const json_t *p, const struct when *w)
{
    (void)w;
    const json_t *usage = json_get_object(p, "usage");
    bool is_default = str_eq(json_get_str(p, "name", ""), "default");
    table_add(t, STYLE_PLAIN, jobview_str(p, "name"));
    if (is_default)
        table_add(t, STYLE_DIM, "(everybody)");
    else
        add_joined(t, p, "members");
    table_add(t, STYLE_PLAIN, json_get_str(p, "pool", ""));
    table_addf(t, STYLE_PLAIN, "%g", json_get_real(p, "share", 1));
    table_addf(t, STYLE_PLAIN, "%d", (int)json_get_int(p, "priority_ceiling", 100));
    add_use(t, p, "gpus", "gpus_ceiling");
    table_addf(t, STYLE_PLAIN, "%d",
               (int)(json_get_int(usage, "running", 0) + json_get_int(usage, "queued", 0)));
    table_add(t, STYLE_PLAIN, json_get_str(p, "note", ""));
}

void people_print_projects(struct cli *cli, const json_t *answer, int output)
{
    static const struct listing l = {.key = "projects",
                                     .columns = PROJECTS_COLUMNS,
                                     .n_columns = array_len(PROJECTS_COLUMNS),
                                     .add_row = add_project,
                                     .none = LISTING_SILENT};
    listing_print(cli, &l, answer, output, false);
}

static const struct column QUOTAS_COLUMNS[] = {
    {.title = MSG_OF, .flags = COLUMN_FLEX, .least = 14},
    {.title = MSG_GUARANTEED, .flags = COLUMN_RIGHT},
    {.title = MSG_GPU_USE, .flags = COLUMN_RIGHT},
    {.title = MSG_BORROWED, .flags = COLUMN_RIGHT},
    {.title = MSG_CPUS, .flags = COLUMN_RIGHT, .rank = 2},
    {.title = MSG_RUNNING, .flags = COLUMN_RIGHT},
    {.title = MSG_QUEUED, .flags = COLUMN_RIGHT},
    {.title = MSG_GPU_HOURS, .flags = COLUMN_RIGHT, .rank = 1},
};

static void add_quota(struct table *t, const json_t *q, const struct when *w)
{
    (void)w;
    const json_t *quota = json_get_object(q, "quota"), *usage = json_get_object(q, "usage");
    double v = json_get_real(quota, "gpus_guaranteed", -1);
    table_addf(t, STYLE_PLAIN, "%s %s", jobview_str(q, "kind"), jobview_str(q, "name"));
    if (v >= 0)
        table_addf(t, STYLE_PLAIN, "%g", v);
    else
        table_add(t, STYLE_PLAIN, NULL);
    add_use(t, q, "gpus", "gpus_ceiling");
    table_addf(t, STYLE_PLAIN, "%g", json_get_real(usage, "gpus_borrowed", 0));
    add_use(t, q, "cpus", "cpus");
    add_use(t, q, "running", "running");
    add_use(t, q, "queued", "queued");
    add_use(t, q, "gpu_hours_this_month", "gpu_hours_per_month");
}

void people_print_quotas(struct cli *cli, const json_t *answer, int output)
{
    static const struct listing l = {.key = "quotas",
                                     .columns = QUOTAS_COLUMNS,
                                     .n_columns = array_len(QUOTAS_COLUMNS),
                                     .add_row = add_quota,
                                     .none = LISTING_SILENT};
    listing_print(cli, &l, answer, output, false);
}

static void line(struct cli *cli, const char *title, const char *text)
{
    if (text && *text)
        (void)fprintf(cli->out, "%-18s %s\n", title, text);
}

static void limit(struct cli *cli,
                  const json_t *account,
                  const char *title,
                  const char *key,
                  const char *used)
{
    const json_t *quota = json_get_object(account, "quota");
    const json_t *usage = json_get_object(account, "usage");
    double most = json_get_real(quota, key, -1);
    char text[80] = "no limit";
    if (most >= 0)
        (void)snprintf(text, sizeof(text), "%g", most); /* fits, as below */
    size_t n = strlen(text);
    if (used)
        (void)snprintf(text + n, sizeof(text) - n, ", %.4g used", json_get_real(usage, used, 0));
    line(cli, title, text);
}

void people_print_account(struct cli *cli, const json_t *account)
{
    char *members = joined(account, "members");
    char text[40];
    line(cli, "name", jobview_str(account, "name"));
    line(cli, "note", json_get_str(account, "note", ""));
    line(cli, "members", members);
    line(cli, "pool", json_get_str(account, "pool", ""));
    if (json_object_get(account, "share")) {
        (void)snprintf(text, sizeof(text), "%g", json_get_real(account, "share", 1)); /* fits */
        line(cli, "share", text);
        (void)snprintf(text, sizeof(text), "%d",
                       (int)json_get_int(account, "priority_ceiling", 100));
        line(cli, "priority ceiling", text);
    }
    limit(cli, account, "GPUs guaranteed", "gpus_guaranteed", NULL);
    limit(cli, account, "GPUs", "gpus_ceiling", "gpus");
    limit(cli, account, "CPUs", "cpus", "cpus");
    limit(cli, account, "memory (GiB)", "memory", "memory");
    limit(cli, account, "checkpoints (GiB)", "checkpoints", NULL);
    limit(cli, account, "storage (GiB)", "storage", "storage");
    limit(cli, account, "jobs running", "running", "running");
    limit(cli, account, "jobs waiting", "queued", "queued");
    limit(cli, account, "GPU-hours a month", "gpu_hours_per_month", "gpu_hours_this_month");
    free(members);
}
