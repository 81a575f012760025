/* SPDX-License-Identifier: Apache-2.0 */
/* data_upload.c - files from here become a data set. */
#include "argus/cmd/cmd.h"

#include "argus/filecall.h"
#include "argus/people.h"
#include "argus/waiting.h"
#include "base/hash.h"
#include "base/str.h"
#include "core/dataref.h"

struct upload_opts {
    const char *name, *project, *pool, *python;
    bool is_common, wait;
    int output;
};

#define ROW(type_, member) .type = (type_), .offset = offsetof(struct upload_opts, member)

static const struct opt OPTS[] = {
    {.name = "name", ROW(OPT_TEXT, name), .arg = "NAME", .doc = "what it will be called"},
    {.name = "common", ROW(OPT_FLAG, is_common), .doc = "for everybody, below common/"},
    {.name = "project",
     ROW(OPT_TEXT, project),
     .arg = "NAME",
     .doc = "of the job that looks at it; its members see the data set"},
    {.name = "pool", ROW(OPT_TEXT, pool), .arg = "POOL", .doc = "where that job runs"},
    {.name = "python",
     ROW(OPT_TEXT, python),
     .arg = "PATH",
     .doc = "Python on the shared root that has pyarrow, if the nodes' has none"},
    {.name = "wait", ROW(OPT_FLAG, wait), .doc = "return when that job has ended"},
    OPT_OUTPUT(struct upload_opts),
};

/* "users/alice/datasets/NAME/<random>": each upload is a version of its own. */
static int choose_folder(struct cli *cli, const struct upload_opts *o, char **ret, struct err *err)
{
    _cleanup_(json_unrefp) json_t *me = NULL;
    unsigned char bytes[4];
    char hex[2 * sizeof(bytes) + 1];
    int r = client_get(cli->client, "/v1/whoami", &me, err);
    if (r < 0)
        return r;
    hash_init();
    random_bytes(bytes, sizeof(bytes));
    (void)str_hex(bytes, sizeof(bytes), hex);
    *ret = o->is_common ? xasprintf("common/datasets/%s/upload-%s", o->name, hex)
                        : xasprintf("users/%s/datasets/%s/upload-%s", json_get_str(me, "user", ""),
                                    o->name, hex);
    return 0;
}

static int send_all(struct cli *cli, const struct strv *files, const char *folder, struct err *err)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < files->n; i++) {
        _cleanup_(freep) char *path = xasprintf("%s/%s", folder, filecall_name(files->v[i]));
        r = filecall_put(cli, files->v[i], path, FILECALL_PARENTS, NULL, err);
    }
    return r;
}

/* The files become a data set where they are. *ret_job is yours to free(). */
static int enter(struct cli *cli,
                 const struct upload_opts *o,
                 const char *folder,
                 char **ret_job,
                 struct err *err)
{
    _cleanup_(json_unrefp) json_t *server = NULL;
    _cleanup_(json_unrefp) json_t *answer = NULL;
    int r = client_get(cli->client, "/v1/version", &server, err);
    if (r < 0)
        return r;
    _cleanup_(freep) char *source =
        xasprintf("%s/%s", json_get_str(server, "shared_root", ""), folder);
    json_t *body = json_pack("{s:b}", "in_place", 1);
    people_set_text(body, "source", source);
    people_set_text(body, "name", o->name);
    people_set_text(body, "project", o->project);
    people_set_text(body, "pool", o->pool);
    people_set_text(body, "py_executable", o->python);
    if (o->is_common)
        (void)json_object_set_new(body, "common", json_true()); /* fails for lack of memory */
    r = people_call(cli, "POST", "datasets", NULL, "", body, &answer, err);
    if (r < 0)
        return r;
    *ret_job = xstrdup(json_get_str(answer, "job", ""));
    if (o->output >= OUTPUT_JSON)
        cli_emit(cli, answer, o->output);
    else
        (void)fprintf(cli->out, "%s %s\n", json_get_str(answer, "ref", "?"), *ret_job);
    return 0;
}

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct upload_opts *o = opts;
    _cleanup_(freep) char *folder = NULL;
    _cleanup_(freep) char *job = NULL;
    _cleanup_(strv_release) struct strv ids = {0};
    int64_t removed;
    if (!o->name)
        return err_set(err, ERR_USAGE, "say what it will be called: --name NAME");
    int r = dataref_check_name("data set", o->name, err);
    if (r == 0)
        r = cli_open(cli, err);
    if (r == 0)
        r = choose_folder(cli, o, &folder, err);
    if (r < 0)
        return r;
    r = send_all(cli, args, folder, err);
    if (r == 0)
        r = enter(cli, o, folder, &job, err);
    if (r < 0) {
        (void)!filecall_remove(cli, folder, true, &removed, NULL); /* nothing half-made stays */
        return r;
    }
    if (!o->wait)
        return 0;
    (void)fflush(cli->out); /* what follows may last */
    strv_add(&ids, job);
    return waiting_run(cli, &ids, 0, OUTPUT_TABLE, err);
}

const struct command cmd_data_upload = {
    .name = "data upload",
    .args = "FILE… --name NAME",
    .least = 1,
    .most = 1000,
    .summary = "make a data set of files from here",
    .text = "Brings the files below your datasets/, or below common/ with --common, and registers "
            "them: a job looks at columns and rows. A cut connection is made again, and the same "
            "command goes on where an earlier one ended.",
    .example =
        "argus data upload train.parquet test.parquet --name gsm8k --wait\ttwo files, one set",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct upload_opts),
    .run = run,
};
