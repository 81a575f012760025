/* SPDX-License-Identifier: Apache-2.0 */
/* witness.c - any bytes as exit.json and as beat: present, or unreadable with a reason, but never
 * absent, since the file is there. */
#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "fsroot/attempt/witness.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const parts[] = {
        "jobs/j/attempts/1/beat",
        "jobs/j/attempts/1/exit.json",
        "jobs/j/attempts/1",
        "jobs/j/attempts",
        "jobs/j",
        "jobs",
    };
    char root[] = "/tmp/fuzz-witness-XXXXXX";
    assert(mkdtemp(root));
    int fd = open(root, O_DIRECTORY | O_CLOEXEC);
    for (size_t i = array_len(parts); i-- > 2;)
        assert(mkdirat(fd, parts[i], 0700) == 0);
    struct fsroot_exit end = {0};
    struct fsroot_beat beat = {0};
    for (size_t i = 0; i < 2; i++) {
        _cleanup_(freep) char *path = xasprintf("%s/%s", root, parts[i]);
        assert(file_write(path, data, size, 0600, 0, NULL) == 0);
    }
    fsroot_exit_read(root, "j", 1, &end);
    assert(end.seen == FSROOT_PRESENT || (end.seen == FSROOT_UNREADABLE && end.why[0]));
    fsroot_beat_read(root, "j", 1, &beat);
    assert(beat.seen == FSROOT_PRESENT || (beat.seen == FSROOT_UNREADABLE && beat.why[0]));

    for (size_t i = 0; i < array_len(parts); i++)
        assert(unlinkat(fd, parts[i], i < 2 ? 0 : AT_REMOVEDIR) == 0);
    assert(close(fd) == 0 && rmdir(root) == 0);
    return 0;
}
