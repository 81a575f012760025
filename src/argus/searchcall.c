/* SPDX-License-Identifier: Apache-2.0 */
/* searchcall.c - see searchcall.h. The server answers each page within seconds, with what it has
 * found by then; a page is printed before the next is asked for. */
#include "argus/searchcall.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "argus/ansi.h"

enum { PAGE = 100, LINE_MAX_SHOWN = 64 << 10 };

static void print_hit(struct cli *cli, const json_t *hit)
{
    struct ansi ansi = {0};
    const char *text = json_get_str(hit, "text", "");
    struct buf safe = BUF_INIT(LINE_MAX_SHOWN);
    if (cli->term.is_tty)
        ansi_filter(&ansi, text, strlen(text), true, &safe);
    const char *file = json_get_str(hit, "file", NULL);
    int64_t rank = json_get_int(hit, "rank", -1);
    (void)fprintf(cli->out, "%s/%" PRId64, json_get_str(hit, "job", "?"),
                  json_get_int(hit, "attempt", 0)); /* ferror(out) tells at the end */
    if (file)
        (void)fprintf(cli->out, "/%s", file); /* the same */
    if (file && rank >= 0)
        (void)fprintf(cli->out, "[%" PRId64 "]", rank); /* the same */
    (void)fprintf(cli->out, ":%" PRId64 ": %s\n", json_get_int(hit, "offset", 0),
                  cli->term.is_tty ? buf_str(&safe) : text); /* the same */
    buf_release(&safe);
}

static void add_filter(struct buf *path, const char *name, const char *value)
{
    if (!value)
        return;
    (void)buf_addf(path, "&%s=", name); /* too long a path is refused by the server */
    url_escape(path, value);
}

int searchcall_run(struct cli *cli, const struct searchcall *call, struct err *err)
{
    _cleanup_(freep) char *cursor = NULL;
    int64_t left = call->most ? call->most : INT64_MAX;
    do {
        _cleanup_(json_unrefp) json_t *page = NULL;
        _cleanup_(buf_release) struct buf path = BUF_INIT(16 << 10);
        (void)buf_addf(&path, "/v1/logs?limit=%" PRId64, left < PAGE ? left : PAGE); /* fits */
        add_filter(&path, "grep", call->grep);
        add_filter(&path, "source", call->source);
        add_filter(&path, "user", call->user);
        add_filter(&path, "project", call->project);
        add_filter(&path, "since", call->since);
        add_filter(&path, "cursor", cursor);
        struct request request = {.path = buf_str(&path), .tries = 10};
        int r = client_json(cli->client, &request, &page, err);
        if (r < 0)
            return r;
        const json_t *hits = json_get_array(page, "hits");
        for (size_t i = 0; i < json_array_size(hits); i++)
            print_hit(cli, json_array_get(hits, i));
        (void)fflush(cli->out); /* the same */
        left -= (int64_t)json_array_size(hits);
        const char *next = json_get_str(page, "next_cursor", NULL);
        free(cursor);
        cursor = next ? xstrdup(next) : NULL;
    } while (cursor && left > 0);
    return 0;
}
