/* SPDX-License-Identifier: Apache-2.0 */
/* nodepage.c - one line for each thing that is known of a machine; see nodepage.h. A line never
 * holds what a terminal could take for more than text. */
#include "argus/machine/nodepage.h"

#include <inttypes.h>

#include "argus/job/jobview.h"
#include "argus/job/netcheck.h"
#include "argus/machine/nodecall.h"
#include "argus/show/member.h"
#include "argus/show/text.h"
#include "base/str.h"

enum { PAGE_LINE_MAX = 4096, PAGE_LABEL = 12 };

static void page_line(struct cli *cli, const char *label, const char *fmt, ...) printf_like(3, 4);

static void page_line(struct cli *cli, const char *label, const char *fmt, ...)
{
    _cleanup_(buf_release) struct buf line = BUF_INIT(PAGE_LINE_MAX);
    _cleanup_(buf_release) struct buf clean = BUF_INIT(PAGE_LINE_MAX);
    va_list ap;
    va_start(ap, fmt);
    (void)buf_vaddf(&line, fmt, ap); /* cut: fine */
    va_end(ap);
    text_clean(&clean, buf_str(&line));
    if (clean.len)
        (void)fprintf(cli->out, "%-*s %s\n", PAGE_LABEL, label, buf_str(&clean));
}

/* A text of the reply: no line when it is not there. */
static void page_text(struct cli *cli, const char *label, const json_t *o, const char *key)
{
    page_line(cli, label, "%s", json_get_str(o, key, ""));
}

static void page_network(struct cli *cli, const json_t *facts)
{
    const char *layer = json_get_str(facts, "link_layer", ""), *bond;
    const char *gid = json_get_str(facts, "gid_index", ""), *roce = json_get_str(facts, "roce", "");
    int64_t mbps = json_get_int(facts, "interface_mbps", 0);
    if (!*layer)
        return;
    bond = json_get_str(facts, "bond_of", "");
    page_line(cli, "interface", "%s%s%s%s, MTU %" PRId64, member_str(facts, "interface"),
              *bond ? " (" : "", bond, *bond ? ")" : "", json_get_int(facts, "mtu", 0));
    if (mbps)
        page_line(cli, "speed", "%" PRId64 " Mbit/s", mbps);
    page_line(cli, "links", "%s%s%s%s%s", layer, *roce ? " " : "", roce, *gid ? ", GID index " : "",
              gid);
    if (*json_get_str(facts, "hca", ""))
        page_line(cli, "RDMA ports", "%s, %" PRId64 " Gbit/s each", member_str(facts, "hca"),
                  json_get_int(facts, "rdma_gbps", 0));
}

static void page_variables(struct cli *cli, const json_t *env)
{
    const char *name, *label = "network env";
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)env, name, value) { /* it only reads */
        page_line(cli, label, "%s=%s", name, json_is_string(value) ? json_string_value(value) : "");
        label = "";
    }
}

void nodepage_print(struct cli *cli, const json_t *node, const struct seen *seen)
{
    const json_t *facts = json_get_object(node, "facts"), *gpus = json_get_object(node, "gpus");
    _cleanup_(freep) char *state = jobview_state(node), *reason = jobview_reason(node);
    (void)seen;
    page_text(cli, "node", node, "name");
    page_line(cli, "state", "%s", state);
    page_line(cli, "reason", "%s", reason);
    page_text(cli, "health", node, "health");
    page_text(cli, "pool", node, "pool");
    page_text(cli, "address", node, "ip");
    page_line(cli, "GPUs", "%g, %g free, %g used", json_get_real(gpus, "total", 0),
              json_get_real(gpus, "free", 0), json_get_real(gpus, "used", 0));
    page_text(cli, "GPU type", node, "gpu_type");
    page_text(cli, "Ray", facts, "ray");
    page_text(cli, "Python", facts, "python");
    page_text(cli, "image", facts, "image");
    page_text(cli, "host key", node, "host_key");
    page_network(cli, facts);
    page_variables(cli, json_get_object(node, "network_env"));
    netcheck_print_pairs(cli, json_get_array(node, "network_peers"), member_str(node, "name"));
    (void)nodecall_print_findings(cli, node);
}
