/* SPDX-License-Identifier: Apache-2.0 */
/* ckptcall.c - jobs of a scope that have checkpoints, and a clean-up of one after the other; see
 * ckptcall.h. */
#include "argus/ckptcall.h"

#include "argus/client.h"
#include "argus/datacall.h"
#include "argus/jobview.h"

int ckptcall_check_scope(const struct ckptcall_scope *s, const struct strv *args, struct err *err)
{
    bool is_wide = s->project || s->user;
    if (is_wide && args->n)
        return err_set(err, ERR_USAGE, "give ID, or --project or --user, not both");
    if (!is_wide && !args->n)
        return err_set(err, ERR_USAGE, "give ID, or --project or --user");
    return 0;
}

char *ckptcall_path(const struct ckptcall_scope *s)
{
    struct buf out = BUF_INIT(4096);
    (void)buf_adds(&out, "/v1/checkpoints");
    if (s->project) {
        (void)buf_adds(&out, "?project=");
        url_escape(&out, s->project);
    }
    if (s->user) {
        (void)buf_adds(&out, s->project ? "&user=" : "?user=");
        url_escape(&out, s->user); /* too long: the server says that it knows none */
    }
    return buf_take(&out);
}

int ckptcall_find(struct cli *cli,
                  const struct ckptcall_scope *s,
                  const struct strv *args,
                  struct strv *ret,
                  struct err *err)
{
    _cleanup_(json_unrefp) json_t *answer = NULL;
    size_t i;
    json_t *job;
    if (args->n) {
        strv_add(ret, args->v[0]);
        return 0;
    }
    _cleanup_(freep) char *path = ckptcall_path(s);
    int r = client_get(cli->client, path, &answer, err);
    json_array_foreach (json_get_array(answer, "jobs"), i, job)
        strv_add(ret, jobview_str(job, "id"));
    long long total = (long long)json_get_int(answer, "total", 0);
    if (r >= 0 && (unsigned long long)total > ret->n)
        cli_talk(cli, "only the %zu with the largest checkpoints, of %lld jobs", ret->n, total);
    return r;
}

static int call(struct cli *cli, const char *id, bool dry_run, json_t **ret, struct err *err)
{
    static const char dry[] = "{\"dry_run\":true}", wet[] = "{}";
    _cleanup_(freep) char *path = cli_job_path(id, "/checkpoints:gc");
    struct request request = {.method = "POST",
                              .path = path,
                              .content_type = "application/json",
                              .body = dry_run ? dry : wet,
                              .body_len = dry_run ? sizeof(dry) - 1 : sizeof(wet) - 1,
                              .tries = 3}; /* twice is once */
    return client_json(cli->client, &request, ret, err);
}

/* The plan as talk, and what goes by it. */
static void talk_plan(const struct cli *cli, const json_t *plan, struct ckptcall_gone *gone)
{
    char size[DATACALL_SIZE_MAX];
    size_t i;
    json_t *c;
    json_array_foreach (json_get_array(plan, "checkpoints"), i, c) {
        bool goes = json_get_bool(c, "goes", false);
        int64_t bytes = json_get_int(c, "bytes", 0);
        cli_talk(cli, "step %-8lld %-9s %9s  %s%s", (long long)json_get_int(c, "step", 0),
                 jobview_str(c, "state"), datacall_size(bytes, size),
                 goes ? "goes" : "stays: ", goes ? "" : jobview_str(c, "kept_by"));
        gone->n += goes;
        gone->bytes += goes ? bytes : 0;
    }
}

int ckptcall_gc(struct cli *cli,
                const struct strv *jobs,
                bool dry_run,
                struct ckptcall_gone *ret,
                struct err *err)
{
    struct ckptcall_gone gone = {.answers = json_array()};
    int r = 0;
    for (size_t i = 0; r >= 0 && i < jobs->n; i++) {
        _cleanup_(json_unrefp) json_t *answer = NULL;
        r = call(cli, jobs->v[i], dry_run, &answer, err);
        if (r == ERR_FORBIDDEN && jobs->n > 1) { /* others see it, too */
            if (dry_run)
                cli_talk(cli, "%s is left out: %s", jobs->v[i], err->text);
            r = 0;
            continue;
        }
        if (r >= 0 && dry_run && jobs->n > 1)
            cli_talk(cli, "%s:", jobs->v[i]);
        if (r >= 0 && dry_run)
            talk_plan(cli, answer, &gone);
        gone.n += r >= 0 ? (size_t)json_get_int(answer, "removed", 0) : 0;
        gone.bytes += r >= 0 ? json_get_int(answer, "removed_bytes", 0) : 0;
        (void)json_array_append(gone.answers, answer); /* NULL: the call fails */
    }
    if (r < 0)
        json_decref(gone.answers);
    else
        *ret = gone;
    return r;
}
