/* SPDX-License-Identifier: Apache-2.0 */
/* self.c - see self.h. In a package the loader that starts a program lies beside it
 * (tools/package), and /proc/self/exe is that loader: its folder is the program's own there too. */
#include "base/self.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"

char *self_find_program(const char *name)
{
    const char *folder = str_starts(name, "argus-") ? name + strlen("argus-") : name;
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (n <= 0)
        return NULL;
    self[n] = 0;
    *strrchr(self, '/') = 0;
    char *places[] = {xasprintf("%s/%s", self, name), xasprintf("%s/../%s/%s", self, folder, name),
                      xasprintf("%s/../../bin/%s", self, name)};
    char *found = NULL;
    for (size_t i = 0; i < array_len(places); i++) {
        if (!found && access(places[i], X_OK) == 0)
            found = realpath(places[i], NULL);
        free(places[i]);
    }
    return found;
}
