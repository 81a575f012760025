/* SPDX-License-Identifier: Apache-2.0 */
/* multipart.c - any form, whole and in pieces: both ways the same parts, of no more bytes than
 * came, and none that holds the boundary. The first byte says how long a piece is. */
#include <assert.h>
#include <string.h>

#include "fuzz.h"
#include "http/multipart.h"

static int on_part(const char *name, const char *file, void *arg, struct err *err)
{
    struct buf *seen = arg;
    (void)err;
    assert(strlen(name) <= MULTIPART_NAME_MAX && (!file || strlen(file) <= MULTIPART_FILE_MAX));
    (void)buf_addf(seen, "\n[%s]\n", name); /* there is room */
    return 0;
}

static int on_data(const char *p, size_t n, void *arg, struct err *err)
{
    (void)err;
    assert(n > 0);
    (void)buf_add(arg, p, n); /* there is room */
    return 0;
}

static int read_form(const char *p, size_t n, size_t piece, struct buf *seen)
{
    struct multipart_to to = {.part = on_part, .data = on_data, .arg = seen};
    struct multipart *m = NULL;
    int r = multipart_new("multipart/form-data; boundary=X-1", &to, &m, NULL);
    for (size_t at = 0; r == 0 && at < n; at += piece)
        r = multipart_add(m, p + at, n - at < piece ? n - at : piece, NULL);
    if (r == 0)
        r = multipart_end(m, NULL);
    multipart_free(m);
    assert(!seen->failed && !strstr(buf_str(seen), "\r\n--X-1"));
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t most = 64 + 80 * size;
    _cleanup_(buf_release) struct buf whole = BUF_INIT(most), pieces = BUF_INIT(most);
    if (!size)
        return 0;
    const char *p = (const char *)data + 1;
    int r = read_form(p, size - 1, size, &whole);
    assert(read_form(p, size - 1, 1 + data[0] % 16, &pieces) == r);
    if (r == 0)
        assert(whole.len == pieces.len && !memcmp(buf_str(&whole), buf_str(&pieces), whole.len));
    _cleanup_(freep) char *type = xstrndup(p, size - 1);
    struct multipart_to to = {.part = on_part, .data = on_data, .arg = &whole};
    struct multipart *m = NULL;
    if (multipart_new(type, &to, &m, NULL) == 0)
        multipart_free(m);
    return 0;
}
