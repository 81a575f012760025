/* SPDX-License-Identifier: Apache-2.0 */
/* launch.c - bin/argus and bin/argusd of a package: hands the program of the same name to the
 * loader that the package carries, with the libraries that it carries, whatever the machine has.
 *
 * The kernel wants the path of a loader to be absolute, and a package may lie anywhere: hence this
 * program. It is static, so it needs nothing itself. The loader is called by a link of the
 * program's name, because that is what `ps` and `pgrep` show. What the process starts sees nothing
 * of all this: no variable is set. */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

enum { LAUNCH_FAILED = 127, LAUNCH_WORDS = 7 };

/* Where this program lies, links followed; also where /proc is not mounted. */
static const char *launch_self(char *out)
{
    ssize_t n = readlink("/proc/self/exe", out, PATH_MAX - 1);
    if (n > 0) {
        out[n] = 0;
        return out;
    }
    const char *called = (const char *)getauxval(AT_EXECFN);
    return called && realpath(called, out) ? out : NULL;
}

int main(int argc, char **argv)
{
    char self[PATH_MAX], loader[PATH_MAX + 64], libraries[PATH_MAX + 64], program[PATH_MAX + 64];
    if (!launch_self(self)) {
        (void)fprintf(stderr, "argus: cannot find out where this program lies: %s\n",
                      strerror(errno));
        return LAUNCH_FAILED;
    }
    char *name = strrchr(self, '/');
    *name++ = 0;
    (void)snprintf(loader, sizeof(loader), "%s/../lib/argus/loader/%s", self, name);
    (void)snprintf(libraries, sizeof(libraries), "%s/../lib/argus", self);
    (void)snprintf(program, sizeof(program), "%s/../lib/argus/%s.program", self, name);
    char **words = calloc((size_t)argc + LAUNCH_WORDS + 1, sizeof(*words));
    if (!words)
        return LAUNCH_FAILED;
    size_t n = 0;
    words[n++] = name;
    words[n++] = (char[]){"--argv0"};
    words[n++] = argc > 0 ? argv[0] : name;
    words[n++] = (char[]){"--inhibit-cache"}; /* else libraries of the machine could come in */
    words[n++] = (char[]){"--library-path"};
    words[n++] = libraries;
    words[n++] = program;
    for (int i = 1; i < argc; i++)
        words[n++] = argv[i];
    (void)execv(loader, words);
    (void)fprintf(stderr, "argus: cannot run '%s': %s\n", loader, strerror(errno));
    return LAUNCH_FAILED;
}
