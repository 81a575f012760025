/* SPDX-License-Identifier: Apache-2.0 */
/* verify.c - see verify.h. The server walks the chain; here its answer becomes words and an
 * exit status. */
#include "argus/verify.h"

#include <inttypes.h>

#include "argus/jobview.h"

int verify_events(struct cli *cli, const char *expect, int output, struct err *err)
{
    _cleanup_(buf_release) struct buf path = BUF_INIT(4096);
    _cleanup_(json_unrefp) json_t *answer = NULL;
    (void)buf_adds(&path, "/v1/events:verify"); /* too long a hash is refused by the server */
    url_query(&path, "expect", expect);
    int r = client_get(cli->client, buf_str(&path), &answer, err);
    if (r < 0)
        return r;
    const json_t *head = json_get_object(answer, "head"),
                 *reason = json_get_object(answer, "reason");
    bool ok = json_get_bool(answer, "ok", false);
    if (output >= OUTPUT_JSON)
        cli_emit(cli, answer, output);
    else
        (void)fprintf(cli->out,
                      "%s: %" PRId64 " events, the last right one is %" PRId64 "\nhead %s\n",
                      ok ? "whole" : "BROKEN", json_get_int(answer, "count", 0),
                      json_get_int(head, "seq", 0), jobview_str(head, "hash"));
    if (!ok)
        return err_set(err, ERR_INTERNAL, "the log of events is not as it was written: %s",
                       json_get_str(reason, "text", "no reason given"));
    if (output < OUTPUT_JSON)
        cli_talk(cli,
                 "keep the head: 'argus events --verify --expect HASH' later also finds what was "
                 "cut off at the end");
    return 0;
}
