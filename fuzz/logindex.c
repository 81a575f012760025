/* SPDX-License-Identifier: Apache-2.0 */
/* logindex.c - any bytes as the index of a log, with checksums made right: what is to be read goes
 * on, to the end. */
#include "fsroot/logs/logindex.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "fsroot/attempt/launch.h"
#include "fsroot/logs/logindex_file.h"
#include "fsroot/logs/trigrams.h"
#include "fuzz.h"

static char index_bytes[LOGINDEX_GROUP_RECORD + 3 * LOGINDEX_BLOCK_RECORD], text[LOGINDEX_LEAST];

static void sign(char *p, size_t n)
{
    struct logindex_record *r = (struct logindex_record *)(void *)p;
    r->magic = LOGINDEX_MAGIC;
    r->first = crc32_add(0, text, LOGINDEX_FIRST);
    r->crc = logindex_crc(r, n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char needle[] = "needle";
    static char *words[] = {needle};
    struct strv one = {.v = words, .n = 1};
    struct grepneeds needs = {.v = &one, .n = 1};
    char root[] = "/tmp/fuzz-logindex-XXXXXX";
    assert(mkdtemp(root));
    _cleanup_(freep) char *dir = xasprintf("%s/jobs/j/attempts/1/logs", root);
    _cleanup_(freep) char *log = xasprintf("%s/driver.log", dir);
    _cleanup_(freep) char *index = xasprintf("%s" LOGINDEX_SUFFIX, log);
    memset(index_bytes, 0, sizeof(index_bytes));
    for (size_t i = 0; i < 4 && size > i * 40; i++) {
        char *p = index_bytes + (i ? LOGINDEX_GROUP_RECORD + (i - 1) * LOGINDEX_BLOCK_RECORD : 0);
        memcpy(p + 16, data + i * 40, size - i * 40 < 40 ? size - i * 40 : 40);
        sign(p, i ? LOGINDEX_BLOCK_RECORD : LOGINDEX_GROUP_RECORD);
    }
    assert(file_mkdirs(dir, 0700, NULL) == 0);
    assert(file_write(log, text, sizeof(text), 0600, 0, NULL) == 0);
    assert(file_write(index, index_bytes, sizeof(index_bytes), 0600, 0, NULL) == 0);
    struct logindex_ask *ask = logindex_ask_new(&needs);
    struct logindex *x = logindex_open(root, "j", 1, ATTEMPT_LOG, ask);
    assert(x);
    for (uint64_t at = 0, begin = 0, end = 0; end != UINT64_MAX; at = end) {
        logindex_next(x, at, &begin, &end);
        assert(begin >= at && end > begin && begin <= sizeof(text));
    }
    logindex_close(x);
    logindex_ask_free(ask);
    (void)unlink(index);
    (void)unlink(log);
    static const char *const parts[] = {
        "jobs/j/attempts/1/logs", "jobs/j/attempts/1", "jobs/j/attempts", "jobs/j", "jobs", ""};
    for (size_t i = 0; i < array_len(parts); i++) {
        _cleanup_(freep) char *path = xasprintf("%s/%s", root, parts[i]);
        assert(rmdir(path) == 0);
    }
    return 0;
}
