/* SPDX-License-Identifier: Apache-2.0 */
/* unpack.c - any bytes as an archive: what is taken is what its manifest says, and below the tree.
 */
#define _GNU_SOURCE
#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "core/spec/snapshot.h"
#include "fsroot/content/unpack.h"
#include "fsroot/tree/dirtree.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct unpack_limits limits = {.bytes = 1 << 20, .entries = 100, .ratio = 100};
    struct manifest m = {0};
    struct err err = {0};
    char tree[] = "/dev/shm/argus-fuzz-XXXXXX";
    _cleanup_(closep) int fd = memfd_create("fuzz", MFD_CLOEXEC);
    hash_init();
    assert(fd >= 0 && file_write_all(fd, data, size) == 0 && mkdtemp(tree));
    _cleanup_(closep) int dir = open(tree, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = unpack_archive(fd, dir, size % 2, &limits, &m, &err);
    assert((r < 0) == (*err.text != 0) && m.n <= limits.entries);
    for (size_t i = 0; i < m.n; i++) {
        _cleanup_(freep) char *path = xasprintf("%s/%s", tree, m.v[i].path);
        assert(snapshot_check_path(m.v[i].path, NULL) == 0);
        bool is_there = false;
        assert(r < 0 || (file_look_for(path, &is_there, NULL) == 0 && is_there));
    }
    manifest_release(&m);
    assert(dirtree_remove(tree, NULL) == 0);
    return 0;
}
