/* SPDX-License-Identifier: Apache-2.0 */
/* log.h - four levels, one `key=value` line each, to stderr.
 *
 * base and core never log; the deciding function logs, once. Debug is switched by
 * component: ARGUS_DEBUG=all,-http. Line: "<time> <level> <component>: <sentence>
 * job=… node=…"; control characters are masked. */
#pragma once
#include <stdbool.h>

#include "base/mem.h"

enum log_level { LOG_LEVEL_ERR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* Reads ARGUS_DEBUG; called once from main(). */
void log_init(void);
bool log_is_debug(const char *component);

void log_line(enum log_level level, const char *component, const char *fmt, ...) printf_like(3, 4);

#define log_err(component, ...) log_line(LOG_LEVEL_ERR, component, __VA_ARGS__)
#define log_warn(component, ...) log_line(LOG_LEVEL_WARN, component, __VA_ARGS__)
#define log_info(component, ...) log_line(LOG_LEVEL_INFO, component, __VA_ARGS__)
#define log_debug(component, ...)                                                                  \
    do {                                                                                           \
        if (log_is_debug(component))                                                               \
            log_line(LOG_LEVEL_DEBUG, component, __VA_ARGS__);                                     \
    } while (0)
