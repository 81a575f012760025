/* SPDX-License-Identifier: Apache-2.0 */
/* bundle_head.c - see bundle_head.h. A signature, then a line for each capability ("@"), for each
 * commit that must be there already ("-") and for each reference, then an empty line. */
#include "fsroot/content/bundle_head.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/message.h"
#include "base/str.h"

enum { HASH_MIN = 40, HASH_MAX = 64 };

void bundle_head_release(struct bundle_head *h)
{
    freep(&h->refs);
}

static int refuse_damaged(struct err *err)
{
    return message_refuse(err, ERR_REFUSED, "bundle_damaged", MESSAGE_NO_ARGS);
}

/* "<hash> <name>" with a name that is one word. */
static bool is_ref(const char *line)
{
    size_t n = strspn(line, "0123456789abcdef");
    const char *name = line + n + 1;
    return (n == HASH_MIN || n == HASH_MAX) && line[n] == ' ' && *name && !strpbrk(name, " \t\r");
}

static int take_line(struct bundle_head *h, struct buf *refs, const char *line, struct err *err)
{
    if (*line == '-' || str_starts(line, "@filter="))
        return message_refuse(err, ERR_REFUSED, "bundle_incomplete", MESSAGE_NO_ARGS);
    if (!strcmp(line, "@object-format=sha256"))
        h->is_sha256 = true;
    else if (*line == '@' && strcmp(line, "@object-format=sha1") != 0)
        return message_refuse(err, ERR_REFUSED, "bundle_feature",
                              MESSAGE_ARGS(MESSAGE_STR("what", line)));
    else if (*line != '@' && !is_ref(line))
        return refuse_damaged(err);
    else if (*line != '@' && buf_addf(refs, "%s\n", line) < 0)
        return message_refuse(err, ERR_REFUSED, "bundle_references", MESSAGE_NO_ARGS);
    return 0;
}

int bundle_head_read(const char *text, size_t n, struct bundle_head *ret, struct err *err)
{
    _cleanup_(buf_release) struct buf refs = BUF_INIT(BUNDLE_HEAD_MAX);
    struct bundle_head h = {0};
    const char *end = memchr(text, '\n', n);
    for (bool first = true; end; first = false) {
        const char *start = text + h.size;
        size_t len = (size_t)(end - start);
        h.size += len + 1;
        if (!first && !len) {
            ret->size = h.size;
            ret->is_sha256 = h.is_sha256;
            ret->refs = buf_take(&refs);
            return 0;
        }
        if (memchr(start, 0, len))
            break;
        _cleanup_(freep) char *line = xstrndup(start, len);
        int r = first ? 0 : take_line(&h, &refs, line, err);
        if (r < 0)
            return r;
        end = memchr(text + h.size, '\n', n - h.size);
    }
    return refuse_damaged(err);
}
