/* SPDX-License-Identifier: Apache-2.0 */
/* retry.c - submit a job that has ended once more. */
#include "argus/cmd/cmd.h"

#include "argus/jobview.h"
#include "argus/planview.h"
#include "argus/text.h"
#include "base/hash.h"
#include "base/str.h"

enum { TRIES = 5, BODY_MAX = 4096, LINE_MAX = 1 << 14 };

struct retry_opts {
    bool apply_fix, dry_run;
    const char *from;
    int output;
};

#define ROW(type_, member) .type = (type_), .offset = offsetof(struct retry_opts, member)

static const struct opt OPTS[] = {
    {.name = "apply-fix",
     ROW(OPT_FLAG, apply_fix),
     .doc = "with the change of the spec that the finding proposes"},
    {.name = "from",
     ROW(OPT_TEXT, from),
     .arg = "CKPT",
     .doc = "go on from this checkpoint of the job: a step such as 20, or latest"},
    {.letter = 'n', .name = "dry-run", ROW(OPT_FLAG, dry_run), .doc = "check only, start nothing"},
    OPT_OUTPUT(struct retry_opts),
};

/* "- key: old" and "+ key: new", as talk. */
static void talk_changes(const struct cli *cli, const json_t *answer)
{
    size_t i;
    json_t *c;
    json_array_foreach (json_get_array(answer, "changes"), i, c) {
        const char *const marks[] = {"old", "new"};
        for (size_t k = 0; k < array_len(marks); k++) {
            const char *value = json_get_str(c, marks[k], NULL);
            _cleanup_(buf_release) struct buf line = BUF_INIT(LINE_MAX);
            text_clean(&line, str_or(value, "")); /* a longer one is cut */
            if (value)
                cli_talk(cli, "%c %s: %s", k ? '+' : '-', jobview_str(c, "key"), buf_str(&line));
        }
    }
}

static int post(struct cli *cli,
                const struct retry_opts *o,
                const char *id,
                json_t **ret,
                struct err *err)
{
    unsigned char bytes[16];
    char key[2 * sizeof(bytes) + 1];
    _cleanup_(buf_release) struct buf body = BUF_INIT(BODY_MAX);
    _cleanup_(freep) char *path = cli_job_path(id, o->dry_run ? ":retry?dry_run=1" : ":retry");
    struct jout j = jout_begin(&body);
    jout_open(&j, NULL, '{');
    if (o->apply_fix)
        jout_bool(&j, "apply_fix", true);
    if (o->from)
        jout_str(&j, "from", o->from);
    jout_close(&j, '}');
    if (body.failed)
        return err_set(err, ERR_USAGE, "'--from' is too long");
    hash_init();
    random_bytes(bytes, sizeof(bytes));
    struct request request = {.method = "POST",
                              .path = path,
                              .content_type = "application/json",
                              .body = buf_str(&body),
                              .body_len = body.len,
                              .idempotency_key = str_hex(bytes, sizeof(bytes), key),
                              .tries = TRIES};
    return client_json(cli->client, &request, ret, err);
}

static int report(struct cli *cli,
                  const struct retry_opts *o,
                  const json_t *answer,
                  struct err *err)
{
    const char *id = json_get_str(answer, "id", NULL);
    if (o->output >= OUTPUT_JSON)
        cli_emit(cli, answer, o->output);
    else
        talk_changes(cli, answer);
    if (o->dry_run && o->output < OUTPUT_JSON)
        planview_print(cli, "the retry", answer);
    if (o->dry_run)
        return planview_is_good(answer)
                   ? 0
                   : err_set(err, ERR_BAD_SPEC, "the retry would fail in its trial");
    if (o->output >= OUTPUT_JSON)
        return 0;
    if (!id)
        return err_set(err, ERR_INTERNAL, "the server did not name the job");
    (void)fprintf(cli->out, "%s\n", id);
    (void)fflush(cli->out); /* ferror(out) tells at the end */
    cli_say(cli, MSG_NEXT_STEPS, id, id, id);
    return 0;
}

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct retry_opts *o = opts;
    _cleanup_(json_unrefp) json_t *job = NULL, *answer = NULL;
    int r = cli_open(cli, err);
    if (r >= 0)
        r = cli_get_job(cli, args->v[0], &job, err);
    if (r >= 0)
        r = post(cli, o, json_get_str(job, "id", args->v[0]), &answer, err);
    return r < 0 ? r : report(cli, o, answer, err);
}

const struct command cmd_retry = {
    .name = "retry",
    .args = "ID",
    .least = 1,
    .most = 1,
    .summary = "submit a job that has ended once more",
    .text =
        "Prints the id of the new job: it has the spec of the old one, belongs to the same user "
        "and writes into a directory of its own. With --apply-fix the spec is changed as the "
        "finding of the failure proposes, and every change is shown; without a proposal it is "
        "refused. With --from the training goes on from a finished checkpoint of the old job, "
        "else it begins anew.",
    .example = "argus retry --apply-fix grpo-7\twith the fix of 'argus diagnose grpo-7'\n"
               "argus retry --from latest grpo-7\tgo on from its newest checkpoint",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct retry_opts),
    .run = run,
};
