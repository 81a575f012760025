/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt_gc.c - take away the checkpoints that a job's retention lets go. */
#include "argus/cmd/cmd.h"

#include <stdio.h>
#include <unistd.h>

#include "argus/datacall.h"
#include "argus/jobview.h"

struct gc_opts {
    bool dry_run, yes;
    int output;
};

#define ROW(type_, member) .type = (type_), .offset = offsetof(struct gc_opts, member)

static const struct opt OPTS[] = {
    {.letter = 'n', .name = "dry-run", ROW(OPT_FLAG, dry_run), .doc = "say it, and remove nothing"},
    {.letter = 'y', .name = "yes", ROW(OPT_FLAG, yes), .doc = "do not ask"},
    OPT_OUTPUT(struct gc_opts),
};

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

/* The plan as talk; how many go, *ret_bytes of them. */
static size_t talk_plan(const struct cli *cli, const json_t *plan, int64_t *ret_bytes)
{
    char size[DATACALL_SIZE_MAX];
    size_t i, goes = 0;
    json_t *c;
    *ret_bytes = 0;
    json_array_foreach (json_get_array(plan, "checkpoints"), i, c) {
        bool gone = json_get_bool(c, "goes", false);
        int64_t bytes = json_get_int(c, "bytes", 0);
        cli_talk(cli, "step %-8lld %-9s %9s  %s%s", (long long)json_get_int(c, "step", 0),
                 jobview_str(c, "state"), datacall_size(bytes, size),
                 gone ? "goes" : "stays: ", gone ? "" : jobview_str(c, "kept_by"));
        goes += gone;
        *ret_bytes += gone ? bytes : 0;
    }
    return goes;
}

static int ask(size_t n, int64_t bytes, struct err *err)
{
    char answer[16], size[DATACALL_SIZE_MAX];
    if (!isatty(STDIN_FILENO))
        return err_set(err, ERR_USAGE, "nobody can be asked whether to remove %zu: add -y", n);
    (void)fprintf(stderr, "remove these %zu, %s? [y/N] ", n, datacall_size(bytes, size));
    if (!fgets(answer, sizeof(answer), stdin) || (*answer != 'y' && *answer != 'Y'))
        return err_set(err, ERR_USAGE, "nothing was removed");
    return 0;
}

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct gc_opts *o = opts;
    _cleanup_(json_unrefp) json_t *plan = NULL, *answer = NULL;
    char size[DATACALL_SIZE_MAX];
    int64_t bytes = 0;
    int r = cli_open(cli, err);
    if (r >= 0)
        r = call(cli, args->v[0], true, &plan, err);
    if (r < 0)
        return r;
    if (o->dry_run && o->output >= OUTPUT_JSON) {
        cli_emit(cli, plan, o->output);
        return 0;
    }
    size_t goes = talk_plan(cli, plan, &bytes);
    if (!o->dry_run && goes && !o->yes)
        r = ask(goes, bytes, err);
    if (r >= 0 && !o->dry_run && goes)
        r = call(cli, args->v[0], false, &answer, err);
    if (r < 0)
        return r;
    if (answer && o->output >= OUTPUT_JSON)
        cli_emit(cli, answer, o->output);
    else
        (void)fprintf(cli->out, "%lld removed, %s\n", (long long)json_get_int(answer, "removed", 0),
                      datacall_size(json_get_int(answer, "removed_bytes", 0), size));
    return 0;
}

const struct command cmd_ckpt_gc = {
    .name = "ckpt gc",
    .args = "ID",
    .least = 1,
    .most = 1,
    .summary = "remove the checkpoints that a job need not keep",
    .text =
        "By checkpoint.keep_last and keep_best of its spec, and of a job that is over also what "
        "was "
        "never finished. The last verified one always stays, and so does one that a job which is "
        "not over goes on from or reads. The plan is shown first, then one is asked. Running jobs "
        "are cleaned up by themselves.",
    .example = "argus ckpt gc --dry-run grpo-7\twhat would go, and why the others stay\n"
               "argus ckpt gc -y grpo-7\tnobody is asked",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct gc_opts),
    .run = run,
};
