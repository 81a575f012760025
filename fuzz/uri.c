/* SPDX-License-Identifier: Apache-2.0 */
/* uri.c - any text as query, path and list headers; what is accepted holds no control byte. */
#include <assert.h>
#include <string.h>

#include "fuzz.h"
#include "http/uri.h"

enum { PAIRS_MAX = 16 };

static void check_text(const char *s)
{
    for (; *s; s++)
        assert((unsigned char)*s >= 0x20 && *s != 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_(freep) char *path = xstrndup((const char *)data, size);
    (void)accept_allows(path, "application/json"); /* any answer will do */
    (void)etag_list_has(path, "\"1-2\"");
    uint64_t from = 0, n_bytes = 0;
    if (range_parse(path, 1000, &from, &n_bytes) == 1)
        assert(n_bytes > 0 && from < 1000 && n_bytes <= 1000 - from);
    _cleanup_(freep) char *query = xstrdup(path);
    struct uri_pair pairs[PAIRS_MAX];
    int n = uri_split_query(query, pairs, PAIRS_MAX, NULL);
    assert(n <= PAIRS_MAX);
    for (int i = 0; i < n; i++) {
        check_text(pairs[i].name);
        check_text(pairs[i].value);
    }
    if (uri_is_clean(path) && uri_decode(path, false, NULL) == 0)
        check_text(path);
    return 0;
}
