/* SPDX-License-Identifier: Apache-2.0 */
/* router.c - any text as a path: what a parameter takes lies inside the path and in one segment. */
#include <assert.h>
#include <string.h>

#include "fuzz.h"
#include "http/router.h"

static void handle(struct http_req *req, void *app)
{
    (void)req;
    (void)app;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct http_route routes[] = {
        {.method = "GET", .pattern = "/", .handle = handle},
        {.method = "GET", .pattern = "/v1/jobs", .handle = handle},
        {.method = "GET", .pattern = "/v1/jobs/{id}", .handle = handle},
        {.method = "POST", .pattern = "/v1/jobs/{id}:stop", .handle = handle},
        {.method = "GET", .pattern = "/v1/jobs/{id}/logs/{k}", .handle = handle},
    };
    struct router *r = NULL;
    assert(router_open(routes, array_len(routes), &r, NULL) == 0);
    _cleanup_(freep) char *path = xstrndup((const char *)data, size);
    struct router_match m = {0};
    if (router_find(r, size % 2 ? "GET" : "POST", path, &m) == 0)
        for (size_t i = 0; i < m.n_params; i++) {
            assert(m.params[i].len && !memchr(m.params[i].start, '/', m.params[i].len));
            assert(m.params[i].start + m.params[i].len <= path + strlen(path));
        }
    router_free(r);
    return 0;
}
