/* SPDX-License-Identifier: Apache-2.0 */
/* rankfiles.c - what the ranks of an attempt tell of their time; see rankfiles.h. */
#include "fsroot/attempt/rankfiles.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/message.h"
#include "base/str.h"
#include "fsroot/attempt/launch.h"
#include "fsroot/tree/paths.h"
#include "fsroot/tree/rootfile.h"

enum { ENTRIES_MAX = 4 * RANKS_MAX };

/* "1f2e3d4c5b6a-17.json" */
static bool rankfiles_is_name(const char *name)
{
    size_t id = strspn(name, "0123456789abcdef");
    if (!id || id >= RANK_ID_MAX || name[id] != '-')
        return false;
    size_t digits = strspn(name + id + 1, "0123456789");
    return digits > 0 && digits < 8 && str_eq(name + id + 1 + digits, ".json");
}

/* The ranks of the listed directory. */
static struct rank_told *rankfiles_read_all(const char *root,
                                            const char *path,
                                            DIR *d,
                                            size_t *ret_n)
{
    struct rank_told *v = NULL;
    const struct dirent *e;
    size_t n = 0, cap = 0;
    struct buf text = BUF_INIT(RANK_BYTES_MAX);
    for (int i = 0; i < ENTRIES_MAX && n < RANKS_MAX && (e = readdir(d)); i++) {
        if (!rankfiles_is_name(e->d_name))
            continue;
        _cleanup_(freep) char *file = xasprintf("%s/%s", path, e->d_name);
        buf_reset(&text);
        if (rootfile_read(root, file, &text, NULL) < 0)
            continue;
        if (n == cap) {
            cap = cap ? 2 * cap : 16;
            v = xrealloc(v, cap, sizeof(*v));
        }
        n += rank_read(buf_str(&text), text.len, &v[n]);
    }
    buf_release(&text);
    *ret_n = n;
    return v;
}

int fsroot_ranks_read(const char *root,
                      const char *job,
                      int attempt,
                      struct rank_told **ret,
                      size_t *ret_n,
                      struct err *err)
{
    DIR *d = NULL;
    *ret = NULL;
    *ret_n = 0;
    if (!fsroot_is_name(job))
        return message_refuse(err, -EINVAL, "no_job_dir", MESSAGE_ARGS(MESSAGE_STR("name", job)));
    _cleanup_(freep) char *path = fsroot_attempt_dir(root, job, attempt, ATTEMPT_RANKS);
    int r = rootfile_list(root, path, &d, err);
    if (r < 0)
        return r == -ENOENT ? 0 : r;
    *ret = rankfiles_read_all(root, path, d, ret_n);
    (void)closedir(d); /* only read */
    return 0;
}
