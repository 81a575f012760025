/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt_gc.c - take away the checkpoints that the retention of jobs lets go. */
#include "argus/cmd/cmd.h"

#include <stdio.h>
#include <unistd.h>

#include "argus/ckptcall.h"
#include "argus/datacall.h"

struct gc_opts {
    bool dry_run, yes;
    int output;
    struct ckptcall_scope scope;
};

#define ROW(type_, member) .type = (type_), .offset = offsetof(struct gc_opts, member)

static const struct opt OPTS[] = {
    {.letter = 'n', .name = "dry-run", ROW(OPT_FLAG, dry_run), .doc = "say it, and remove nothing"},
    {.letter = 'y', .name = "yes", ROW(OPT_FLAG, yes), .doc = "do not ask"},
    CKPTCALL_SCOPE_OPTS(struct gc_opts),
    OPT_OUTPUT(struct gc_opts),
};

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

/* The plan is said, then one is asked, then it is done. *ret: what was done, or would be. */
static int clean(struct cli *cli,
                 const struct gc_opts *o,
                 const struct strv *jobs,
                 struct ckptcall_gone *ret,
                 struct err *err)
{
    struct ckptcall_gone plan = {0};
    int r = ckptcall_gc(cli, jobs, true, &plan, err);
    if (r < 0)
        return r;
    if (o->dry_run || !plan.n) {
        *ret = plan;
        ret->n = 0;
        ret->bytes = 0;
        return 0;
    }
    json_decref(plan.answers);
    if (!o->yes)
        r = ask(plan.n, plan.bytes, err);
    return r < 0 ? r : ckptcall_gc(cli, jobs, false, ret, err);
}

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct gc_opts *o = opts;
    _cleanup_(strv_release) struct strv jobs = {0};
    struct ckptcall_gone gone = {0};
    char size[DATACALL_SIZE_MAX];
    int r = ckptcall_check_scope(&o->scope, args, err);
    if (r >= 0)
        r = cli_open(cli, err);
    if (r >= 0)
        r = ckptcall_find(cli, &o->scope, args, &jobs, err);
    if (r >= 0)
        r = clean(cli, o, &jobs, &gone, err);
    if (r < 0)
        return r;
    if (o->output >= OUTPUT_JSON)
        cli_emit(cli, args->n ? json_array_get(gone.answers, 0) : gone.answers, o->output);
    else
        (void)fprintf(cli->out, "%zu removed, %s\n", gone.n, datacall_size(gone.bytes, size));
    json_decref(gone.answers);
    return 0;
}

const struct command cmd_ckpt_gc = {
    .name = "ckpt gc",
    .args = "[ID]",
    .most = 1,
    .summary = "remove the checkpoints that a job, or a project's jobs, need not keep",
    .text =
        "By checkpoint.keep_last and keep_best of its spec, and of a job that is over also what "
        "was never finished, and what was put aside as torn. The last verified one always "
        "stays, and so does one that a job which is not over goes on from or reads. The plan "
        "is shown first, then one is asked. Running jobs are cleaned up by themselves. With "
        "--project or --user in place of ID: all of their jobs that have checkpoints.",
    .example = "argus ckpt gc --dry-run grpo-7\twhat would go, and why the others stay\n"
               "argus ckpt gc -y grpo-7\tnobody is asked\n"
               "argus ckpt gc -n --project rlhf\twhat a project could do without",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct gc_opts),
    .run = run,
};
