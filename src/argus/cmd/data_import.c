/* SPDX-License-Identifier: Apache-2.0 */
/* data_import.c - bring a data set onto the shared root, as a job. */
#include "argus/cmd/cmd.h"

#include "argus/datacall.h"

static const struct opt OPTS[] = {DATACALL_IMPORT_OPTS};

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    return datacall_import(cli, "datasets", args->v[0], opts, err);
}

const struct command cmd_data_import = {
    .name = "data import",
    .args = "SOURCE --name NAME",
    .least = 1,
    .most = 1,
    .summary = "bring a data set onto the shared root",
    .text = "SOURCE is hf://owner/name (of the mirror that argus.yaml names as HF_ENDPOINT, or of "
            "--endpoint), https://…, s3://bucket/prefix, ftp://…, sftp://user@host/…, or a path on "
            "the shared root. Prints name@version and the job that does it: it checks every file, "
            "goes on after a cut and after a restart, and is stopped as any job is. Nothing is in "
            "the registry before all of it is there.\n"
            "A token or key that the source needs is a secret: 'argus secret set HF_TOKEN', then "
            "--secret HF_TOKEN.",
    .example = "argus data import hf://openai/gsm8k --name gsm8k --follow\tfrom a mirror\n"
               "argus data import '${SHARED_ROOT}/raw/x' --name x --in-place\tonly look at it",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct datacall_import),
    .run = run,
};
