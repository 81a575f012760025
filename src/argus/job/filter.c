/* SPDX-License-Identifier: Apache-2.0 */
/* filter.c - checks the keys of filters and spells them as the list API wants; the
 * values are the server's business. See filter.h. */
#include "argus/job/filter.h"

#include <stdbool.h>
#include <string.h>

#include "argus/net/client.h"
#include "base/message.h"
#include "base/str.h"

/* The key at the beginning of "key=value", NULL if it is none of ours. */
static const char *filter_key_of(const char *filter)
{
    static const char *const keys[] = {"user", "project", "state", "workload", "pool"};
    for (size_t i = 0; i < array_len(keys); i++)
        if (str_starts(filter, keys[i]) && filter[strlen(keys[i])] == '=')
            return keys[i];
    return NULL;
}

bool filter_has(const struct strv *filters, const char *key)
{
    for (size_t i = 0; i < filters->n; i++)
        if (str_eq(filter_key_of(filters->v[i]), key))
            return true;
    return false;
}

int filter_to_query(const struct strv *filters, struct buf *query, struct err *err)
{
    bool has_state = false;
    for (size_t i = 0; i < filters->n; i++) {
        const char *filter = filters->v[i], *key = filter_key_of(filter);
        if (!key)
            return message_refuse(err, ERR_USAGE, "cli_no_filter",
                                  MESSAGE_ARGS(MESSAGE_STR("text", filter)));
        has_state |= str_eq(key, "state");
        url_query(query, key, filter + strlen(key) + 1);
    }
    if (!has_state)
        url_query(query, "state", "QUEUED,STARTING,RUNNING");
    return query->failed ? message_refuse(err, ERR_USAGE, "cli_filters_long", MESSAGE_NO_ARGS) : 0;
}
