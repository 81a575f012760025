/* SPDX-License-Identifier: Apache-2.0 */
/* host.c - name, address and memory events of this machine; see host.h.
 *
 * No name is resolved: that would need libraries which a static program cannot load. */
#define _GNU_SOURCE
#include "shepherd/host.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"

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

static int64_t read_count(const char *path, const char *name)
{
    _cleanup_(buf_release) struct buf text = BUF_INIT(PROC_MAX);
    return file_read(path, &text, NULL) < 0 ? -1 : host_find_count(buf_str(&text), name);
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

/* Inside a container the path is the host's, while the mount begins at our own group. */
static int64_t count_in(const char *mount, const char *group, const char *file)
{
    if (!group)
        return -1;
    _cleanup_(freep) char *full = xasprintf("%s%s/%s", mount, group, file);
    _cleanup_(freep) char *bare = xasprintf("%s/%s", mount, file);
    int64_t n = read_count(full, "oom_kill");
    return n >= 0 ? n : read_count(bare, "oom_kill");
}

int64_t host_oom_kills(void)
{
    _cleanup_(buf_release) struct buf table = BUF_INIT(PROC_MAX);
    if (file_read("/proc/self/cgroup", &table, NULL) < 0)
        return -1;
    _cleanup_(freep) char *v2 = own_cgroup(buf_str(&table), "");
    _cleanup_(freep) char *v1 = own_cgroup(buf_str(&table), "memory");
    int64_t n = count_in("/sys/fs/cgroup", v2, "memory.events");
    return n >= 0 ? n : count_in("/sys/fs/cgroup/memory", v1, "memory.oom_control");
}
