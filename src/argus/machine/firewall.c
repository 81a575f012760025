/* SPDX-License-Identifier: Apache-2.0 */
/* firewall.c - writes the rules down in three forms; see firewall.h. All of an answer is checked
 * before the first line is written, so that nothing of a bad one is printed. Within a form each
 * rule first lets in whom it names and then, where it is closed, keeps all others out. */
#include "argus/machine/firewall.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/message.h"
#include "base/str.h"

struct rule {
    const char *key, *from, *why;
    const json_t *sources;
    int64_t first, last;
    bool closed;
};

static struct rule rule_of(const json_t *v)
{
    return (struct rule){.key = json_get_str(v, "key", ""),
                         .from = json_get_str(v, "from", ""),
                         .why = json_get_str(v, "why", ""),
                         .sources = json_get_array(v, "sources"),
                         .first = json_get_int(v, "first", 0),
                         .last = json_get_int(v, "last", 0),
                         .closed = json_get_bool(v, "closed", true)};
}

/* ---- what may stand in a rule ---- */

static bool is_plain_text(const char *s)
{
    for (; *s; s++)
        if ((unsigned char)*s < ' ' || *s == 0x7f)
            return false; /* it would end a comment */
    return true;
}

static int firewall_check_rule(const struct rule *rule, struct err *err)
{
    size_t i;
    json_t *v;
    bool good = rule->first >= 1 && rule->last >= rule->first && rule->last <= 65535 &&
                is_plain_text(rule->key) && is_plain_text(rule->from) && is_plain_text(rule->why);
    json_array_foreach (rule->sources, i, v) {
        const char *s = json_is_string(v) ? json_string_value(v) : "";
        good = good && *s && !s[strspn(s, "0123456789abcdefABCDEF.:/")];
    }
    return good ? 0
                : message_refuse(err, ERR_REFUSED, "cli_no_rule",
                                 MESSAGE_ARGS(MESSAGE_STR("text", rule->key)));
}

static int firewall_check(const json_t *answer, struct err *err)
{
    size_t i;
    json_t *v;
    bool named = is_plain_text(json_get_str(answer, "node", "")) &&
                 is_plain_text(json_get_str(answer, "address", ""));
    int r = named ? 0 : message_refuse(err, ERR_REFUSED, "cli_no_node", MESSAGE_NO_ARGS);
    json_array_foreach (json_get_array(answer, "rules"), i, v) {
        struct rule rule = rule_of(v);
        if (r == 0)
            r = firewall_check_rule(&rule, err);
    }
    return r;
}

static int firewall_done(const struct buf *out, struct err *err)
{
    return out->failed ? message_refuse(err, ERR_TOO_LARGE, "cli_firewall_large", MESSAGE_NO_ARGS)
                       : 0;
}

/* ---- pieces; an overflow is looked at once, at the end ---- */

static bool is_v6(const char *source)
{
    return strchr(source, ':') != NULL;
}

/* How many were of that family. */
static size_t put_sources(struct buf *out, const json_t *sources, bool v6, const char *between)
{
    size_t i, n = 0;
    json_t *v;
    json_array_foreach (sources, i, v)
        if (is_v6(json_string_value(v)) == v6)
            (void)buf_addf(out, "%s%s", n++ ? between : "", json_string_value(v));
    return n;
}

static size_t count_sources(const json_t *sources, bool v6)
{
    size_t i, n = 0;
    json_t *v;
    json_array_foreach (sources, i, v)
        n += is_v6(json_string_value(v)) == v6;
    return n;
}

static void firewall_put_ports(struct buf *out, const struct rule *rule, char between)
{
    (void)buf_addf(out, "%" PRId64, rule->first);
    if (rule->last != rule->first)
        (void)buf_addf(out, "%c%" PRId64, between, rule->last);
}

static void firewall_put_head(struct buf *out, const json_t *answer, const char *use)
{
    const char *address = json_get_str(answer, "address", NULL);
    size_t i;
    json_t *v;
    (void)buf_addf(out, "# Ports of Ray and Argus on node '%s'%s%s%s%s\n",
                   json_get_str(answer, "node", ""), address ? " (" : "", address ? address : "",
                   address ? ")" : "", use);
    json_array_foreach (json_get_array(answer, "unknown"), i, v) {
        const char *side = json_is_string(v) ? json_string_value(v) : "";
        if (!strcmp(side, "prometheus") || !strcmp(side, "argusd"))
            (void)buf_addf(
                out, "# %s: its address is not known, so it is let in nowhere: add --%s ADDRESS\n",
                side, side);
        else if (!strcmp(side, "nodes") || !strcmp(side, "head"))
            (void)buf_addf(
                out, "# %s: not every address is known yet: print this again when all are online\n",
                side);
    }
}

/* Nothing is written of an answer that is none. */
static int firewall_begin(const json_t *answer, const char *use, struct buf *out, struct err *err)
{
    int r = firewall_check(answer, err);
    if (r == 0)
        firewall_put_head(out, answer, use);
    return r;
}

static void put_note(struct buf *out, const char *indent, const struct rule *rule)
{
    (void)buf_addf(out, "%s# %s: %s (%s)\n", indent, rule->key, rule->why, rule->from);
}

/* ---- forms ---- */

int firewall_plain(const json_t *answer, struct buf *out, struct err *err)
{
    size_t i;
    json_t *v;
    int r = firewall_begin(answer, "", out, err);
    if (r < 0)
        return r;
    json_array_foreach (json_get_array(answer, "rules"), i, v) {
        struct rule rule = rule_of(v);
        size_t at = out->len;
        firewall_put_ports(out, &rule, '-');
        while (!out->failed && out->len < at + 12)
            (void)buf_addc(out, ' ');
        (void)buf_addf(out, "%-12s from ", rule.key);
        size_t n = put_sources(out, rule.sources, false, ", ");
        if (n && count_sources(rule.sources, true))
            (void)buf_adds(out, ", ");
        n += put_sources(out, rule.sources, true, ", ");
        (void)buf_addf(out, n ? " (%s): %s\n" : "no known source (%s): %s\n", rule.from, rule.why);
    }
    return firewall_done(out, err);
}

static void put_iptables(struct buf *out, const json_t *answer, bool v6)
{
    const char *tool = v6 ? "ip6tables" : "iptables";
    size_t i;
    json_t *v;
    (void)buf_addf(out,
                   "%s -N ARGUS 2>/dev/null || %s -F ARGUS\n%s -A ARGUS -i lo -j RETURN\n"
                   "%s -A ARGUS -m conntrack --ctstate ESTABLISHED,RELATED -j RETURN\n",
                   tool, tool, tool, tool);
    json_array_foreach (json_get_array(answer, "rules"), i, v) {
        struct rule rule = rule_of(v);
        put_note(out, "", &rule);
        if (count_sources(rule.sources, v6)) {
            (void)buf_addf(out, "%s -A ARGUS -p tcp -s ", tool);
            (void)put_sources(out, rule.sources, v6, ",");
            (void)buf_adds(out, " --dport ");
            firewall_put_ports(out, &rule, ':');
            (void)buf_adds(out, " -j ACCEPT\n");
        }
        if (rule.closed) {
            (void)buf_addf(out, "%s -A ARGUS -p tcp --dport ", tool);
            firewall_put_ports(out, &rule, ':');
            (void)buf_adds(out, " -j DROP\n");
        }
    }
    (void)buf_addf(out, "%s -C INPUT -j ARGUS 2>/dev/null || %s -I INPUT -j ARGUS\n", tool, tool);
}

int firewall_iptables(const json_t *answer, struct buf *out, struct err *err)
{
    size_t i;
    json_t *v;
    bool has_v6 = is_v6(json_get_str(answer, "address", ""));
    int r = firewall_begin(answer, ": for sh, as root", out, err);
    if (r < 0)
        return r;
    json_array_foreach (json_get_array(answer, "rules"), i, v)
        has_v6 = has_v6 || count_sources(json_get_array(v, "sources"), true);
    (void)buf_adds(out, "set -e\n");
    put_iptables(out, answer, false);
    if (has_v6)
        put_iptables(out, answer, true);
    return firewall_done(out, err);
}

static void put_nft_family(struct buf *out, const struct rule *rule, bool v6)
{
    if (!count_sources(rule->sources, v6))
        return;
    (void)buf_addf(out, "        %s saddr { ", v6 ? "ip6" : "ip");
    (void)put_sources(out, rule->sources, v6, ", ");
    (void)buf_adds(out, " } tcp dport ");
    firewall_put_ports(out, rule, '-');
    (void)buf_adds(out, " accept\n");
}

int firewall_nft(const json_t *answer, struct buf *out, struct err *err)
{
    size_t i;
    json_t *v;
    int r = firewall_begin(answer, ": for nft -f -, as root", out, err);
    if (r < 0)
        return r;
    (void)buf_adds(out, "table inet argus\ndelete table inet argus\ntable inet argus {\n"
                        "    chain input {\n"
                        "        type filter hook input priority -1; policy accept;\n"
                        "        iifname \"lo\" accept\n"
                        "        ct state established,related accept\n");
    json_array_foreach (json_get_array(answer, "rules"), i, v) {
        struct rule rule = rule_of(v);
        put_note(out, "        ", &rule);
        put_nft_family(out, &rule, false);
        put_nft_family(out, &rule, true);
        if (rule.closed) {
            (void)buf_adds(out, "        tcp dport ");
            firewall_put_ports(out, &rule, '-');
            (void)buf_adds(out, " drop\n");
        }
    }
    (void)buf_adds(out, "    }\n}\n");
    return firewall_done(out, err);
}
