/* SPDX-License-Identifier: Apache-2.0 */
/* jobview.c - reads a job leniently and words it strictly: every reader takes the
 * wrong type for a missing member. See jobview.h. */
#include "argus/job/jobview.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "argus/cli/command.h"
#include "argus/show/member.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "core/spec/finding_class.h"

enum { PAGE_SIZE = 200, LINE_MAX = 2048 };

static bool is_one_of(const char *word, const char *const *words)
{
    for (; *words; words++)
        if (str_eq(word, *words))
            return true;
    return false;
}

bool jobview_is_terminal(const char *state)
{
    static const char *const ends[] = {"SUCCEEDED", "FAILED", "STOPPED", "TIMEOUT", NULL};
    return is_one_of(state, ends);
}

static const char *reason_code(const json_t *job)
{
    return json_get_str(json_get_object(job, "reason"), "code", NULL);
}

/* The word is the cause of an end, or the code of a reason. */
static bool is_loss(const char *word)
{
    int class = finding_class_from_string(word);
    return str_eq(word, "lost") || str_eq(word, "infra_lost") ||
           (class >= 0 && finding_class_is((enum finding_class) class, FINDING_IS_LOSS));
}

int jobview_exit_status(const json_t *job)
{
    const char *state = member_str(job, "state");
    if (str_eq(state, "SUCCEEDED"))
        return 0;
    if (str_eq(state, "STOPPED"))
        return 11;
    if (str_eq(state, "TIMEOUT"))
        return 12;
    bool is_lost = is_loss(json_get_str(json_get_object(job, "exit"), "cause", "")) ||
                   is_loss(reason_code(job));
    return is_lost ? 13 : 10;
}

int jobview_worse(int a, int b)
{
    static const int order[] = {13, 10, 12, 11};
    for (size_t i = 0; i < array_len(order); i++)
        if (a == order[i] || b == order[i])
            return order[i];
    return 0;
}

enum style jobview_style(const char *state)
{
    static const struct {
        const char *state;
        enum style style;
    } styles[] = {{"SUCCEEDED", STYLE_GREEN}, {"FAILED", STYLE_RED},      {"TIMEOUT", STYLE_RED},
                  {"STOPPED", STYLE_YELLOW},  {"STOPPING", STYLE_YELLOW}, {"RUNNING", STYLE_CYAN},
                  {"STARTING", STYLE_CYAN}};
    for (size_t i = 0; i < array_len(styles); i++)
        if (str_starts(state, styles[i].state))
            return styles[i].style;
    return STYLE_PLAIN;
}

/* The texts of an array, or the names of its objects, with commas. */
static void jobview_add_names(struct buf *out, const json_t *array, const char *before)
{
    size_t i;
    json_t *v;
    json_array_foreach (array, i, v) {
        const char *name = json_is_string(v) ? json_string_value(v) : json_get_str(v, "name", NULL);
        if (!name)
            continue;
        (void)buf_addf(out, "%s%s", before, name); /* too many: the first ones */
        before = ",";
    }
}

char *jobview_state(const json_t *job)
{
    struct buf b = BUF_INIT(LINE_MAX);
    const json_t *restart = json_get_object(job, "restart");
    int64_t failures = json_get_int(restart, "failures", 0);
    (void)buf_adds(&b, member_str(job, "state"));
    jobview_add_names(&b, json_get_array(job, "flags"), ",");
    if (failures && b.len && strstr(buf_str(&b), "RESTARTING"))
        (void)buf_addf(&b, "(%" PRId64 "/%" PRId64 ")", failures, json_get_int(restart, "max", 0));
    return buf_take(&b);
}

char *jobview_gang(const json_t *job)
{
    int64_t nodes = json_get_int(job, "nnodes", -1);
    double gpus = json_get_real(job, "n_gpus_per_node", -1);
    if (nodes < 0 || gpus < 0)
        return xstrdup("-");
    return xasprintf("%" PRId64 "×%g", nodes, gpus);
}

char *jobview_reason(const json_t *job)
{
    const json_t *reason = json_get_object(job, "reason");
    const char *text = json_get_str(reason, "text", NULL);
    const char *code = json_get_str(reason, "code", "");
    return xstrdup(text && *text ? text : code);
}

char *jobview_nodes(const json_t *job)
{
    struct buf b = BUF_INIT(LINE_MAX);
    jobview_add_names(&b, json_get_array(job, "nodes"), "");
    return buf_take(&b);
}

void jobview_add_places(struct buf *out, const json_t *nodes, const char *open, const char *between)
{
    size_t i, k;
    const json_t *node, *gpu;
    json_array_foreach (nodes, i, node) {
        const json_t *gpus = json_get_array(node, "gpu_ids");
        (void)buf_addf(out, "%s%s", i ? ", " : "", member_str(node, "name"));
        json_array_foreach (gpus, k, gpu)
            (void)buf_addf(out, "%s%" PRId64, k ? between : open, (int64_t)json_integer_value(gpu));
        if (json_array_size(gpus))
            (void)buf_addc(out, ')');
    }
}

const char *jobview_eta(const json_t *job, const struct when *w, char *out, size_t size)
{
    const json_t *eta = json_get_object(job, "eta");
    usec_t p50 = when_get(eta, "p50"), p90 = when_get(eta, "p90");
    char a[WHEN_TEXT_MAX], b[WHEN_TEXT_MAX];
    out[0] = 0;
    if (!p50)
        return out;
    if (w->utc) {
        when_point(w, p50, a);
        when_point(w, p90, b);
    } else {
        when_rough(p50 > w->now ? p50 - w->now : 0, a);
        when_rough(p90 > w->now ? p90 - w->now : 0, b);
    }
    text_printf_to(out, size, p90 ? "%s/%s" : "%s", a, b);
    return out;
}

/* "gpu_oom", "exit code 3", "signal SIGKILL", "" */
static char *failure_word(const json_t *job)
{
    const json_t *finding = json_get_object(job, "finding");
    const json_t *end = json_get_object(job, "exit");
    const char *class = json_get_str(finding, "class", json_get_str(job, "finding", NULL));
    const char *signal = json_get_str(end, "signal", NULL);
    int64_t code = json_get_int(end, "code", 0);
    if (class && *class && !str_eq(class, finding_class_to_string(FINDING_UNKNOWN)))
        return xstrdup(class);
    if (signal && *signal)
        return xasprintf("signal %s", signal);
    if (code > 0)
        return xasprintf("exit code %" PRId64, code);
    return xstrdup(str_or(reason_code(job), ""));
}

static char *failure_line(const json_t *job, const char *id)
{
    const char *node = json_get_str(json_get_object(job, "finding"), "node",
                                    json_get_str(json_get_object(job, "driver"), "node", NULL));
    const char *verb = command_find("diagnose") ? "diagnose" : "status";
    char *word = failure_word(job);
    char *line = xasprintf("job %s FAILED%s%s%s%s (argus %s %s)", id, *word ? " " : "", word,
                           node && *node ? " on " : "", str_or(node, ""), verb, id);
    free(word);
    return line;
}

char *jobview_last_line(const json_t *job, const struct when *w)
{
    char lasted[WHEN_TEXT_MAX];
    const char *id = member_str(job, "id");
    const char *state = member_str(job, "state");
    usec_t start = when_get(job, "started_at");
    if (str_eq(state, "FAILED"))
        return failure_line(job, id);
    if (!start)
        return xasprintf("job %s %s", id, state);
    when_lasted(w, start, when_get(job, "ended_at"), lasted);
    return xasprintf("job %s %s %s %s", id, state, str_eq(state, "SUCCEEDED") ? "in" : "after",
                     lasted);
}

char *jobview_progress(const json_t *job)
{
    char *state = jobview_state(job), *reason = jobview_reason(job), *nodes = jobview_nodes(job);
    int64_t position = json_get_int(job, "position", 0);
    struct buf b = BUF_INIT(LINE_MAX);
    (void)buf_addf(&b, "job %s %s", member_str(job, "id"), state); /* a full one is cut */
    if (position > 0 && str_eq(member_str(job, "state"), "QUEUED"))
        (void)buf_addf(&b, ", position %" PRId64, position);
    if (*nodes)
        (void)buf_addf(&b, " on %s", nodes);
    if (*reason)
        (void)buf_addf(&b, ": %s", reason);
    free(state);
    free(reason);
    free(nodes);
    return buf_take(&b);
}

/* One page; *cursor is replaced, NULL at the end. */
static int add_page(struct cli *cli,
                    const char *query,
                    int64_t n,
                    char **cursor,
                    json_t *all,
                    struct err *err)
{
    _cleanup_(json_unrefp) json_t *page = NULL;
    _cleanup_(buf_release) struct buf path = BUF_INIT(1 << 14);
    char limit[32];
    text_printf(limit, "%" PRId64, n);
    (void)buf_addf(&path, "/v1/jobs%s", query); /* too long shows below */
    url_query(&path, "limit", limit);
    url_query(&path, "cursor", *cursor);
    if (path.failed)
        return message_refuse(err, ERR_USAGE, "cli_filters_long", MESSAGE_NO_ARGS);
    int r = client_get(cli->client, buf_str(&path), &page, err);
    if (r < 0)
        return r;
    size_t i;
    json_t *v;
    json_array_foreach (json_get_array(page, "jobs"), i, v)
        if (json_is_object(v))
            (void)json_array_append(all, v); /* fails only for lack of memory */
    const char *next = json_get_str(page, "next_cursor", NULL);
    bool goes_on = next && *next && !str_eq(next, *cursor) && i;
    set_str(cursor, goes_on ? next : NULL);
    return 0;
}

int jobview_list(struct cli *cli,
                 const char *query,
                 int64_t limit,
                 json_t **ret,
                 bool *ret_more,
                 struct err *err)
{
    _cleanup_(json_unrefp) json_t *all = json_array();
    _cleanup_(freep) char *cursor = NULL;
    do {
        int64_t left = limit - (int64_t)json_array_size(all);
        int r = add_page(cli, query, left < PAGE_SIZE ? left : PAGE_SIZE, &cursor, all, err);
        if (r < 0)
            return r;
    } while (cursor && (int64_t)json_array_size(all) < limit);
    *ret_more = cursor;
    *ret = json_incref(all);
    return 0;
}
