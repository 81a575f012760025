/* SPDX-License-Identifier: Apache-2.0 */
/* keeper.c - see keeper.h. argusd that ends by a signal to it ends well (status 0), and so does its
 * keeper; a bad configuration (status 2) is not tried again. Whatever argusd started, Ray's head
 * among it, goes on when argusd ends: that is why the unit kills one process only. */
#include "argus/setup/keeper.h"

#include <string.h>
#include <unistd.h>

#include "base/mem.h"

const char KEEPER_UNIT[] = "/etc/systemd/system/argusd.service";

static const char unit_text[] = "# Written by `argus init`.\n"
                                "[Unit]\n"
                                "Description=Argus: training on Ray clusters\n"
                                "Documentation=man:argusd(8) man:argus.yaml(5)\n"
                                "Wants=network-online.target\n"
                                "After=network-online.target remote-fs.target time-sync.target\n"
                                "\n"
                                "[Service]\n"
                                "Type=notify\n"
                                "ExecStart=%s --config %s\n"
                                "Restart=on-failure\n"
                                "RestartSec=2\n"
                                "RestartPreventExitStatus=2\n"
                                "# jobs and Ray go on while argusd is away\n"
                                "KillMode=process\n"
                                "LimitNOFILE=65536\n"
                                "\n"
                                "[Install]\n"
                                "WantedBy=multi-user.target\n";

static const char script_text[] =
    "#!/bin/sh\n"
    "# Written by `argus init`: keeps argusd running in the foreground, until TERM, INT or HUP.\n"
    "child=\n"
    "end() {\n"
    "    trap '' TERM INT HUP\n"
    "    [ -z \"$child\" ] || kill \"$child\" 2>/dev/null\n"
    "    wait\n"
    "    exit 0\n"
    "}\n"
    "trap end TERM INT HUP\n"
    "while :; do\n"
    "    %s --config %s &\n"
    "    child=$!\n"
    "    wait \"$child\"\n"
    "    status=$?\n"
    "    # 0: it was asked to end. 2: its configuration cannot be used, and it has said why.\n"
    "    case $status in 0 | 2) exit $status ;; esac\n"
    "    echo \"argusd ended with $status and is started again\" >&2\n"
    "    sleep 2 &\n"
    "    child=$!\n"
    "    wait \"$child\"\n"
    "done\n";

bool keeper_is_plain(const char *path)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "/._+-";
    return path[strspn(path, plain)] == 0;
}

void keeper_write_unit(struct buf *out, const char *argusd, const char *config)
{
    (void)buf_addf(out, unit_text, argusd, config); /* its ceiling shows where it is used */
}

void keeper_write_script(struct buf *out, const char *argusd, const char *config)
{
    (void)buf_addf(out, script_text, argusd, config); /* the same */
}

bool keeper_has_systemd(void)
{
    return access("/run/systemd/system", F_OK) == 0;
}

const char *keeper_find_unit(void)
{
    static const char *const places[] = {KEEPER_UNIT, "/usr/lib/systemd/system/argusd.service",
                                         "/lib/systemd/system/argusd.service"};
    for (size_t i = 0; i < array_len(places); i++)
        if (access(places[i], F_OK) == 0)
            return places[i];
    return NULL;
}
