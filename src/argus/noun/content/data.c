/* SPDX-License-Identifier: Apache-2.0 */
/* data.c - the data sets of the registry. Files from here, an import and a preparation become one
 * by a job; what is in the registry is whole. */
#include "argus/noun/noun.h"

#include <inttypes.h>

#include "argus/job/waiting.h"
#include "argus/model/entry.h"
#include "argus/transfer/filecall.h"
#include "base/digest/hash.h"
#include "core/spec/dataref.h"

/* ---- upload ---- */

struct data_upload_opts {
    const char *name, *project, *pool, *python;
    bool is_common, wait;
    int output;
};

#define UPLOAD(type_, member) .type = (type_), .offset = offsetof(struct data_upload_opts, member)

static const struct opt UPLOAD_OPTS[] = {
    {.name = "name",
     UPLOAD(OPT_TEXT, name),
     .arg = "NAME",
     .doc = "name that the data set gets",
     .to = "body:name",
     .need = "cli_say_called"},
    {.name = "common",
     UPLOAD(OPT_FLAG, is_common),
     .doc = "put it below common/, for everybody",
     .to = "body:common"},
    {.name = "project",
     UPLOAD(OPT_TEXT, project),
     .arg = "NAME",
     .doc = "project of the job that looks at it; its members see the data set",
     .to = "body:project"},
    {.name = "pool",
     UPLOAD(OPT_TEXT, pool),
     .arg = "POOL",
     .doc = "pool in which that job runs",
     .to = "body:pool"},
    {.name = "python",
     UPLOAD(OPT_TEXT, python),
     .arg = "PATH",
     .doc = "Python on the shared root that has pyarrow, if the nodes' has none",
     .to = "body:py_executable"},
    {.name = "wait", UPLOAD(OPT_FLAG, wait), .doc = "return when that job has ended"},
    OPT_OUTPUT(struct data_upload_opts),
};

/* "users/alice/datasets/NAME/<random>": each upload is a version of its own. */
static int data_choose_folder(struct cli *cli,
                              const struct data_upload_opts *o,
                              char **ret,
                              struct err *err)
{
    _cleanup_(json_unrefp) json_t *me = NULL;
    char hex[2 * 4 + 1];
    int r = client_get(cli->client, "/v1/whoami", &me, err);
    if (r < 0)
        return r;
    hash_init();
    (void)random_hex(hex);
    *ret = o->is_common ? xasprintf("common/datasets/%s/upload-%s", o->name, hex)
                        : xasprintf("users/%s/datasets/%s/upload-%s", json_get_str(me, "user", ""),
                                    o->name, hex);
    return 0;
}

static int data_send_files(struct cli *cli,
                           const struct strv *files,
                           const char *folder,
                           struct err *err)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < files->n; i++) {
        _cleanup_(freep) char *path = xasprintf("%s/%s", folder, filecall_name(files->v[i]));
        r = filecall_put(cli, files->v[i], path, FILECALL_PARENTS, NULL, err);
    }
    return r;
}

/* The files become a data set where they are. *ret_job is yours to free(). */
static int data_enter(struct cli *cli,
                      const struct data_upload_opts *o,
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
    _cleanup_(json_unrefp) json_t *body = json_pack("{s:b, s:s}", "in_place", 1, "source", source);
    r = ask_fill(UPLOAD_OPTS, array_len(UPLOAD_OPTS), o, body, err);
    if (r >= 0)
        r = ask_send(cli, "POST", "/v1/datasets", json_incref(body), 0, &answer, err);
    if (r < 0)
        return r;
    *ret_job = xstrdup(json_get_str(answer, "job", ""));
    if (o->output >= OUTPUT_JSON)
        cli_emit(cli, answer, o->output);
    else
        (void)fprintf(cli->out, "%s %s\n", json_get_str(answer, "ref", "?"), *ret_job);
    return 0;
}

static int data_upload(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct data_upload_opts *o = opts;
    _cleanup_(freep) char *folder = NULL;
    _cleanup_(freep) char *job = NULL;
    _cleanup_(strv_release) struct strv ids = {0};
    int64_t removed;
    int r = ask_check(UPLOAD_OPTS, array_len(UPLOAD_OPTS), opts, err);
    if (r == 0)
        r = dataref_check_name("data set", o->name, err);
    if (r == 0)
        r = cli_open(cli, err);
    if (r == 0)
        r = data_choose_folder(cli, o, &folder, err);
    if (r < 0)
        return r;
    r = data_send_files(cli, args, folder, err);
    if (r == 0)
        r = data_enter(cli, o, folder, &job, err);
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

/* ---- import and prepare ---- */

static int data_import(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    return entry_import(cli, "/v1/datasets", args->v[0], opts, err);
}

struct data_preparation {
    const char *with, *as, *project, *pool, *python;
    struct strv args, secrets;
    bool is_common, follow, wait;
    int output;
};

#define PREPARE(type_, member) .type = (type_), .offset = offsetof(struct data_preparation, member)

static const struct opt PREPARE_OPTS[] = {
    {.name = "with",
     PREPARE(OPT_TEXT, with),
     .arg = "WHAT",
     .doc = "gsm8k, or the path of a script on the shared root",
     .to = "body:with",
     .need = "cli_say_with"},
    {.name = "as",
     PREPARE(OPT_TEXT, as),
     .arg = "NAME",
     .doc = "name that the data set gets [NAME-verl]",
     .to = "body:as"},
    {.name = "arg",
     PREPARE(OPT_LIST, args),
     .arg = "TEXT",
     .doc = "one more argument of the script; {input} and {output} are replaced",
     .to = "body:args"},
    {.name = "secret",
     PREPARE(OPT_LIST, secrets),
     .arg = "NAME",
     .doc = "secret that the script needs; may be given again",
     .to = "body:secrets"},
    {.name = "project",
     PREPARE(OPT_TEXT, project),
     .arg = "NAME",
     .doc = "project of the job",
     .to = "body:project"},
    {.name = "pool",
     PREPARE(OPT_TEXT, pool),
     .arg = "POOL",
     .doc = "pool in which the job runs",
     .to = "body:pool"},
    {.name = "python",
     PREPARE(OPT_TEXT, python),
     .arg = "PATH",
     .doc = "Python on the shared root that has pyarrow, if the nodes' has none",
     .to = "body:py_executable"},
    {.name = "common",
     PREPARE(OPT_FLAG, is_common),
     .doc = "for everybody, below common/",
     .to = "body:common"},
    {.letter = 'f', .name = "follow", PREPARE(OPT_FLAG, follow), .doc = "print the log to the end"},
    {.name = "wait", PREPARE(OPT_FLAG, wait), .doc = "return when the job has ended"},
    OPT_OUTPUT(struct data_preparation),
};

static int data_prepare(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct data_preparation *o = opts;
    _cleanup_(json_unrefp) json_t *answer = NULL;
    _cleanup_(json_unrefp) json_t *body = json_pack("{s:s}", "name", args->v[0]);
    int r = ask_check(PREPARE_OPTS, array_len(PREPARE_OPTS), opts, err);
    if (r >= 0)
        r = ask_fill(PREPARE_OPTS, array_len(PREPARE_OPTS), opts, body, err);
    if (r >= 0)
        r = cli_open(cli, err);
    if (r >= 0)
        r = ask_send(cli, "POST", "/v1/datasets:prepare", json_incref(body), 0, &answer, err);
    return r < 0 ? r : entry_follow(cli, answer, o->output, o->follow, o->wait, err);
}

/* ---- the rows ---- */

static const struct opt LS_OPTS[] = {LISTING_OPTS};
static const struct opt SHOW_OPTS[] = {OPT_OUTPUT(struct listing_opts)};

/* "rl,sft": what it is fit for. */
static void data_fit(struct table *t, const json_t *e, const struct when *w)
{
    _cleanup_(buf_release) struct buf out = BUF_INIT(256);
    const char *key;
    json_t *v;
    (void)w;
    json_object_foreach (json_object_get(e, "fit"), key, v)
        if (json_get_bool(v, "fit", false))
            (void)buf_addf(&out, "%s%.20s", out.len ? "," : "", key); /* cut: fine */
    table_add(t, STYLE_PLAIN, buf_str(&out));
}

static const struct column DATASETS[] = {
    {.title = "say_name", .flags = COLUMN_NAME, .least = 16, .key = "ref"},
    {.title = "say_owner", .flags = COLUMN_FLEX, .least = 8, .draw = entry_owner},
    {.title = "say_state", .draw = entry_state},
    {.title = "say_rows", .flags = COLUMN_RIGHT, .key = "rows", .as = CELL_VALUE},
    {.title = "say_size", .flags = COLUMN_RIGHT, .draw = entry_size},
    {.title = "say_fit", .flags = COLUMN_FLEX, .least = 8, .draw = data_fit},
    {.title = "say_made", .rank = 1, .key = "created_at", .as = CELL_TIME},
    {.title = "say_source", .flags = COLUMN_FLEX, .least = 12, .rank = 2, .key = "source"},
};

static const struct opt RM_OPTS[] = {ENTRY_DRY_RUN};

static const struct command DATA_COMMANDS[] = {
    {
        .name = "data upload",
        .args = "FILE… --name NAME",
        .least = 1,
        .most = 1000,
        .summary = "make a data set of files from here",
        .text = "Brings the files below your datasets/, or below common/ with --common, and "
                "registers them: a job looks at columns and rows. A cut connection is made "
                "again, and the same command goes on where an earlier one ended.",
        .example =
            "argus data upload train.parquet test.parquet --name gsm8k --wait\ttwo files, one set",
        OPTS(UPLOAD_OPTS),
        .opts_size = sizeof(struct data_upload_opts),
        .run = data_upload,
    },
    {
        .name = "data import",
        .args = "SOURCE --name NAME",
        .least = 1,
        .most = 1,
        .summary = "bring a data set onto the shared root",
        .text = "SOURCE is hf://owner/name (of the mirror that argus.yaml names as "
                "HF_ENDPOINT, or of --endpoint), https://…, s3://bucket/prefix, ftp://…, "
                "sftp://user@host/…, or a path on the shared root. Prints name@version and "
                "the job that does it: it checks every file, goes on after a cut and after a "
                "restart, and is stopped as any job is. Nothing is in the registry before "
                "all of it is there.\n"
                "A token or key that the source needs is a secret: 'argus secret set "
                "HF_TOKEN', then --secret HF_TOKEN.",
        .example = "argus data import hf://openai/gsm8k --name gsm8k --follow\tfrom a mirror\n"
                   "argus data import '${SHARED_ROOT}/raw/x' --name x --in-place\tonly look at it",
        .opts = ENTRY_IMPORT_OPTS,
        .n_opts = ENTRY_IMPORT_OPT_COUNT,
        .opts_size = sizeof(struct entry_import),
        .run = data_import,
    },
    {
        .name = "data prepare",
        .args = "NAME --with gsm8k|SCRIPT",
        .least = 1,
        .most = 1,
        .summary = "make a data set that verl reads",
        .text = "A job without GPU reads the registered data set NAME and writes verl's "
                "parquet, which is checked and registered. 'gsm8k' takes rows of question "
                "and answer; a script of verl's examples/data_preprocess runs unchanged: it "
                "is given --local_dataset_path and --local_save_dir (or --local_dir) as far "
                "as it knows them.",
        .example =
            "argus data prepare gsm8k --with gsm8k --as gsm8k-verl --follow\tthe built-in one",
        OPTS(PREPARE_OPTS),
        .opts_size = sizeof(struct data_preparation),
        .run = data_prepare,
    },
    {
        .name = "data ls",
        .args = "",
        .summary = "list the data sets",
        .text = "Lists common data sets, your own, and those of your projects; admins see all. An "
                "import under way is shown with its progress.",
        OPTS(LS_OPTS),
        .ask = {.path = "/v1/datasets",
                .table = {.key = "datasets", COLUMNS(DATASETS), .none = "say_no_data"}},
    },
    {
        .name = "data show",
        .args = "NAME",
        .least = 1,
        .most = 1,
        .summary = "show one data set",
        .text = "Shows its columns, some rows, and which workloads (rl, sft, eval) it is fit for, "
                "or which column it lacks. NAME is name, name@version, or owner:name; without a "
                "version, the newest that is ready is shown.",
        OPTS(SHOW_OPTS),
        .ask = {.path = "/v1/datasets/{}", .print = entry_print},
    },
    {
        .name = "data share",
        .args = "NAME --user USER|--project PROJECT",
        .least = 1,
        .most = 1,
        .summary = "let others see and use a data set",
        .text = ENTRY_SHARE_TEXT,
        .example = "argus data share gsm8k --user bob --project rlhf\tone more user, one project\n"
                   "argus data share gsm8k --off\tnobody's but yours again",
        .opts = ENTRY_SHARE_OPTS,
        .n_opts = ENTRY_SHARE_OPT_COUNT,
        .ask = {.method = "POST",
                .path = "/v1/datasets/{}:share",
                .done = "say_done_changed",
                .subject = "{ref}"},
    },
    {
        .name = "data rm",
        .args = "NAME",
        .least = 1,
        .most = 1,
        .summary = "remove one version of a data set",
        .text =
            "The files of the data set go too, unless it was registered where they lay. Refused "
            "while a job that is not "
            "over reads it. NAME without a version is the newest data set of that name. With --dry-run it lists the "
            "jobs, services, pipelines and presets that use it.",
        OPTS(RM_OPTS),
        .ask = {.method = "DELETE",
                .path = "/v1/datasets/{}",
                .print_dry = entry_print_users,
                .done = "say_done_removed",
                .subject = "{ref}"},
    },
};

NOUN(data, DATA_COMMANDS);
