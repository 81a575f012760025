/* SPDX-License-Identifier: Apache-2.0 */
/* host.h - what the shepherd can say about the machine it runs on. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { HOST_NAME_MAX_BYTES = 256, HOST_IP_MAX_BYTES = 64 };

/* The node's name; "unknown" when the system will not tell. */
void host_name(char name[static HOST_NAME_MAX_BYTES]);

/* Our address on the way to ray_address ("10.0.0.1:6379"); "" when that is no such text or
 * there is no way. Sends nothing. */
void host_ip(const char *ray_address, char ip[static HOST_IP_MAX_BYTES]);

/* The memory of our cgroup; -1: it cannot be read, or there is no limit. */
struct host_memory {
    int64_t oom_kills;  /* how often the kernel has killed in it */
    int64_t max_bytes;  /* the lowest limit of this cgroup and those above it */
    int64_t peak_bytes; /* the most that it has held */
};
void host_memory_read(struct host_memory *ret);
/* host_memory() for the text of a given /proc/<pid>/cgroup and a given mount point of the cgroup
 * file system. */
void host_memory_of(const char *table, const char *mount, struct host_memory *ret);
/* The path of the cgroup of memory of a process (0: ours) as the kernel names it; NULL: not known.
 * Yours. */
char *host_memory_group(pid_t pid);
/* Whether this path, which may go on with what stands in no path, is that group's or below it. */
bool host_is_in_group(const char *group, const char *path);

/* The number in a text of "name value" lines; -1 when the name is not there. */
int64_t host_find_count(const char *text, const char *name);
