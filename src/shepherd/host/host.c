/* SPDX-License-Identifier: Apache-2.0 */
/* host.c - name, address and memory events of this machine; see host.h.
 *
 * No name is resolved: that would need libraries which a static program cannot load. */
#define _GNU_SOURCE
#include "shepherd/host/host.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "base/text.h"

enum { PROC_MAX = 64 << 10 };

void host_name(char name[static HOST_NAME_MAX_BYTES])
{
    name[HOST_NAME_MAX_BYTES - 1] = 0;
    if (gethostname(name, HOST_NAME_MAX_BYTES - 1) < 0 || !name[0])
        memcpy(name, "unknown", sizeof("unknown"));
}

void host_ip(const char *ray_address, char ip[static HOST_IP_MAX_BYTES])
{
    struct sockaddr_in to = {.sin_family = AF_INET}, us;
    socklen_t len = sizeof(us);
    int64_t port;
    ip[0] = 0;
    const char *colon = ray_address ? strrchr(ray_address, ':') : NULL;
    if (!colon || str_to_int(colon + 1, 1, 65535, &port, NULL) < 0)
        return;
    _cleanup_(freep) char *host = xstrndup(ray_address, (size_t)(colon - ray_address));
    to.sin_port = htons((uint16_t)port);
    if (inet_pton(AF_INET, host, &to.sin_addr) != 1)
        return;
    _cleanup_(closep) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0 ||
        getsockname(fd, (struct sockaddr *)&us, &len) < 0)
        return;
    (void)inet_ntop(AF_INET, &us.sin_addr, ip, HOST_IP_MAX_BYTES); /* fits */
}

int64_t host_find_count(const char *text, const char *name)
{
    size_t n = strlen(name);
    for (const char *line = text; *line; line += strcspn(line, "\n")) {
        line += *line == '\n';
        if (!strncmp(line, name, n) && line[n] == ' ')
            return strtoll(line + n + 1, NULL, 10);
    }
    return -1;
}

/* The path after "<n>:<controllers>:" of the line that has this controller ("" for version 2). */
static char *own_cgroup(const char *table, const char *controller)
{
    for (const char *line = table; *line;) {
        size_t len = strcspn(line, "\n");
        const char *first = memchr(line, ':', len);
        size_t left = first ? len - (size_t)(first + 1 - line) : 0;
        const char *second = first ? memchr(first + 1, ':', left) : NULL;
        size_t n = second ? (size_t)(second - first) - 1 : 0;
        if (second && n == strlen(controller) && !strncmp(first + 1, controller, n))
            return xstrndup(second + 1, (size_t)(line + len - second) - 1);
        line += len + (line[len] == '\n');
    }
    return NULL;
}

/* ---- memory ---- */

/* Version 2 of the kernel's groups, and version 1 where memory is still there. */
static const struct layout {
    const char *controller, *mount, *kills, *max, *peak;
} LAYOUTS[] = {
    {"", "", "memory.events", "memory.max", "memory.peak"},
    {"memory", "/memory", "memory.oom_control", "memory.limit_in_bytes",
     "memory.max_usage_in_bytes"},
};
static const int64_t NO_LIMIT = (int64_t)1 << 60; /* version 1 says a number of pages near 2^63 */

/* A file of a group; false: it cannot be read. */
static bool host_read_group(const char *dir, const char *group, const char *file, struct buf *out)
{
    _cleanup_(freep) char *path = xasprintf("%s%s/%s", dir, group, file);
    return file_read(path, out, NULL) == 0;
}

/* -1: there is none. */
static int64_t host_read_number(const char *dir, const char *group, const char *file)
{
    _cleanup_(buf_release) struct buf text = BUF_INIT(PROC_MAX);
    if (!host_read_group(dir, group, file, &text) || buf_str(&text)[0] < '0' ||
        buf_str(&text)[0] > '9')
        return -1;
    int64_t n = strtoll(buf_str(&text), NULL, 10);
    return n < NO_LIMIT ? n : -1;
}

static int64_t lowest_limit(const char *dir, const char *group, const char *file)
{
    _cleanup_(freep) char *at = xstrdup(group);
    int64_t lowest = -1;
    for (;;) {
        int64_t n = host_read_number(dir, at, file);
        if (n >= 0 && (lowest < 0 || n < lowest))
            lowest = n;
        char *slash = strrchr(at, '/');
        if (!slash)
            return lowest;
        *slash = 0;
    }
}

/* Inside a container the path is the host's, while the mount begins at our own group. */
static bool read_layout(const struct layout *l,
                        const char *table,
                        const char *mount,
                        struct host_memory *ret)
{
    _cleanup_(freep) char *own = own_cgroup(table, l->controller);
    _cleanup_(freep) char *dir = xasprintf("%s%s", mount, l->mount);
    _cleanup_(buf_release) struct buf events = BUF_INIT(PROC_MAX);
    if (!own)
        return false;
    const char *group = str_eq(own, "/") ? "" : own;
    if (!host_read_group(dir, group, l->kills, &events))
        group = "";
    if (!events.len && !host_read_group(dir, group, l->kills, &events))
        return false;
    ret->oom_kills = host_find_count(buf_str(&events), "oom_kill");
    ret->max_bytes = lowest_limit(dir, group, l->max);
    ret->peak_bytes = host_read_number(dir, group, l->peak);
    return ret->oom_kills >= 0;
}

void host_memory_of(const char *table, const char *mount, struct host_memory *ret)
{
    *ret = (struct host_memory){-1, -1, -1};
    for (size_t i = 0; i < array_len(LAYOUTS); i++)
        if (read_layout(&LAYOUTS[i], table, mount, ret))
            return;
}

void host_memory_read(struct host_memory *ret)
{
    _cleanup_(buf_release) struct buf table = BUF_INIT(PROC_MAX);
    (void)!file_read("/proc/self/cgroup", &table, NULL); /* then there is no group */
    host_memory_of(buf_str(&table), "/sys/fs/cgroup", ret);
}

char *host_memory_group(pid_t pid)
{
    char path[64] = "/proc/self/cgroup";
    _cleanup_(buf_release) struct buf table = BUF_INIT(PROC_MAX);
    if (pid > 0)
        text_printf(path, "/proc/%d/cgroup", (int)pid);
    (void)!file_read(path, &table, NULL); /* as above */
    char *v1 = own_cgroup(buf_str(&table), "memory");
    return v1 ? v1 : own_cgroup(buf_str(&table), "");
}

bool host_is_in_group(const char *group, const char *path)
{
    size_t n = group ? strlen(group) : 0;
    return n > 1 && path && !strncmp(path, group, n) && strchr(",/ ", path[n]); /* the end too */
}
