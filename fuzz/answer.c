/* SPDX-License-Identifier: Apache-2.0 */
/* answer.c - any bytes as the answer of a server: a head, then its body as chunks. */
#include <assert.h>
#include <string.h>

#include "fuzz.h"
#include "http/proxy/answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct answer a;
    struct dechunk d = {0};
    _cleanup_(freep) char *text = xstrndup((const char *)data, size);
    _cleanup_(freep) char *body = xmalloc(size + 1);
    size_t n = answer_head_length(text, strlen(text), 0);
    if (n && answer_parse(text, n, size & 1, &a, NULL) == 0) {
        assert(a.status >= 100 && a.status <= 599 && a.n <= ANSWER_FIELDS_MAX);
        assert(a.body != ANSWER_LENGTH || a.length >= 0);
        for (size_t i = 0; i < a.n; i++)
            assert(a.fields[i].name > text && a.fields[i].value < text + n);
    }
    memcpy(body, data + n, size - n);
    int64_t got = dechunk_step(&d, body, size - n);
    assert(got <= (int64_t)(size - n));
    return 0;
}
