/* SPDX-License-Identifier: Apache-2.0 */
/* account.c - see account.h. Limits that are missing in the server's reply are no limit. */
#include "argus/people/account.h"

#include <stdio.h>
#include <string.h>

#include "argus/show/member.h"
#include "base/str.h"
#include "base/text.h"
#include "core/job/quota.h"

enum { MEMBERS_MAX = 256 << 10 };

void account_jobs(struct table *t, const json_t *account, const struct when *w)
{
    const json_t *usage = json_get_object(account, "usage");
    (void)w;
    table_addf(t, STYLE_PLAIN, "%d",
               (int)(json_get_int(usage, "running", 0) + json_get_int(usage, "queued", 0)));
}

static void account_line(struct cli *cli, const char *title, const char *text)
{
    if (text && *text)
        (void)fprintf(cli->out, "%-18s %s\n", title, text);
}

static void account_limit(struct cli *cli,
                          const json_t *account,
                          const char *title,
                          const char *key,
                          const char *used)
{
    const json_t *quota = json_get_object(account, "quota");
    const json_t *usage = json_get_object(account, "usage");
    double most = json_get_real(quota, key, -1);
    char text[80] = "no limit";
    if (most >= 0)
        text_printf(text, "%g", most);
    size_t n = strlen(text);
    if (used)
        text_printf_to(text + n, sizeof(text) - n, ", %.4g used", json_get_real(usage, used, 0));
    account_line(cli, title, text);
}

void account_print(struct cli *cli, const json_t *account, const struct seen *seen)
{
    (void)seen;
    _cleanup_(buf_release) struct buf members = BUF_INIT(MEMBERS_MAX);
    size_t i;
    json_t *v;
    char text[40];
    json_array_foreach (json_get_array(account, "members"), i, v)
        (void)buf_addf(&members, "%s%s", i ? "," : "", str_or(json_string_value(v), "?")); /* cut */
    account_line(cli, "name", member_str(account, "name"));
    account_line(cli, "note", json_get_str(account, "note", ""));
    account_line(cli, "members", buf_str(&members));
    account_line(cli, "pool", json_get_str(account, "pool", ""));
    if (json_object_get(account, "share")) {
        text_printf(text, "%g", json_get_real(account, "share", 1));
        account_line(cli, "share", text);
        text_printf(text, "%d", (int)json_get_int(account, "priority_ceiling", 100));
        account_line(cli, "priority ceiling", text);
    }
    json_array_foreach (json_get_array(account, "alerts"), i, v)
        account_line(cli, i ? "" : "alerts", json_string_value(v));
#define LIMIT_LINE(key, ftype, option, arg, title, used, words)                                    \
    account_limit(cli, account, title, #key, used);
    QUOTA_LIMITS(LIMIT_LINE)
}
