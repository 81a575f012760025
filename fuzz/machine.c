/* SPDX-License-Identifier: Apache-2.0 */
/* machine.c - any bytes as what a machine, its ssh client and a known_hosts file say: answers are
 * whole, every text ends within its array, every code is of the table, an end that is not well has
 * its sentence. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "ssh/probe.h"
#include "ssh/raylet.h"
#include "ssh/remedycall.h"
#include "ssh/tcptry.h"
#include "ssh/trouble.h"

static void check_probe(const char *text, size_t size)
{
    struct probe_want want = {.ray_version = "2.51.1",
                              .python_version = "3.11",
                              .shared_root = "/shared",
                              .root_mark = "m",
                              .node_ip = "127.0.0.2",
                              .min_disk_bytes = 1 << 30,
                              .min_shm_bytes = 1 << 30,
                              .max_skew = USEC_MIN,
                              .owner = "o",
                              .node = "n"};
    static struct probe_result r;
    probe_read(text, size, &want, USEC_SEC, &r);
    assert(r.n_findings > 0 && r.n_findings <= PROBE_FINDINGS_MAX && r.facts.gpus >= 0);
    for (size_t i = 0; i < r.n_findings; i++) {
        bool is_known = false;
        for (int code = 0; code < PROBE_END; code++)
            is_known =
                is_known || r.findings[i].code == probe_code_to_string((enum probe_code)code);
        assert(is_known && r.findings[i].text[0] == '{');
        assert(memchr(r.findings[i].text, 0, sizeof(r.findings[i].text)));
    }
}

static void check_end(const struct raylet_end *e)
{
    assert(e->outcome < RAYLET_END && memchr(e->text, 0, sizeof(e->text)));
    assert((e->outcome == RAYLET_OK) == !e->text[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data, *live[] = {"j-1"};
    struct raylet_want want = {.live_jobs = live,
                               .n_live_jobs = 1,
                               .shared_root = "/shared",
                               .max_skew = USEC_MIN,
                               .max_write = USEC_SEC,
                               .gpus = 1};
    struct raylet_started started;
    struct raylet_stopped stopped;
    static struct raylet_look look;
    struct ssh_target t = {.name = "n", .host = "h"};
    struct ssh_result r = {0};
    char key[SSH_KEY_MAX];
    check_probe(text, size);
    raylet_read_start(text, size, &started);
    check_end(&started.end);
    assert(started.end.outcome != RAYLET_OK || started.facts.alive);
    raylet_read_stop(text, size, &stopped);
    check_end(&stopped.end);
    raylet_read_look(text, size, &want, USEC_SEC, &look);
    check_end(&look.end);
    free(look.cards);
    free(look.rdma);
    assert(look.n_jobs <= RAYLET_JOBS_MAX && (look.trouble[0] != 0) == (look.trouble_code[0] != 0));
    trouble_read(text, size, &t, "", &r);
    assert(r.trouble != SSH_OK && r.text[0] == '{');
    struct tcptry_want ports = {.ports = {6379, 9700}, .n = 2};
    int open = 0;
    assert(!tcptry_read(text, size, &ports, &open) || !open || open == 6379 || open == 9700);
    struct remedycall_found found;
    remedycall_read(text, size, &found);
    assert(found.sessions || !found.bytes);
    ssh_find_key(text, size, "n", key);
    assert(!key[0] || !strncmp(key, "SHA256:", 7));
    return 0;
}
