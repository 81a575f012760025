/* SPDX-License-Identifier: Apache-2.0 */
/* logread.c - a log piece by piece, for servers that limit one answer; see logread.h. */
#include "argus/logread.h"

#include <inttypes.h>
#include <stdlib.h>

struct sink {
    struct logout *logout;
    uint64_t n;
};

static int on_bytes(const char *p, size_t n, void *arg)
{
    struct sink *sink = arg;
    logout_add(sink->logout, p, n);
    sink->n += n;
    return 0;
}

/* One piece of the file; *ret_size is how large the file was. */
static int read_piece(struct cli *cli,
                      const char *path,
                      struct sink *sink,
                      int64_t *ret_size,
                      struct err *err)
{
    struct request request = {.path = path, .accept = "application/octet-stream"};
    _cleanup_(transfer_freep) struct transfer *t =
        transfer_start(cli->client, &request, on_bytes, sink);
    while (!transfer_is_done(t)) {
        int r = client_turn(cli->client, 1000);
        if (r < 0)
            return err_set(err, r, "interrupted");
    }
    int r = transfer_result(t, err);
    if (r >= 0)
        r = response_error(transfer_response(t), err);
    *ret_size = transfer_response(t)->log_size;
    return r;
}

int logread_print(struct cli *cli,
                  const char *id,
                  const char *query,
                  int64_t tail,
                  struct logout *logout,
                  uint64_t *ret_offset,
                  struct err *err)
{
    struct sink sink = {.logout = logout};
    _cleanup_(freep) char *path = cli_job_path(id, "/logs");
    int64_t size = -1, first_size = -1;
    uint64_t start = 0;
    for (;;) {
        char *range =
            tail ? xasprintf("tail=%" PRId64, tail) : xasprintf("offset=%" PRIu64, start + sink.n);
        char *whole = xasprintf("%s?%s%s", path, range, query);
        uint64_t before = sink.n;
        int r = read_piece(cli, whole, &sink, &size, err);
        free(whole);
        free(range);
        if (r < 0)
            return r;
        if (first_size < 0)
            first_size = size;
        if (tail && size >= (int64_t)sink.n)
            start = (uint64_t)size - sink.n;
        tail = 0;
        if (sink.n == before || (int64_t)(start + sink.n) >= first_size)
            break;
    }
    *ret_offset = start + sink.n;
    return 0;
}
