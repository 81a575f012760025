/* SPDX-License-Identifier: Apache-2.0 */
/* logread.c - a log piece by piece, for servers that limit one answer; see logread.h. */
#include "argus/log/logread.h"

#include <inttypes.h>
#include <stdlib.h>

struct sink {
    struct logout *logout;
    uint64_t n;
};

static int logread_on_bytes(const char *p, size_t n, void *arg)
{
    struct sink *sink = arg;
    logout_add(sink->logout, p, n);
    sink->n += n;
    return 0;
}

/* One piece of the log. *ret_offset: where it begins (unchanged by an older server); *ret_size: how
 * large the log is. */
static int logread_read_piece(struct cli *cli,
                              const char *path,
                              struct sink *sink,
                              uint64_t *ret_offset,
                              int64_t *ret_size,
                              struct err *err)
{
    struct request request = {.path = path, .accept = "application/octet-stream"};
    _cleanup_(transfer_freep) struct transfer *t =
        transfer_start(cli->client, &request, logread_on_bytes, sink);
    int r = transfer_wait(cli->client, t, err);
    if (r < 0)
        return r;
    r = transfer_result(t, err);
    if (r >= 0)
        r = response_error(transfer_response(t), err);
    *ret_size = transfer_response(t)->log_size;
    if (transfer_response(t)->log_offset >= 0)
        *ret_offset = (uint64_t)transfer_response(t)->log_offset;
    return r;
}

void logread_tell_gap(struct cli *cli, uint64_t from, uint64_t to)
{
    cli_talk(cli, "the log goes on at byte %" PRIu64 ": %" PRIu64 " bytes are not there", to,
             to - from);
}

int logread_print(struct cli *cli,
                  const char *id,
                  const char *query,
                  int64_t tail,
                  const char *since,
                  struct logout *logout,
                  uint64_t *ret_offset,
                  struct err *err)
{
    struct sink sink = {.logout = logout};
    _cleanup_(freep) char *path = cli_job_path(id, "/logs");
    int64_t size = -1, first_size = -1;
    uint64_t next = 0;
    do {
        _cleanup_(buf_release) struct buf whole = BUF_INIT(16 << 10);
        (void)buf_addf(&whole, "%s?%s=%" PRIu64 "%s", path, tail ? "tail" : "offset",
                       tail ? (uint64_t)tail : next, query);
        if (since)
            url_query(&whole, "since", since); /* too long a path is refused by the server */
        uint64_t at = next;
        sink.n = 0;
        int r = logread_read_piece(cli, buf_str(&whole), &sink, &at, &size, err);
        if (r < 0)
            return r;
        if (first_size < 0)
            first_size = size;
        if (tail && at == next && size >= (int64_t)sink.n)
            at = (uint64_t)size - sink.n; /* an older server */
        if (!tail && !since && sink.n && at > next)
            logread_tell_gap(cli, next, at);
        next = at + sink.n;
        tail = 0;
        since = NULL;
    } while (sink.n && (int64_t)next < first_size);
    *ret_offset = next;
    return 0;
}
