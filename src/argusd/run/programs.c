/* SPDX-License-Identifier: Apache-2.0 */
/* programs.c - see programs.h. The hook travels inside argusd; from state_dir it is placed on the
 * shared root. */
#include "argusd/run/programs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "embedded.h"

static char *beside(const char *self, const char *rel)
{
    char *path = xasprintf("%s/%s", self, rel);
    if (access(path, R_OK) == 0)
        return path;
    free(path);
    return NULL;
}

static int place_hook(struct settings *s, struct err *err)
{
    _cleanup_(freep) char *dir = xasprintf("%s/hook", s->state_dir);
    _cleanup_(freep) char *path = xasprintf("%s/sitecustomize.py", dir);
    int r = file_mkdirs(dir, 0755, err);
    if (r == 0)
        r = file_write(path, embedded_sitecustomize_py, embedded_sitecustomize_py_size, 0644, 0,
                       err);
    if (r == 0)
        set_str(&s->hook, dir);
    return r;
}

int programs_find(struct settings *s, struct err *err)
{
    static const char *const shepherds[] = {"argus-shepherd", "../shepherd/argus-shepherd"};
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (n < 0)
        return err_set(err, -errno, "'/proc/self/exe' cannot be read: %s", strerror(errno));
    self[n] = 0;
    *strrchr(self, '/') = 0;
    for (size_t i = 0; i < array_len(shepherds) && !s->shepherd; i++)
        s->shepherd = beside(self, shepherds[i]);
    if (!s->shepherd || access(s->shepherd, X_OK) < 0)
        return err_set(err, ERR_USAGE, "argus-shepherd is not at '%s'; name it with 'shepherd:'",
                       s->shepherd ? s->shepherd : self);
    return s->hook ? 0 : place_hook(s, err);
}
