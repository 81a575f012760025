/* SPDX-License-Identifier: Apache-2.0 */
/* data_prepare.c - make a data set that verl reads from a raw one, as a job. */
#include "argus/cmd/cmd.h"

#include "argus/datacall.h"

#define ROW(type_, member) .type = (type_), .offset = offsetof(struct datacall_preparation, member)

static const struct opt OPTS[] = {
    {.name = "with",
     ROW(OPT_TEXT, with),
     .arg = "WHAT",
     .doc = "gsm8k, or the path of a script on the shared root"},
    {.name = "as", ROW(OPT_TEXT, as), .arg = "NAME", .doc = "what it will be called [NAME-verl]"},
    {.name = "arg",
     ROW(OPT_LIST, args),
     .arg = "TEXT",
     .doc = "one more argument of the script; {input} and {output} are replaced"},
    {.name = "secret", ROW(OPT_LIST, secrets), .arg = "NAME", .doc = "that the script needs"},
    {.name = "project", ROW(OPT_TEXT, project), .arg = "NAME", .doc = "of the job"},
    {.name = "pool", ROW(OPT_TEXT, pool), .arg = "POOL", .doc = "where the job runs"},
    {.name = "python",
     ROW(OPT_TEXT, python),
     .arg = "PATH",
     .doc = "Python on the shared root that has pyarrow, if the nodes' has none"},
    {.name = "common", ROW(OPT_FLAG, is_common), .doc = "for everybody, below common/"},
    {.letter = 'f', .name = "follow", ROW(OPT_FLAG, follow), .doc = "print the log to the end"},
    {.name = "wait", ROW(OPT_FLAG, wait), .doc = "return when the job has ended"},
    OPT_OUTPUT(struct datacall_preparation),
};

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    return datacall_prepare(cli, args->v[0], opts, err);
}

const struct command cmd_data_prepare = {
    .name = "data prepare",
    .args = "NAME --with gsm8k|SCRIPT",
    .least = 1,
    .most = 1,
    .summary = "make a data set that verl reads",
    .text = "A job without GPU reads the registered data set NAME and writes verl's parquet, which "
            "is checked and registered. 'gsm8k' takes rows of question and answer; a script of "
            "verl's examples/data_preprocess runs unchanged: it is given --local_dataset_path and "
            "--local_save_dir (or --local_dir) as far as it knows them.",
    .example = "argus data prepare gsm8k --with gsm8k --as gsm8k-verl --follow\tthe built-in one",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct datacall_preparation),
    .run = run,
};
