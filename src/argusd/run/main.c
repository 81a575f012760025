/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - argusd: read the arguments, then do one thing. Usage is in usage_text. */
#include <getopt.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/api/routes.h"
#include "argusd/backup/backup_restore.h"
#include "argusd/ground/settings.h"
#include "argusd/run/daemon.h"
#include "argusd/run/init.h"
#include "argusd/web/pages.h"
#include "base/digest/hash.h"
#include "base/log.h"
#include "base/str.h"
#include "base/version.h"
#include "core/job/ports.h"
#include "core/spec/nodespec.h"
#include "core/spec/spec.h"

static const char usage_text[] =
    "usage: argusd [--config FILE] [--check]\n"
    "       argusd init [--config FILE] [--shared-root DIR [--state-dir DIR] [--listen ADDRESS]\n"
    "                   [--ray URL]] [--user NAME --role ROLE]\n"
    "       argusd restore [--config FILE] [--from NAME] [--key FILE] [--list]\n"
    "       argusd --list-config | --list-spec | --list-nodespec | --list-ports | --list-routes\n"
    "       argusd --version | --help\n"
    "\n"
    "  --config FILE      configuration (default /etc/argus/argus.yaml, or $ARGUS_CONFIG)\n"
    "  --check            read the configuration, say what is wrong with it, and end\n"
    "  --list-config      every key of the configuration with its type and default\n"
    "  --list-spec        the same for a JobSpec\n"
    "  --list-nodespec    the same for a NodeSpec\n"
    "  --list-ports       every port of Ray and Argus: the page docs/ports.md\n"
    "  --list-routes      every route of the HTTP API, one a line\n"
    "  init               write a configuration if there is none, make the store, and print\n"
    "                     the first admin token once; with --user, a further token; argus init\n"
    "                     does this and whatever else a new server needs\n"
    "  restore            put the newest backup, or --from NAME, in the place of the store;\n"
    "                     refused while argusd runs; what was there is put aside; --list\n"
    "                     says which there are, --key is a copy of state_dir's backup.key\n";

enum { EXIT_USAGE = 2, ARENAS = 2, TRIM_BYTES = 1 << 20 };

/* Made by web/; without it (-Dweb=disabled) there is none. */
extern const struct web_file WEB_FILES[];
/* Made by tools/client/wheel. */
extern const struct web_file CLIENT_FILES[];

static int print(struct buf *out)
{
    (void)fputs(buf_str(out), stdout); /* a closed stdout shows in fflush */
    buf_release(out);
    return fflush(stdout) ? 1 : 0;
}

static int list_config(void)
{
    struct buf out = BUF_INIT(1 << 20);
    size_t n;
    const struct field *keys = settings_keys(&n);
    field_describe(keys, n, &out);
    return print(&out);
}

static int list_spec(void)
{
    struct buf out = BUF_INIT(1 << 20);
    spec_describe(&out);
    return print(&out);
}

static int list_nodespec(void)
{
    struct buf out = BUF_INIT(1 << 20);
    nodespec_describe(&out);
    return print(&out);
}

static int list_ports(void)
{
    struct buf out = BUF_INIT(1 << 20);
    ports_page(&out);
    return print(&out);
}

static int list_routes(void)
{
    struct buf out = BUF_INIT(1 << 20);
    size_t n;
    _cleanup_(freep) struct http_route *routes = routes_join(&n);
    for (size_t i = 0; i < n; i++)
        if (!(routes[i].flags & HTTP_ROUTE_HIDDEN))
            (void)buf_addf(&out, "%s %s\t%s\n", routes[i].method, routes[i].pattern,
                           str_or(routes[i].summary, "")); /* the ceiling is far away */
    return print(&out);
}

static int load(const char *config, struct settings *ret)
{
    struct problems ps = {0};
    int r = settings_load(config, ret, &ps);
    struct buf out = BUF_INIT(1 << 20);
    problems_to_text(&ps, config, MESSAGE_ENGLISH, &out);
    (void)fputs(buf_str(&out), stderr); /* nowhere else to say it */
    buf_release(&out);
    problems_release(&ps);
    return r;
}

static bool main_restore_option(int c, struct restore_args *a)
{
    if (c == 'f')
        a->from = optarg;
    if (c == 'b')
        a->key = optarg;
    a->list = a->list || c == 'i';
    return c == 'f' || c == 'b' || c == 'i';
}

static int restore_main_run(const char *config, const struct restore_args *a)
{
    struct settings settings = {0};
    int status = EXIT_USAGE;
    if (load(config, &settings) == 0)
        status = backup_restore(&settings, a);
    settings_release(&settings);
    return status;
}

static int daemon_main_run(const char *config, bool check)
{
    struct settings settings = {0};
    int status = EXIT_USAGE;
    if (load(config, &settings) == 0)
        status = check ? printf("%s can be used\n", config) < 0
                       : daemon_run(&settings, WEB_FILES, CLIENT_FILES);
    settings_release(&settings);
    return status;
}

/* Where its value lies goes by the letter; false: it is none of `init`. */
static bool main_init_option(struct init_args *a, int letter)
{
    const char **to = letter == 's'   ? &a->shared_root
                      : letter == 'd' ? &a->state_dir
                      : letter == 'a' ? &a->listen
                      : letter == 'y' ? &a->ray
                      : letter == 'u' ? &a->user
                      : letter == 'r' ? &a->role
                                      : NULL;
    if (to)
        *to = optarg;
    return to != NULL;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"config", required_argument, NULL, 'c'},
                                            {"check", no_argument, NULL, 'k'},
                                            {"list-config", no_argument, NULL, 'l'},
                                            {"list-spec", no_argument, NULL, 'p'},
                                            {"list-nodespec", no_argument, NULL, 'n'},
                                            {"list-ports", no_argument, NULL, 't'},
                                            {"list-routes", no_argument, NULL, 'o'},
                                            {"version", no_argument, NULL, 'v'},
                                            {"help", no_argument, NULL, 'h'},
                                            {"shared-root", required_argument, NULL, 's'},
                                            {"state-dir", required_argument, NULL, 'd'},
                                            {"listen", required_argument, NULL, 'a'},
                                            {"ray", required_argument, NULL, 'y'},
                                            {"user", required_argument, NULL, 'u'},
                                            {"role", required_argument, NULL, 'r'},
                                            {"from", required_argument, NULL, 'f'},
                                            {"key", required_argument, NULL, 'b'},
                                            {"list", no_argument, NULL, 'i'},
                                            {0}};
    const char *env = getenv("ARGUS_CONFIG");
    struct init_args init = {.config = env ? env : "/etc/argus/argus.yaml"};
    struct restore_args restore = {0};
    bool check = false;
    int c;
    /* Small blocks beyond malloc's own cache of the thread merge at once. Else each free beside the
     * top of the heap, and there is one in each request, walks all of them. */
    (void)mallopt(M_MXFAST, 0);
    /* What a worker of the pool freed is used by the next one, and goes back to the system from its
     * heap's top: 14 MB of 77 with 10,000 jobs and 1,000 nodes (bench/observe memory). */
    (void)mallopt(M_ARENA_MAX, ARENAS);
    (void)mallopt(M_TRIM_THRESHOLD, TRIM_BYTES);
    while ((c = getopt_long(argc, argv, "c:h", options, NULL)) != -1) {
        switch (c) {
        case 'c':
            init.config = optarg;
            break;
        case 'k':
            check = true;
            break;
        case 'l':
            return list_config();
        case 'p':
            return list_spec();
        case 'n':
            return list_nodespec();
        case 't':
            return list_ports();
        case 'o':
            return list_routes();
        case 'v':
            return printf("argusd %s (%s)\n", ARGUS_VERSION, ARGUS_COMMIT) < 0;
        case 'h':
            return fputs(usage_text, stdout) < 0;
        default:
            if (main_init_option(&init, c) || main_restore_option(c, &restore))
                break;
            (void)fputs("try 'argusd --help'\n", stderr); /* getopt has said what is wrong */
            return EXIT_USAGE;
        }
    }
    log_init();
    hash_init();
    if (optind < argc && !strcmp(argv[optind], "init") && optind + 1 == argc)
        return init_run(&init);
    if (optind < argc && !strcmp(argv[optind], "restore") && optind + 1 == argc)
        return restore_main_run(init.config, &restore);
    if (optind < argc) {
        (void)fprintf(stderr, "argusd: unknown argument '%s'; try 'argusd --help'\n",
                      argv[optind]); /* nowhere else to say it */
        return EXIT_USAGE;
    }
    return daemon_main_run(init.config, check);
}
