/* SPDX-License-Identifier: Apache-2.0 */
/* kernel.c - see kernel.h. /dev/kmsg gives one record for each read: "level,number,time,flags;text"
 * and more lines that begin with a blank. */
#define _GNU_SOURCE
#include "shepherd/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"

enum { RECORD_MAX = 8192, RECORDS_MAX = 200000, XID_LINE_MAX = 300 };

bool kernel_line_matters(const char *line, int *ret_xid)
{
    static const char *const words[] = {"Out of memory",     "oom-kill",      "oom_kill",
                                        "Memory cgroup out", "NVRM:",         "I/O error",
                                        "EXT4-fs error",     "XFS (",         "nfs: server",
                                        "segfault at",       "soft lockup",   "hung_task",
                                        "blocked for more",  "Machine check", "mce: ",
                                        "No space left",     "link down",     "mlx5_core"};
    const char *xid = strstr(line, "NVRM: Xid (");
    const char *number = xid ? strstr(xid, "): ") : NULL;
    *ret_xid = number ? (int)strtol(number + 3, NULL, 10) : 0;
    for (size_t i = 0; i < array_len(words); i++)
        if (strstr(line, words[i]))
            return true;
    return false;
}

static void take_record(struct kernel_log *k, char *record, usec_t since)
{
    int xid;
    const char *comma = strchr(record, ','), *second = comma ? strchr(comma + 1, ',') : NULL;
    char *text = strchr(record, ';');
    if (!second || !text || second > text || strtoull(second + 1, NULL, 10) < since)
        return;
    usec_t at = strtoull(second + 1, NULL, 10);
    text++;
    text[strcspn(text, "\n")] = 0;
    if (!kernel_line_matters(text, &xid))
        return;
    if (xid && !k->xid) {
        k->xid = xid;
        k->xid_line = xstrndup(text, strnlen(text, XID_LINE_MAX));
    }
    (void)buf_addf(&k->text, "[%llu.%06llu] %s\n", (unsigned long long)(at / USEC_SEC),
                   (unsigned long long)(at % USEC_SEC), text); /* what is too much is left out */
}

void kernel_log_read(struct kernel_log *k, usec_t since)
{
    char record[RECORD_MAX + 1];
    *k = (struct kernel_log){.text = BUF_INIT(KERNEL_TEXT_MAX)};
    _cleanup_(closep) int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    for (int i = 0; fd >= 0 && i < RECORDS_MAX; i++) {
        ssize_t n = read(fd, record, RECORD_MAX);
        if (n < 0 && (errno == EPIPE || errno == EINTR)) /* written over meanwhile: the next one */
            continue;
        if (n <= 0)
            return;
        record[n] = 0;
        take_record(k, record, since);
    }
}

void kernel_log_release(struct kernel_log *k)
{
    buf_release(&k->text);
    free(k->xid_line);
}
