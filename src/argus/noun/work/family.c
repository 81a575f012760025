/* SPDX-License-Identifier: Apache-2.0 */
/* family.c - the jobs that came of one another as a tree, and the note on a job.
 *
 * Two or three lines each: the job; what it changed of its parent; the note. A branch goes no
 * further to the right than half a line: what is deeper says how deep it is. */
#include "argus/noun/noun.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "argus/job/jobview.h"
#include "argus/show/member.h"
#include "argus/show/text.h"
#include "base/message.h"
#include "core/job/family.h"

enum { FAMILY_LINE_MAX = 1 << 14, FAMILY_WIDTH = 80, FAMILY_STEP = 3, FAMILY_DEPTH_MAX = 13 };

static const struct opt FAMILY_OPTS[] = {LISTING_OPTS};

/* What stands before a line: "│  ├─ " of the job, "│  │  " of the lines below it. */
struct branch {
    const json_t *jobs; /* all of them, each behind its parent */
    size_t n;
    bool *is_last; /* of each: no sister follows */
    size_t *parent;
};

static size_t family_depth(const struct branch *b, size_t i)
{
    return (size_t)json_get_int(json_array_get(b->jobs, i), "depth", 0);
}

/* Parents by depth: the last job that was one less deep. A depth that jumps is one that fits. */
static void branch_init(struct branch *b, const json_t *jobs)
{
    *b = (struct branch){.jobs = jobs, .n = json_array_size(jobs)};
    size_t *open = xcalloc(b->n + 1, sizeof(*open)), n_open = 0; /* the line to the job before */
    b->is_last = xcalloc(b->n + 1, sizeof(*b->is_last));
    b->parent = xcalloc(b->n + 1, sizeof(*b->parent));
    size_t *newest = xcalloc(b->n + 1, sizeof(*newest)); /* child of each, 0: none */
    for (size_t i = 0; i < b->n; i++) {
        size_t depth = family_depth(b, i);
        depth = depth > n_open ? n_open : depth;
        b->parent[i] = depth ? open[depth - 1] : i;
        b->is_last[i] = true;
        if (depth && newest[open[depth - 1]])
            b->is_last[newest[open[depth - 1]]] = false;
        if (depth)
            newest[open[depth - 1]] = i;
        open[depth] = i;
        n_open = depth + 1;
    }
    free(open);
    free(newest);
}

static void branch_release(struct branch *b)
{
    free(b->is_last);
    free(b->parent);
}

/* The lines that lead to it, through FAMILY_DEPTH_MAX generations at most, from the youngest up. */
static void branch_lead(const struct branch *b, size_t i, bool is_job, struct buf *out)
{
    const char *parts[FAMILY_DEPTH_MAX];
    size_t n = 0, at = i;
    for (; b->parent[at] != at && n < array_len(parts); at = b->parent[at], n++)
        parts[n] =
            n == 0 && is_job ? (b->is_last[at] ? "└─ " : "├─ ") : (b->is_last[at] ? "   " : "│  ");
    if (b->parent[at] != at && is_job)
        (void)buf_addf(out, "%zu… ", family_depth(b, i)); /* cut is fine, as all below */
    else if (b->parent[at] != at)
        (void)buf_adds(out, "   ");
    while (n > 0)
        (void)buf_adds(out, parts[--n]);
}

/* "overrides.lr 1e-6 → 5e-7; +nnodes 2; -pool" */
static void family_put_changes(const json_t *changes, struct buf *out)
{
    size_t i;
    const json_t *c;
    json_array_foreach (changes, i, c) {
        const char *old = json_get_str(c, "old", NULL), *new = json_get_str(c, "new", NULL);
        const char *key = member_str(c, "key");
        const char *mark = !old ? "+" : !new ? "-" : "";
        (void)buf_addf(out, "%s%s%s", i ? "; " : "", mark, key);
        if (old && new)
            (void)buf_addf(out, " %s → %s", old, new);
        else if (new &&*new)
            (void)buf_addf(out, " %s", new);
    }
}

static void family_line(struct cli *cli, const char *lead, enum style style, const char *text)
{
    const struct term *t = &cli->term;
    int width = (t->width ? t->width : FAMILY_WIDTH) - text_width(lead);
    _cleanup_(buf_release) struct buf clean = BUF_INIT(2 * FAMILY_LINE_MAX);
    _cleanup_(buf_release) struct buf cut = BUF_INIT(2 * FAMILY_LINE_MAX);
    text_clean(&clean, text);
    text_cut(&cut, buf_str(&clean), width > 1 ? width : 1);
    (void)fprintf(cli->out, "%s%s%s%s%s%s\n", term_on(t, STYLE_DIM), lead, term_off(t, STYLE_DIM),
                  term_on(t, style), buf_str(&cut), term_off(t, style));
}

static const char *family_how(const struct cli *cli, const char *how)
{
    static const char *const said[] = {[FAMILY_NONE] = NULL,
                                       [FAMILY_RETRY] = "say_family_retry",
                                       [FAMILY_FORK] = "say_family_fork",
                                       [FAMILY_RESUME] = "say_family_resume",
                                       [FAMILY_EVAL] = "say_family_eval",
                                       [FAMILY_EXPORT] = "say_family_export"};
    static_assert(array_len(said) == FAMILY_HOWS, "each is said");
    const char *code = said[family_how_from_string(how)];
    return code ? msg(cli->term.lang, code) : how; /* of a newer server */
}

/* "grpo-8 RUNNING fork, alice, 1h ago, val-core/x 0.41" */
static void family_put_job(struct cli *cli,
                           const json_t *job,
                           const struct when *w,
                           struct buf *out)
{
    const char *how = family_how(cli, json_get_str(job, "how", NULL));
    const json_t *validation = json_get_object(job, "validation");
    int64_t step = json_get_int(job, "step", 0);
    char when[WHEN_TEXT_MAX];
    (void)buf_addf(out, "%s %s", member_str(job, "id"), member_str(job, "state"));
    if (how)
        (void)buf_addf(out, " %s", how);
    if (step > 0)
        (void)buf_addf(out, "@%" PRId64, step);
    (void)buf_addf(out, ", %s, %s", member_str(job, "user"),
                   when_point(w, when_get(job, "queued_at"), when));
    if (json_is_number(json_object_get(validation, "value")))
        (void)buf_addf(out, ", %s %.4g", member_str(validation, "key"),
                       json_get_real(validation, "value", 0));
}

static void family_print_job(struct cli *cli,
                             const struct branch *b,
                             size_t i,
                             const char *asked,
                             const struct when *w)
{
    const json_t *job = json_array_get(b->jobs, i);
    const char *note = json_get_str(job, "note", NULL);
    const json_t *changes = json_object_get(job, "changes");
    _cleanup_(buf_release) struct buf lead = BUF_INIT(4096), below = BUF_INIT(4096);
    _cleanup_(buf_release) struct buf text = BUF_INIT(FAMILY_LINE_MAX);
    _cleanup_(buf_release) struct buf edits = BUF_INIT(FAMILY_LINE_MAX);
    bool is_asked = !strcmp(member_str(job, "id"), asked);
    branch_lead(b, i, true, &lead);
    branch_lead(b, i, false, &below);
    (void)buf_adds(&below, i + 1 < b->n && b->parent[i + 1] == i ? "│  " : "   ");
    family_put_job(cli, job, w, &text);
    family_line(cli, buf_str(&lead), is_asked ? STYLE_BOLD : STYLE_PLAIN, buf_str(&text));
    if (json_array_size(changes)) {
        family_put_changes(changes, &edits);
        family_line(cli, buf_str(&below), STYLE_CYAN, buf_str(&edits));
    } else if (json_get_str(job, "parent", NULL)) {
        family_line(
            cli, buf_str(&below), STYLE_DIM,
            msg(cli->term.lang, json_is_array(changes) ? "say_family_same" : "say_family_untold"));
    }
    if (note)
        family_line(cli, buf_str(&below), STYLE_GREEN, note);
}

static void family_print(struct cli *cli, const json_t *answer, const struct seen *seen)
{
    struct branch b;
    branch_init(&b, json_get_array(answer, "jobs"));
    for (size_t i = 0; i < b.n; i++)
        family_print_job(cli, &b, i, member_str(answer, "job"), &seen->when);
    if (b.n == 1)
        cli_say(cli, "say_family_alone", member_str(answer, "job"), "", "");
    if (json_get_bool(answer, "more", false))
        cli_say(cli, "say_family_more", "", "", "");
    branch_release(&b);
}

enum { NOTE_TRIES = 3 };

static int note_run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    _cleanup_(json_unrefp) json_t *job = NULL, *answer = NULL;
    json_t *body = json_pack("{s:s}", "note", args->v[1]);
    (void)opts;
    if (!body)
        return message_refuse(err, ERR_USAGE, "cli_no_text",
                              MESSAGE_ARGS(MESSAGE_STR("text", args->v[1])));
    int r = cli_open(cli, err);
    if (r >= 0)
        r = cli_get_job(cli, args->v[0], &job, err);
    if (r < 0) {
        json_decref(body);
        return r;
    }
    const char *id = json_get_str(job, "id", args->v[0]);
    _cleanup_(freep) char *path = cli_job_path(id, ":note");
    r = ask_send(cli, "POST", path, body, NOTE_TRIES, &answer, err);
    if (r < 0)
        return r;
    (void)fprintf(cli->out, "%s\n", json_get_str(answer, "id", id));
    cli_say(cli, json_get_str(answer, "note", NULL) ? "say_noted" : "say_note_gone", id, "", "");
    return 0;
}

static const struct command FAMILY_COMMANDS[] = {
    {
        .name = "family",
        .args = "ID",
        .least = 1,
        .most = 1,
        .summary = "show the jobs that came of one another",
        .text = "From the oldest ancestor that you may see down: retries, forks ('argus submit "
                "--from'), jobs that went on from a checkpoint, evals and exports of one. Below "
                "each stands in what its spec differs from its parent's, and its note. At most "
                "1000 jobs are told; -o json has every difference whole.",
        .example = "argus family grpo-7\twhat was tried, and what it changed\n"
                   "argus family grpo-7 -o json\tfor programs",
        OPTS(FAMILY_OPTS),
        .ask = {.path = "/v1/jobs/{}/family", .print = family_print},
    },
    {
        .name = "note",
        .args = "ID TEXT",
        .least = 2,
        .most = 2,
        .summary = "say in one line why a job was made",
        .text = "It stands in 'argus family' and on the page of the family, for everybody who may "
                "see the job; who may change the job may change it, also when the job has ended. "
                "An empty TEXT takes it away.",
        .example = "argus note grpo-7 'half the learning rate'\tand it is seen why",
        .run = note_run,
    },
};

NOUN(family, FAMILY_COMMANDS);
