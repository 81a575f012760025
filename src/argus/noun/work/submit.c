/* SPDX-License-Identifier: Apache-2.0 */
/* submit.c - hand in a job. */
#include "argus/noun/noun.h"

#include "argus/job/localdir.h"
#include "argus/job/planview.h"
#include "argus/job/submission.h"
#include "argus/job/waiting.h"
#include "argus/log/follow.h"
#include "base/message.h"
#include "core/job/family.h"

struct submit_opts {
    bool dry_run, suggest, require_fit, no_trial, smoke, follow, wait;
    const char *from, *note;
    struct submission_wish wish;
    int output;
};

enum { SUBMIT_PATH_MAX = 4096 }; /* a note fits three times over */

#define SUBMIT_ROW(type_, member) .type = (type_), .offset = offsetof(struct submit_opts, member)

static const struct opt SUBMIT_OPTS[] = {
    {.letter = 'n',
     .name = "dry-run",
     SUBMIT_ROW(OPT_FLAG, dry_run),
     .doc = "check only, start nothing"},
    {.name = "suggest",
     SUBMIT_ROW(OPT_FLAG, suggest),
     .doc = "print what would serve the job better, as keys to set, and start nothing"},
    {.name = "require-fit",
     SUBMIT_ROW(OPT_FLAG, require_fit),
     .doc = "refuse a job that is larger than the cluster is now, instead of queueing it"},
    {.name = "no-trial",
     SUBMIT_ROW(OPT_FLAG, no_trial),
     .doc = "skip the trial run before the job"},
    {.name = "smoke",
     SUBMIT_ROW(OPT_FLAG, smoke),
     .doc = "the same spec with 1 GPU, 2 steps and no checkpoint: does it run at all"},
    {.letter = 'f',
     .name = "follow",
     SUBMIT_ROW(OPT_FLAG, follow),
     .doc = "print the log to the end"},
    {.name = "wait", SUBMIT_ROW(OPT_FLAG, wait), .doc = "return when the job has ended"},
    {.name = "preset",
     SUBMIT_ROW(OPT_TEXT, wish.preset),
     .arg = "NAME",
     .doc = "a spec with holes: FILE and --set fill them, other keys go before its own"},
    {.name = "set",
     SUBMIT_ROW(OPT_LIST, wish.set),
     .arg = "KEY=VALUE",
     .doc = "set a value in the spec before it is sent, or fill a hole: a.b=1 sets b below a, "
            "overrides.KEY=1 sets one Hydra override; may be given again"},
    {.name = "from",
     SUBMIT_ROW(OPT_TEXT, from),
     .arg = "ID",
     .doc = "the job whose spec this one was made of: 'argus family' shows it as that one's fork"},
    {.name = "note",
     SUBMIT_ROW(OPT_TEXT, note),
     .arg = "TEXT",
     .doc = "why it is made, in one line"},
    OPT_OUTPUT(struct submit_opts),
};

static int submit_stay(struct cli *cli,
                       const struct submit_opts *o,
                       const char *id,
                       struct err *err)
{
    if (o->follow) {
        _cleanup_(logout_release) struct logout logout = {0};
        int r = logout_init(&logout, cli->out, cli->term.is_tty, NULL, err);
        struct follow_opts f = {.query = "", .logout = &logout};
        return r < 0 ? r : follow_run(cli, id, &f, err);
    }
    if (!o->wait)
        return 0;
    _cleanup_(strv_release) struct strv ids = {0};
    strv_add(&ids, id);
    return waiting_run(cli, &ids, 0, o->output, err);
}

static int submit_report(struct cli *cli,
                         const struct submit_opts *o,
                         const char *file,
                         const json_t *answer,
                         struct err *err)
{
    bool is_asked = o->dry_run || o->suggest;
    if (o->output >= OUTPUT_JSON && (is_asked || !o->wait))
        cli_emit(cli, answer, o->output);
    else if (o->dry_run)
        planview_print(cli, file, answer);
    if (o->suggest && o->output < OUTPUT_JSON)
        planview_advice(cli, file, answer);
    if (is_asked)
        return planview_is_good(answer) ? 0
                                        : message_refuse(err, ERR_BAD_SPEC, "cli_trial_fails",
                                                         MESSAGE_ARGS(MESSAGE_STR("path", file)));
    const char *id = json_get_str(answer, "id", NULL);
    if (!id)
        return message_refuse(err, ERR_INTERNAL, "cli_job_not_named", MESSAGE_NO_ARGS);
    if (o->output < OUTPUT_JSON)
        (void)fprintf(cli->out, "%s\n", id);
    (void)fflush(cli->out); /* ferror(out) tells at the end */
    cli_say(cli, "say_next_steps", id, id, id);
    return submit_stay(cli, o, id, err);
}

static void submit_make_path(const struct submit_opts *o, const char *note, struct buf *path)
{
    const struct {
        const char *name;
        bool given;
    } flags[] = {{"dry_run", o->dry_run},
                 {"suggest", o->suggest},
                 {"require_fit", o->require_fit},
                 {"no_trial", o->no_trial},
                 {"smoke", o->smoke}};
    (void)buf_adds(path, "/v1/jobs"); /* what does not fit is told by the caller */
    for (size_t i = 0; i < array_len(flags); i++)
        url_query(path, flags[i].name, flags[i].given ? "1" : NULL);
    url_query(path, "from", o->from);
    url_query(path, "note", note);
}

static int submit_run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct submit_opts *o = opts;
    const char *note = NULL;
    _cleanup_(submission_release) struct submission s = {0};
    _cleanup_(buf_release) struct buf path = BUF_INIT(SUBMIT_PATH_MAX);
    _cleanup_(json_unrefp) json_t *answer = NULL;
    if (o->follow && (o->output >= OUTPUT_JSON || o->wait))
        return message_refuse(err, ERR_USAGE, "cli_follow_alone", MESSAGE_NO_ARGS);
    if (!args->n && !o->wish.preset)
        return message_refuse(err, ERR_USAGE, "cli_file_or_preset", MESSAGE_NO_ARGS);
    if (family_check_note(o->note, &note, err) < 0)
        return ERR_BAD_REQUEST;
    submit_make_path(o, note, &path);
    if (path.failed)
        return message_refuse(err, ERR_USAGE, "cli_from_long", MESSAGE_NO_ARGS);
    const char *file = args->n ? args->v[0] : NULL;
    int r = submission_read(&s, file, &o->wish, err);
    if (r >= 0)
        r = cli_open(cli, err);
    if (r >= 0)
        r = localdir_send(cli, &s, file, &o->wish.set, err);
    if (r >= 0)
        r = submission_post(&s, cli, buf_str(&path), &answer, err);
    return r < 0 ? r : submit_report(cli, o, s.name, answer, err);
}

static const struct command SUBMIT_COMMANDS[] = {
    {
        .name = "submit",
        .args = "[FILE]",
        .least = 0,
        .most = 1,
        .summary = "submit a job",
        .text = "Sends the spec in FILE (YAML; - is stdin) and prints the job's id. Every problem "
                "of the spec is told at once, with its place in the file. However often a "
                "connection breaks, one submit makes one job.\n"
                "With --preset, or 'preset:' in FILE, the rest of the spec is what the preset "
                "has; 'argus preset show NAME' tells its holes.\n"
                "A working_dir that is a directory here ('./code', seen from FILE, or with --set "
                "from the current directory) goes along as a snapshot: what git would add, and "
                "only what the server does not have yet.\n"
                "With --follow the log comes after the id, and until there is one, state and "
                "reason on stderr; the exit status is the job's. Ctrl-C detaches and never stops "
                "the job (exit status 0).",
        .example =
            "argus submit --follow examples/grpo.yaml\tsubmit and watch\n"
            "argus submit --preset grpo-7b --set model_id=M --set train_file=T --set val_file=V\t"
            "without a file\n"
            "argus submit --set nnodes=2 --dry-run job.yaml\tcheck a variant\n"
            "argus submit --smoke --wait job.yaml\tsee whether it runs at all\n"
            "argus submit --from grpo-7 --note 'half the rate' job.yaml\ta fork of another job",
        .opts = SUBMIT_OPTS,
        .n_opts = array_len(SUBMIT_OPTS),
        .opts_size = sizeof(struct submit_opts),
        .run = submit_run,
    },
};

NOUN(submit, SUBMIT_COMMANDS);
