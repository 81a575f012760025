/* SPDX-License-Identifier: Apache-2.0 */
/* reported.c - a report of the server, asked for and printed line by line; see reported.h. */
#include "argus/cli/reported.h"

#include <stdlib.h>
#include <string.h>

#include "argus/cli/ask.h"
#include "argus/net/client.h"
#include "argus/show/text.h"
#include "base/mem.h"
#include "base/text.h"

enum { REPORTED_PATH_MAX = 4096 };

const char *const reported_forms[] = {"", "md", "html", NULL};
const char *const reported_languages[] = {"", "en", "zh", NULL};

static void print_lines(FILE *out, const struct buf *body)
{
    const char *at = body->len ? body->data : "", *end = at + body->len;
    while (at < end) {
        const char *eol = memchr(at, '\n', (size_t)(end - at));
        _cleanup_(freep) char *line = xstrndup(at, (size_t)((eol ? eol : end) - at));
        _cleanup_(buf_release) struct buf clean = BUF_INIT(CLIENT_BODY_MAX);
        text_clean(&clean, line);
        (void)fprintf(out, "%s\n", buf_str(&clean)); /* main() looks at stdout */
        at = eol ? eol + 1 : end;
    }
}

int reported_print(struct cli *cli,
                   const char *path,
                   const char *name,
                   const struct reported_opts *o,
                   struct err *err)
{
    static const char *const types[] = {"text/markdown", "text/markdown", "text/html"};
    const char *spoken = cli->term.lang == MESSAGE_CHINESE ? "zh" : "en";
    _cleanup_(response_release) struct response answer = {0};
    _cleanup_(buf_release) struct buf whole = BUF_INIT(REPORTED_PATH_MAX);
    _cleanup_(freep) char *at = ask_path(path, name);
    int r = cli_open(cli, err);
    if (r < 0)
        return r;
    (void)buf_adds(&whole, at); /* a name that does not fit is none: refused by the server */
    url_query(&whole, "format", o->form ? reported_forms[o->form] : "md");
    url_query(&whole, "language", o->language ? reported_languages[o->language] : spoken);
    struct request request = {.path = buf_str(&whole), .accept = types[o->form]};
    r = client_call(cli->client, &request, &answer, err);
    if (r >= 0)
        r = response_error(&answer, err);
    if (r >= 0)
        print_lines(cli->out, &answer.body);
    return r < 0 ? r : 0;
}
