/* SPDX-License-Identifier: Apache-2.0 */
/* host.h - what the shepherd can say about the machine it runs on. */
#pragma once
#include <stddef.h>
#include <stdint.h>

enum { HOST_NAME_MAX_BYTES = 256, HOST_IP_MAX_BYTES = 64 };

/* The node's name; "unknown" when the system will not tell. */
void host_name(char name[static HOST_NAME_MAX_BYTES]);

/* Our address on the way to ray_address ("10.0.0.1:6379"); "" when that is no such text or
 * there is no way. Sends nothing. */
void host_ip(const char *ray_address, char ip[static HOST_IP_MAX_BYTES]);

/* How often the kernel has killed for memory in our cgroup; -1 when it cannot be read. */
int64_t host_oom_kills(void);

/* The number in a text of "name value" lines; -1 when the name is not there. */
int64_t host_find_count(const char *text, const char *name);
