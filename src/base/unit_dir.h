/* SPDX-License-Identifier: Apache-2.0 */
/* unit_dir.h - for unit tests: a temporary directory as *state, and whole files below it.
 *
 * It lies below $TMPDIR: tools/nfs/check puts it on a real NFS mount. */
#pragma once
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/unit.h"

static inline int root_setup(void **state)
{
    const char *below = getenv("TMPDIR");
    char *path = xasprintf("%s/argus-unit-XXXXXX", below ? below : "/tmp");
    *state = mkdtemp(path);
    return *state ? 0 : -1;
}

static inline int root_remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    return remove(path);
}

static inline int root_teardown(void **state)
{
    int r = nftw(*state, root_remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(*state);
    return r;
}

static inline void put(const char *root, const char *name, const char *text)
{
    _cleanup_(freep) char *path = xasprintf("%s/%s", root, name);
    _cleanup_(freep) char *dir = xstrndup(path, (size_t)(strrchr(path, '/') - path));
    assert_int_equal(file_mkdirs(dir, 0755, NULL), 0);
    assert_int_equal(file_write(path, text, strlen(text), 0644, 0, NULL), 0);
}

/* The caller frees it; NULL when it cannot be read. */
static inline char *get(const char *root, const char *name)
{
    _cleanup_(freep) char *path = xasprintf("%s/%s", root, name);
    _cleanup_(buf_release) struct buf text = BUF_INIT(1 << 20);
    return file_read(path, &text, NULL) < 0 ? NULL : buf_take(&text);
}

static inline void assert_text(const char *root, const char *name, const char *want)
{
    _cleanup_(freep) char *text = get(root, name);
    assert_non_null(text);
    assert_string_equal(text, want);
}

static inline bool file_is_there(const char *path)
{
    bool is_there;
    assert_int_equal(file_look_for(path, &is_there, NULL), 0);
    return is_there;
}

static inline mode_t mode_of(const char *root, const char *name)
{
    struct stat st;
    _cleanup_(freep) char *path = xasprintf("%s/%s", root, name);
    assert_int_equal(stat(path, &st), 0);
    return st.st_mode & 07777;
}
