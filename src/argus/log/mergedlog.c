/* SPDX-License-Identifier: Apache-2.0 */
/* mergedlog.c - see mergedlog.h. The server keeps nothing of who follows: each answer has the
 * cursor with which the next one begins, so asking again after a lost connection is all that it
 * takes. */
#include "argus/log/mergedlog.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "argus/job/jobview.h"
#include "argus/log/logout.h"
#include "argus/show/member.h"
#include "argus/show/text.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"

enum {
    LOOK_MS = 1000,  /* between two looks while nothing comes */
    AGAIN_MS = 2000, /* and after one that failed */
    LINE_OUT_MAX = 256 << 10,
};
#define MERGED_TELL (25 * USEC_SEC)

struct mergedlog {
    struct cli *cli;
    const char *id;
    const struct mergedlog_ask *ask;
    struct logout out;
    struct loggrep *grep;
    char *cursor; /* NULL: nothing was asked yet */
    int64_t attempt;
    usec_t quiet_since; /* mono */
    bool is_lost;
};

static void merged_release(struct mergedlog *g)
{
    logout_release(&g->out);
    loggrep_free(g->grep);
    free(g->cursor);
}

/* ---- printing ---- */

/* "[rank 0 w1] ", "[w1 worker-….err] ", "[driver] " */
static void merged_put_source(struct buf *out, const json_t *source)
{
    const char *node = json_get_str(source, "node", NULL);
    const char *file = json_get_str(source, "file", "?");
    int64_t rank = json_get_int(source, "rank", -1);
    if (!node) {
        (void)buf_adds(out, "[driver] "); /* what is too long is cut, here and below */
        return;
    }
    (void)buf_addc(out, '[');
    if (rank >= 0)
        (void)buf_addf(out, "rank %" PRId64 " ", rank);
    text_clean(out, node);
    const char *slash = strchr(file, '/');
    if (rank < 0) {
        (void)buf_addc(out, ' ');
        text_clean(out, slash ? slash + 1 : file);
    } else if (str_ends(file, ".err")) {
        (void)buf_adds(out, " err");
    }
    (void)buf_adds(out, "] ");
}

static void merged_put_line(struct mergedlog *g, const json_t *page, const json_t *line)
{
    _cleanup_(buf_release) struct buf out = BUF_INIT(LINE_OUT_MAX);
    const char *text = json_get_str(line, "text", "");
    int64_t at = json_get_int(line, "source", -1);
    if (g->grep && !loggrep_matches(g->grep, text, strlen(text)))
        return;
    merged_put_source(
        &out, json_array_get(json_get_array(page, "sources"), at < 0 ? SIZE_MAX : (size_t)at));
    (void)buf_adds(&out, text); /* the same */
    if (json_get_bool(line, "cut", false))
        (void)buf_adds(&out, " …");
    logout_line(&g->out, buf_str(&out), out.len);
    g->quiet_since = clock_mono();
}

static void merged_tell_gaps(const struct mergedlog *g, const json_t *page)
{
    size_t i;
    json_t *source;
    json_array_foreach (json_get_array(page, "sources"), i, source) {
        int64_t skipped = json_get_int(source, "skipped_bytes", 0);
        char bytes[32];
        text_printf(bytes, "%" PRId64, skipped);
        if (skipped > 0)
            cli_say(g->cli, "say_merged_gap", bytes, json_get_str(source, "file", "driver.log"),
                    "");
    }
}

/* What the lines are of, before the first of them, and when another attempt begins. */
static void merged_tell_head(struct mergedlog *g, const json_t *page)
{
    int64_t attempt = json_get_int(page, "attempt", 0), left = json_get_int(page, "left_out", 0);
    char count[32], number[32];
    text_printf(count, "%zu", json_array_size(json_get_array(page, "sources")));
    text_printf(number, "%" PRId64, g->cursor ? attempt : left);
    if (!g->cursor)
        cli_say(g->cli, "say_merged", count, "", "");
    if (!g->cursor && left > 0)
        cli_say(g->cli, "say_merged_left", number, g->id, "");
    if (g->cursor && attempt != g->attempt)
        cli_say(g->cli, "say_merged_attempt", number, "", "");
    g->attempt = attempt;
}

static void merged_print(struct mergedlog *g, const json_t *page)
{
    size_t i;
    json_t *line;
    merged_tell_head(g, page);
    merged_tell_gaps(g, page);
    json_array_foreach (json_get_array(page, "lines"), i, line)
        merged_put_line(g, page, line);
    (void)fflush(g->cli->out); /* ferror(out) tells at the end */
    free(g->cursor);
    g->cursor = xstrdup(json_get_str(page, "cursor", ""));
}

/* ---- asking ---- */

static int merged_ask(struct mergedlog *g, json_t **ret, struct err *err)
{
    _cleanup_(freep) char *path = cli_job_path(g->id, "/logs/merged");
    _cleanup_(buf_release) struct buf whole = BUF_INIT(16 << 10);
    (void)buf_adds(&whole, path); /* too long a path is refused by the server */
    if (g->cursor)
        url_query(&whole, "cursor", g->cursor);
    else if (g->ask->tail)
        (void)buf_addf(&whole, "?tail=%" PRId64, g->ask->tail);
    if (g->ask->attempt)
        (void)buf_addf(&whole, "%cattempt=%" PRId64, strchr(buf_str(&whole), '?') ? '&' : '?',
                       g->ask->attempt);
    return client_get(g->cli->client, buf_str(&whole), ret, err);
}

/* What the job does, when nothing was printed for long. */
static int merged_tell_silence(struct mergedlog *g, struct err *err)
{
    _cleanup_(json_unrefp) json_t *job = NULL;
    if (clock_mono() - g->quiet_since < MERGED_TELL)
        return 0;
    int r = cli_get_job(g->cli, g->id, &job, err);
    if (r < 0)
        return r;
    _cleanup_(freep) char *line = jobview_progress(job);
    cli_talk(g->cli, "%s", line);
    g->quiet_since = clock_mono();
    return 0;
}

static bool is_passing(int r)
{
    return r == ERR_UNREACHABLE || r == ERR_UNAVAILABLE || r == ERR_NOT_YET || r == ERR_BUSY ||
           r == ERR_STORE;
}

/* A look that failed and may do better in a moment: 0 after a pause. */
static int merged_lost(struct mergedlog *g, int r, const struct err *why, struct err *err)
{
    if (!g->ask->follow || !is_passing(r))
        return err_copy(err, r, why);
    _cleanup_(freep) char *said = g->is_lost ? NULL : cli_err_text(g->cli, why);
    if (said)
        cli_say(g->cli, "say_lost", said, "", "");
    g->is_lost = true;
    return client_pause(g->cli->client, AGAIN_MS);
}

/* 1: the job has ended and all of it is printed. */
static int merged_step(struct mergedlog *g, struct err *err)
{
    _cleanup_(json_unrefp) json_t *page = NULL;
    struct err why = {0};
    int r = merged_ask(g, &page, &why);
    if (r < 0)
        return merged_lost(g, r, &why, err);
    if (g->is_lost)
        cli_say(g->cli, "say_back", "", "", "");
    g->is_lost = false;
    merged_print(g, page);
    if (!g->ask->follow || json_get_bool(page, "ended", false))
        return 1;
    if (json_get_bool(page, "more", false))
        return 0;
    r = merged_tell_silence(g, &why);
    if (r < 0)
        return merged_lost(g, r, &why, err);
    return client_pause(g->cli->client, LOOK_MS);
}

/* Its last line to stderr, and its exit status. */
static int merged_finish(struct mergedlog *g, struct err *err)
{
    _cleanup_(json_unrefp) json_t *job = NULL;
    int r = cli_get_followed(g->cli, g->id, &job, err);
    if (r < 0)
        return r;
    struct when w = cli_when(g->cli, false);
    _cleanup_(freep) char *line = jobview_last_line(job, &w);
    cli_talk(g->cli, "%s", line);
    return jobview_exit_status(job);
}

int mergedlog_run(struct cli *cli, const char *id, const struct mergedlog_ask *ask, struct err *err)
{
    _cleanup_(merged_release) struct mergedlog g = {
        .cli = cli, .id = id, .ask = ask, .quiet_since = clock_mono()};
    struct err why = {0};
    int r = logout_init(&g.out, cli->out, cli->term.is_tty, NULL, err);
    if (r >= 0 && ask->grep && loggrep_new(ask->grep, &g.grep, &why) < 0)
        r = err_copy(err, ERR_USAGE, &why);
    if (r >= 0)
        r = cli_catch_interrupt(cli, err);
    while (r == 0)
        r = merged_step(&g, err);
    if (r >= 0) {
        logout_end(&g.out);
        r = ask->follow ? merged_finish(&g, err) : 0;
    }
    if (r == -EINTR) {
        cli_say(cli, "say_detached", id, id, id);
        r = 0;
    }
    return r;
}
