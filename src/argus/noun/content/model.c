/* SPDX-License-Identifier: Apache-2.0 */
/* model.c - the models of the registry. */
#include <stdlib.h>
#include <string.h>

#include "argus/model/entry.h"
#include "argus/model/lineage.h"
#include "argus/noun/noun.h"

static const struct opt LS_OPTS[] = {LISTING_OPTS};
static const struct opt SHOW_OPTS[] = {OPT_OUTPUT(struct listing_opts)};

static void model_parameters(struct table *t, const json_t *model, const struct when *w)
{
    double parameters = json_get_real(model, "parameters", 0);
    (void)w;
    if (parameters > 0)
        table_addf(t, STYLE_PLAIN, "%.3gB", parameters / 1e9);
    else
        table_add(t, STYLE_PLAIN, NULL);
}

static const struct column MODELS[] = {
    {.title = "say_name", .flags = COLUMN_NAME, .least = 16, .key = "ref"},
    {.title = "say_owner", .flags = COLUMN_FLEX, .least = 8, .draw = entry_owner},
    {.title = "say_state", .draw = entry_state},
    {.title = "say_size", .flags = COLUMN_RIGHT, .draw = entry_size},
    {.title = "say_parameters", .flags = COLUMN_RIGHT, .draw = model_parameters},
    {.title = "say_architecture",
     .flags = COLUMN_FLEX,
     .least = 10,
     .rank = 3,
     .key = "architecture"},
    {.title = "say_made", .rank = 1, .key = "created_at", .as = CELL_TIME},
    {.title = "say_source", .flags = COLUMN_FLEX, .least = 12, .rank = 2, .key = "source"},
};

static int model_import(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    return entry_import(cli, "/v1/models", args->v[0], opts, err);
}

static const struct opt RM_OPTS[] = {ENTRY_DRY_RUN};

static const struct command MODEL_COMMANDS[] = {
    {
        .name = "model import",
        .args = "SOURCE --name NAME",
        .least = 1,
        .most = 1,
        .summary = "bring a model onto the shared root",
        .text = "SOURCE is hf://owner/name (of the mirror that argus.yaml names as "
                "HF_ENDPOINT, or of --endpoint), https://…, s3://bucket/prefix, ftp://…, "
                "sftp://user@host/…, or a path on the shared root. Prints name@version and "
                "the job that does it: it checks every file, goes on after a cut and after a "
                "restart, and is stopped as any job is. Nothing is in the registry before "
                "all of it is there.\n"
                "A token or key that the source needs is a secret: 'argus secret set "
                "HF_TOKEN', then --secret HF_TOKEN.",
        .example =
            "argus model import hf://Qwen/Qwen2.5-0.5B-Instruct --name qwen-0.5b --common\tfor all",
        .opts = ENTRY_IMPORT_OPTS,
        .n_opts = ENTRY_IMPORT_OPT_COUNT,
        .opts_size = sizeof(struct entry_import),
        .run = model_import,
    },
    {
        .name = "model ls",
        .args = "",
        .summary = "list the models",
        .text = "Lists common models, your own, and those of your projects; admins see all. An "
                "import under way is shown with its progress.",
        OPTS(LS_OPTS),
        .ask = {.path = "/v1/models",
                .table = {.key = "models", COLUMNS(MODELS), .none = "say_no_models"}},
    },
    {
        .name = "model show",
        .args = "NAME",
        .least = 1,
        .most = 1,
        .summary = "show one model",
        .text = "Shows where the model lies, how large it is, and what it was made of. NAME is "
                "name, name@version, or owner:name; without a version, the newest that is ready "
                "is shown. 'made by' is what argusd itself recorded of the job whose checkpoint "
                "it is, 'said to be' what its importer said.",
        OPTS(SHOW_OPTS),
        .ask = {.path = "/v1/models/{}", .print = entry_print},
    },
    {
        .name = "model lineage",
        .args = "NAME|ENDPOINT",
        .least = 1,
        .most = 1,
        .summary = "trace a model back to what it was made of, and on to who uses it",
        .text =
            "Goes from the model over the merge and the training to the code, the data and the "
            "base model, each with its hash, and on from the base model, as far as it is known. "
            "The chain is what argusd itself recorded; 'said' marks what only the importer says. "
            "Then follow, behind '->', the services, runs of pipelines, jobs and models that use "
            "the model, and behind '<-' the step that published it. "
            "ENDPOINT is a service's, or service/NAME: the chain begins at the version that "
            "answers there.",
        .example = "argus model lineage my-sft\tthe chain of the newest version\n"
                   "argus model lineage service/sums\tfrom what answers back to the data\n"
                   "argus model lineage my-sft@2 -o json\tthe same for a program",
        OPTS(SHOW_OPTS),
        .opts_size = sizeof(struct listing_opts),
        .run = lineage_run,
    },
    {
        .name = "model share",
        .args = "NAME --user USER|--project PROJECT",
        .least = 1,
        .most = 1,
        .summary = "let others see and use a model",
        .text = ENTRY_SHARE_TEXT,
        .example =
            "argus model share qwen-0.5b --user bob --project rlhf\tone more user, one project\n"
            "argus model share qwen-0.5b --off\tnobody's but yours again",
        .opts = ENTRY_SHARE_OPTS,
        .n_opts = ENTRY_SHARE_OPT_COUNT,
        .ask = {.method = "POST",
                .path = "/v1/models/{}:share",
                .done = "say_done_changed",
                .subject = "{ref}"},
    },
    {
        .name = "model rm",
        .args = "NAME",
        .least = 1,
        .most = 1,
        .summary = "remove one version of a model",
        .text =
            "The weights of the model go too, unless it was registered where they lay. Refused while a job that is not "
            "over reads it. NAME without a version is the newest model of that name. With --dry-run it lists the "
            "jobs, services, pipelines and presets that use it.",
        OPTS(RM_OPTS),
        .ask = {.method = "DELETE",
                .path = "/v1/models/{}",
                .print_dry = entry_print_users,
                .done = "say_done_removed",
                .subject = "{ref}"},
    },
};

NOUN(model, MODEL_COMMANDS);
