/* SPDX-License-Identifier: Apache-2.0 */
/* programs.c - see programs.h. The hook travels inside argusd; from state_dir it is placed on the
 * shared root. */
#include "argusd/run/programs.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/self.h"
#include "base/str.h"
#include "embedded.h"

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
    if (!s->shepherd)
        s->shepherd = self_find_program("argus-shepherd");
    if (!s->shepherd || access(s->shepherd, X_OK) < 0)
        return err_set(err, ERR_USAGE, "argus-shepherd is not at '%s'; name it with 'shepherd:'",
                       str_or(s->shepherd, "the place of argusd"));
    return s->hook ? 0 : place_hook(s, err);
}
