/* SPDX-License-Identifier: Apache-2.0 */
/* command.c - finds and runs a row of the table; see command.h. */
#include "argus/command.h"

#include <stdlib.h>
#include <string.h>

#include "argus/cmd/cmd.h"
#include "argus/manual.h"
#include "base/str.h"

static const struct command *const TABLE[] = {
    &cmd_login,         &cmd_submit,         &cmd_queue,         &cmd_ls,
    &cmd_top,           &cmd_status,         &cmd_why,           &cmd_logs,
    &cmd_stop,          &cmd_hold,           &cmd_release,       &cmd_priority,
    &cmd_wait,          &cmd_retry,          &cmd_events,        &cmd_gpus,
    &cmd_node_ls,       &cmd_node_add,       &cmd_node_check,    &cmd_node_drain,
    &cmd_node_undrain,  &cmd_node_rm,        &cmd_node_firewall, &cmd_pool_ls,
    &cmd_cluster_ls,    &cmd_cluster_status, &cmd_cluster_up,    &cmd_cluster_down,
    &cmd_simulate,      &cmd_diagnose,       &cmd_user_add,      &cmd_user_ls,
    &cmd_user_set,      &cmd_user_rm,        &cmd_token_add,     &cmd_token_ls,
    &cmd_token_revoke,  &cmd_secret_set,     &cmd_secret_ls,     &cmd_secret_rm,
    &cmd_project_add,   &cmd_project_ls,     &cmd_project_show,  &cmd_project_set,
    &cmd_project_rm,    &cmd_quota_set,      &cmd_quota_ls,      &cmd_quota_show,
    &cmd_data_upload,   &cmd_data_import,    &cmd_data_prepare,  &cmd_data_ls,
    &cmd_data_show,     &cmd_data_rm,        &cmd_model_import,  &cmd_model_ls,
    &cmd_model_show,    &cmd_model_rm,       &cmd_files_ls,      &cmd_files_get,
    &cmd_files_put,     &cmd_files_rm,       &cmd_snapshot_add,  &cmd_snapshot_ls,
    &cmd_snapshot_diff, &cmd_snapshot_rm,    &cmd_preset_ls,     &cmd_preset_show,
    &cmd_preset_add,    &cmd_preset_rm,      &cmd_whoami,        &cmd_help,
    &cmd_version,       &cmd_completion,     &cmd_ckpt_ls,       &cmd_ckpt_verify,
    &cmd_ckpt_gc,
};

const struct command *const *command_table(size_t *ret_n)
{
    *ret_n = array_len(TABLE);
    return TABLE;
}

/* The row's number, array_len(TABLE) if there is none. */
static size_t row_of(const char *name)
{
    size_t i = 0;
    while (i < array_len(TABLE) && !str_eq(TABLE[i]->name, name) &&
           !(TABLE[i]->alias && str_eq(TABLE[i]->alias, name)))
        i++;
    return i;
}

const struct command *command_find(const char *name)
{
    size_t i = row_of(name);
    return i < array_len(TABLE) ? TABLE[i] : NULL;
}

/* "ls, add, rm" of "node"; empty: there is no such noun. */
static void verbs_of(const char *noun, struct buf *out)
{
    size_t len = strlen(noun);
    for (size_t i = 0; len && i < array_len(TABLE); i++)
        if (str_starts(TABLE[i]->name, noun) && TABLE[i]->name[len] == ' ')
            (void)buf_addf(out, "%s%s", out->len ? ", " : "", TABLE[i]->name + len + 1); /* few */
}

static int refuse_noun(const char *noun, const char *verb, const char *verbs, struct err *err)
{
    if (verb && *verb != '-')
        return err_set(err, ERR_USAGE, "'argus %.60s' has no '%.60s': it has %s", noun, verb,
                       verbs);
    return err_set(err, ERR_USAGE, "'argus %.60s' needs one of %s", noun, verbs);
}

static int unknown(const char *word, const char *next, struct err *err)
{
    struct buf verbs = BUF_INIT(1024);
    verbs_of(word, &verbs);
    if (verbs.len) {
        int r = refuse_noun(word, next, buf_str(&verbs), err);
        buf_release(&verbs);
        return r;
    }
    const char *names[2 * array_len(TABLE)];
    size_t n = 0;
    for (size_t i = 0; i < array_len(TABLE); i++) {
        names[n++] = TABLE[i]->name;
        if (TABLE[i]->alias)
            names[n++] = TABLE[i]->alias;
    }
    const char *near = str_nearest(word, names, n);
    if (near)
        return err_set(err, ERR_USAGE, "unknown command '%.60s': did you mean '%s'?", word, near);
    return err_set(err, ERR_USAGE, "unknown command '%.60s'", word);
}

int command_match(int argc, char **argv, const struct command **ret, int *ret_used, struct err *err)
{
    size_t i = array_len(TABLE);
    int used = 2;
    if (argc >= 2) {
        char *pair = xasprintf("%s %s", argv[0], argv[1]);
        i = row_of(pair);
        free(pair);
    }
    if (i == array_len(TABLE)) {
        used = 1;
        i = row_of(argv[0]);
    }
    if (i == array_len(TABLE))
        return unknown(argv[0], argc >= 2 ? argv[1] : NULL, err);
    *ret = TABLE[i];
    *ret_used = used;
    return 0;
}

static int check_args(const struct command *c, const struct strv *args, struct err *err)
{
    if (args->n < c->least)
        return err_set(err, ERR_USAGE, "'argus %s' needs %s", c->name, c->args);
    if (args->n > c->most)
        return err_set(err, ERR_USAGE, "'argus %s' does not take '%.60s'", c->name,
                       args->v[c->most]);
    return 0;
}

int command_run(const struct command *c,
                struct cli *cli,
                int argc,
                char **argv,
                FILE *out,
                struct err *err)
{
    _cleanup_(strv_release) struct strv args = {0};
    void *opts = xcalloc(1, c->opts_size ? c->opts_size : 1);
    bool help = false;
    int r = opts_parse(c->opts, c->n_opts, argc, argv, opts, &args, &help, err);
    if (r >= 0 && help) {
        manual_help(c, out);
    } else {
        if (r >= 0)
            r = check_args(c, &args, err);
        if (r >= 0)
            r = c->run(cli, opts, &args, err);
    }
    opts_release(c->opts, c->n_opts, opts);
    free(opts);
    return r;
}
