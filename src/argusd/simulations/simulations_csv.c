/* SPDX-License-Identifier: Apache-2.0 */
/* simulations_csv.c - see simulations_csv.h. Lines end as RFC 4180 has them, and a name is always
 * quoted. What does not fit makes out->failed, which the reply looks at. */
#include "argusd/simulations/simulations_csv.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/message.h"
#include "base/str.h"

/* An empty field where there is no number. */
static void csv_number(struct buf *out, const json_t *v)
{
    (void)buf_addc(out, ',');
    if (json_is_number(v))
        (void)buf_addf(out, "%.15g", json_number_value(v));
}

static void csv_waits(struct buf *out, const json_t *waits)
{
    static const char *const keys[] = {"mean", "p50", "p95", "max"};
    for (size_t i = 0; i < array_len(keys); i++)
        csv_number(out, json_object_get(waits, keys[i]));
}

#define CSV_NUMBERS                                                                                \
    "gpus,jobs,never_started,utilisation,wait_mean_s,wait_p50_s,wait_p95_s,wait_max_s,"            \
    "bounded_slowdown,fragmentation\r\n"
static void csv_numbers(struct buf *out, const json_t *part)
{
    static const char *const first[] = {"gpus", "jobs", "never_started", "utilisation"},
                             *const last[] = {"bounded_slowdown", "fragmentation"};
    for (size_t i = 0; i < array_len(first); i++)
        csv_number(out, json_object_get(part, first[i]));
    csv_waits(out, json_object_get(part, "wait"));
    for (size_t i = 0; i < array_len(last); i++)
        csv_number(out, json_object_get(part, last[i]));
    (void)buf_adds(out, "\r\n");
}

static void csv_policies(const json_t *result, struct buf *out)
{
    const char *word;
    json_t *policy;
    (void)buf_adds(out, "policy," CSV_NUMBERS);
    json_object_foreach (json_object_get(result, "policies"), word, policy) {
        (void)buf_adds(out, word);
        csv_numbers(out, policy);
    }
}

static void csv_pools(const json_t *result, struct buf *out)
{
    const char *word, *name;
    json_t *policy, *pool;
    (void)buf_adds(out, "pool,policy," CSV_NUMBERS);
    json_object_foreach (json_object_get(result, "policies"), word, policy)
        json_object_foreach (json_object_get(policy, "pools"), name, pool) {
            buf_add_csv(out, name);
            (void)buf_addf(out, ",%s", word);
            csv_numbers(out, pool);
        }
}

static void csv_sizes(const json_t *result, struct buf *out)
{
    const char *word, *size;
    json_t *policy, *waits;
    (void)buf_adds(out, "gpus,policy,jobs,wait_mean_s,wait_p50_s,wait_p95_s,wait_max_s\r\n");
    json_object_foreach (json_object_get(result, "policies"), word, policy)
        json_object_foreach (json_object_get(policy, "gangs"), size, waits) {
            buf_add_csv(out, size); /* "2-4" is no date */
            (void)buf_addf(out, ",%s", word);
            csv_number(out, json_object_get(waits, "jobs"));
            csv_waits(out, waits);
            (void)buf_adds(out, "\r\n");
        }
}

static void csv_series(const json_t *result, struct buf *out)
{
    const char *word;
    json_t *policy, *v;
    usec_t start = 0;
    size_t i;
    double bucket = json_get_real(result, "bucket", 0);
    if (clock_from_string(json_get_str(result, "start", ""), &start, NULL) < 0)
        start = 0; /* our own words are times */
    (void)buf_adds(out, "time,policy,gpus_used,jobs_waiting\r\n");
    json_object_foreach (json_object_get(result, "policies"), word, policy)
        json_array_foreach (json_get_array(policy, "used"), i, v) {
            char at[CLOCK_TEXT_MAX];
            usec_t when = start + (usec_t)((double)i * bucket * 1e6);
            (void)buf_addf(out, "%s,%s", clock_to_string(when, at), word);
            csv_number(out, v);
            csv_number(out, json_array_get(json_get_array(policy, "queue"), i));
            (void)buf_adds(out, "\r\n");
        }
}

int simulations_csv(const char *result, const char *part, struct buf *out, struct err *err)
{
    static const struct {
        const char *part;
        void (*put)(const json_t *result, struct buf *out);
    } parts[] = {{"policies", csv_policies},
                 {"pools", csv_pools},
                 {"sizes", csv_sizes},
                 {"series", csv_series}};
    _cleanup_(json_unrefp) json_t *page = json_loads(result, 0, NULL);
    for (size_t i = 0; i < array_len(parts); i++)
        if (str_eq(parts[i].part, part)) {
            parts[i].put(page, out);
            return 0;
        }
    return message_refuse(err, ERR_BAD_REQUEST, "simulation_part",
                          MESSAGE_ARGS(MESSAGE_STR("part", part)));
}
