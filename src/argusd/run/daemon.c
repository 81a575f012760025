/* SPDX-License-Identifier: Apache-2.0 */
/* daemon.c - argusd as a process: the loop, the signals that end it, what systemd is told, and the
 * exit status. What it does is services.h's. */
#include "argusd/run/daemon.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "argusd/ground/work.h"
#include "argusd/run/services.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"

/* From SIGTERM on: requests end within 3 s, and who waits for us is told 5. */
enum { PATIENCE_MS = 4000 };

struct argusd {
    uv_loop_t loop;
    struct services *services;
    uv_signal_t signals[2];
    uv_timer_t patience; /* runs from the signal on */
    bool stopping;
};

/* Type=notify: READY=1 and STATUS= to systemd, where there is one. */
static void notify(const char *text)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    if (!path || !*path || strlen(path) >= sizeof(at.sun_path))
        return;
    memcpy(at.sun_path, path, strlen(path) + 1);
    if (at.sun_path[0] == '@')
        at.sun_path[0] = 0;
    _cleanup_(closep) int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0) /* nobody listening is no reason to fail */
        (void)sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&at,
                     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path)));
}

/* Calls to the shared root still run: it hangs, or they are many. None can be taken back, and an
 * end without them is what a kill would be: what matters is in the store. */
static void on_patience_over(uv_timer_t *t)
{
    struct argusd *d = t->data;
    int status = services_flush(d->services);
    log_warn("argusd", "calls to the shared root have not come back, ending without them");
    _exit(status);
}

static void daemon_begin_stop(struct argusd *d)
{
    if (d->stopping)
        return;
    notify("STOPPING=1\nSTATUS=stopping");
    log_info("argusd", "stopping; running jobs go on");
    d->stopping = true;
    services_close(d->services);
    (void)uv_timer_start(&d->patience, on_patience_over, PATIENCE_MS, 0); /* never fails */
    for (size_t i = 0; i < array_len(d->signals); i++)
        uv_close((uv_handle_t *)&d->signals[i], NULL);
}

static void on_signal(uv_signal_t *s, int number)
{
    (void)number;
    daemon_begin_stop(s->data);
}

static void start_signals(struct argusd *d)
{
    static const int numbers[] = {SIGTERM, SIGINT};
    for (size_t i = 0; i < array_len(numbers); i++) {
        (void)uv_signal_init(&d->loop, &d->signals[i]); /* these fail only without memory */
        d->signals[i].data = d;
        (void)uv_signal_start(&d->signals[i], on_signal, numbers[i]);
    }
    (void)signal(SIGPIPE, SIG_IGN); /* a closed peer is an error code, not an end */
}

/* It keeps nothing alive: when all is over before, it never fires. */
static void prepare_patience(struct argusd *d)
{
    (void)uv_timer_init(&d->loop, &d->patience); /* never fails */
    d->patience.data = d;
    uv_unref((uv_handle_t *)&d->patience);
}

static void say_ready(const char *listen)
{
    char status[256];
    text_printf(status, "READY=1\nSTATUS=listening on %s", listen);
    notify(status);
}

static int daemon_start(struct argusd *d, const struct settings *settings, struct err *err)
{
    int r = services_open(d->services, err);
    if (r < 0) {
        services_close(d->services);
        return r;
    }
    start_signals(d);
    services_start(d->services);
    say_ready(settings->listen);
    return 0;
}

int daemon_run(struct settings *settings, const struct web_file *web, const struct web_file *client)
{
    struct argusd *d = xcalloc(1, sizeof(*d));
    struct err err = {0};
    char threads[16];
    (void)umask(022);
    text_printf(threads, "%d", WORK_THREADS);
    (void)setenv("UV_THREADPOOL_SIZE", threads, 0); /* a hung NFS call must not stop the others */
    if (uv_loop_init(&d->loop) < 0) {
        free(d);
        return 1;
    }
    work_shares_new(&d->loop);
    prepare_patience(d);
    d->services = services_new(&d->loop, settings, web, client);
    int status = daemon_start(d, settings, &err) < 0 ? 1 : 0;
    if (status)
        (void)fprintf(stderr, "argusd: %s\n", err.text); /* nowhere else to say it */
    (void)uv_run(&d->loop, UV_RUN_DEFAULT); /* until daemon_begin_stop() closed everything */
    uv_close((uv_handle_t *)&d->patience, NULL);
    if (services_free(d->services) != 0 && status == 0)
        status = 1;
    if (err.code == ERR_USAGE)
        status = 2;
    work_shares_free(&d->loop);
    (void)uv_loop_close(&d->loop); /* a handle left would be our bug, and harmless now */
    free(d);
    return status;
}
