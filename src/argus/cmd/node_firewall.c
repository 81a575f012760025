/* SPDX-License-Identifier: Apache-2.0 */
/* node_firewall.c - the rules of one machine, for people or for its packet filter. The server says
 * who is to reach what; here it is only written down, and nothing but addresses gets into a rule.
 */
#include "argus/cmd/cmd.h"

#include <inttypes.h>
#include <string.h>

#include "argus/firewall.h"
#include "argus/nodecall.h"
#include "base/str.h"

struct firewall_opts {
    int format;
    const char *argusd, *prometheus;
};

static const char *const FORMATS[] = {"plain", "iptables", "nft", "json", NULL};
enum format { FORMAT_PLAIN, FORMAT_IPTABLES, FORMAT_NFT, FORMAT_JSON };

#define AT(member) offsetof(struct firewall_opts, member)
static const struct opt OPTS[] = {
    {.name = "format",
     .type = OPT_CHOICE,
     .offset = AT(format),
     .arg = "FORMAT",
     .doc = "plain, iptables (commands for sh), nft (for nft -f -) or json",
     .choices = FORMATS},
    {.name = "argusd",
     .type = OPT_TEXT,
     .offset = AT(argusd),
     .arg = "ADDRESS",
     .doc = "argusd as the machine sees it, where that is not argusd's own address"},
    {.name = "prometheus",
     .type = OPT_TEXT,
     .offset = AT(prometheus),
     .arg = "ADDRESS",
     .doc = "who reads the metrics; several are parted by commas, networks are 10.0.0.0/24"},
};

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct firewall_opts *o = opts;
    static firewall_f *const writers[] = {
        [FORMAT_PLAIN] = firewall_plain,
        [FORMAT_IPTABLES] = firewall_iptables,
        [FORMAT_NFT] = firewall_nft,
    };
    _cleanup_(json_unrefp) json_t *answer = NULL;
    _cleanup_(buf_release) struct buf path = BUF_INIT(FIREWALL_MAX), out = BUF_INIT(FIREWALL_MAX);
    _cleanup_(freep) char *at = nodecall_path(args->v[0], "/firewall");
    int r = cli_open(cli, err);
    if (r < 0)
        return r;
    (void)buf_adds(&path, at); /* what does not fit is refused by the server */
    url_query(&path, "argusd", o->argusd);
    url_query(&path, "prometheus", o->prometheus);
    r = client_get(cli->client, buf_str(&path), &answer, err);
    if (r < 0)
        return r;
    if (o->format == FORMAT_JSON) {
        cli_emit(cli, answer, OUTPUT_JSON);
        return 0;
    }
    r = writers[o->format](answer, &out, err);
    if (r == 0)
        (void)fwrite(out.data, 1, out.len, cli->out); /* main() looks at stdout */
    return r;
}

const struct command cmd_node_firewall = {
    .name = "node firewall",
    .args = "NODE",
    .least = 1,
    .most = 1,
    .summary = "print the packet filter rules of one machine",
    .text = "Prints who is to reach which port of a machine, with its own ports: argusd, the head, "
            "the other nodes, Prometheus. Others are kept out of these ports, and of no others; "
            "sshd is let in for argusd, and who else may is yours to say. Print it again when "
            "machines were added.",
    .example = "argus node firewall node-1 --prometheus 10.0.0.9\tto read\n"
               "argus node firewall node-1 --format nft | ssh node-1 sudo nft -f -\tto apply",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct firewall_opts),
    .run = run,
};
