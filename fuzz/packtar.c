/* SPDX-License-Identifier: Apache-2.0 */
/* The archive of a job, as it may have been changed on the shared root: only read, below limits. */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <unistd.h>

#include "fsroot/archive/packtar.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct packlist l = {0};
    struct packlist_limits limits = {.bytes = 1 << 20, .entries = 100};
    int fd = memfd_create("archive", MFD_CLOEXEC);
    if (fd >= 0 && write(fd, data, size) == (ssize_t)size) {
        int r = packtar_read(fd, "j1", NULL, &limits, &l, NULL);
        if (r == 0 && (l.n == 0 || l.bytes > limits.bytes))
            __builtin_trap();
    }
    if (fd >= 0)
        (void)close(fd);
    packlist_release(&l);
    return 0;
}
