/* SPDX-License-Identifier: Apache-2.0 */
/* demand.c - see demand.h. The numbers come from verl.c's rows; the few overrides
 * that change them are read from the spec. */
#include "core/verl/demand.h"

#include <math.h>
#include <stddef.h>

#include "base/str.h"

enum { STORAGE_UNITS = 8 }; /* verl's default */
static const double GIB = 1 << 30;

static double override_number(const struct spec *s, const char *key, double dflt)
{
    const char *text = spec_override_find(s, key);
    double v = dflt;
    if (!text || str_to_real(text, &v, NULL) < 0 || v < 0)
        return dflt;
    return v;
}

static void bundles(const struct spec *s, int cpus_per_gpu, struct demand *d)
{
    double per_gpu = s->cpus_per_gpu > 0 ? s->cpus_per_gpu : cpus_per_gpu;
    d->gpus_per_node = s->gpus_per_node;
    d->cpus_per_node = s->gpus_per_node * per_gpu;
}

static void of_ppo(const struct spec *s, const struct verl_version *v, struct demand *d)
{
    bundles(s, v->ppo_cpus_per_gpu, d);
    d->extra_cpus = 1; /* TaskRunner */
    if (v->has_loop_workers)
        d->extra_cpus += 1; /* they hold it one after another, only while they start */
    if (v->has_transfer_queue)
        d->extra_cpus +=
            1 + override_number(s, "transfer_queue.backend.SimpleStorage.num_data_storage_units",
                                STORAGE_UNITS);
}

/* Under torchrun the driver is the trainer: it holds the node's GPUs itself. */
static void of_sft(const struct spec *s, const struct verl_version *v, struct demand *d)
{
    if (v->sft_ray) {
        bundles(s, VERL_SFT_CPUS_PER_GPU, d);
        return;
    }
    d->driver_gpus = s->gpus_per_node;
    d->driver_cpus = fmax(d->driver_cpus, s->gpus_per_node * fmax(s->cpus_per_gpu, 1));
}

void demand_compute(const struct spec *s,
                    const struct verl_version *v,
                    const struct demand_defaults *dflt,
                    struct demand *ret)
{
    struct demand d = {.nnodes = (int)s->nnodes};
    d.driver_cpus = s->entrypoint_cpus >= 0 ? s->entrypoint_cpus : dflt ? dflt->entrypoint_cpus : 1;
    d.driver_gpus = dflt ? dflt->entrypoint_gpus : 0;
    d.memory_per_node = (double)s->memory_per_node / GIB;
    switch (s->workload) {
    case WORKLOAD_PPO:
    case WORKLOAD_GRPO:
        of_ppo(s, v, &d);
        break;
    case WORKLOAD_SFT:
        of_sft(s, v, &d);
        break;
    case WORKLOAD_GENERATE:
        bundles(s, v->generate_cpus_per_gpu, &d);
        d.extra_cpus = 1; /* the main task, or a server while it starts */
        break;
    case WORKLOAD_EVAL:
        d.extra_cpus = 1; /* its tasks run with as many CPUs as are free, one is enough */
        break;
    default:
        if (workload_has_entrypoint((enum workload)s->workload))
            bundles(s, 1, &d);
        d.cpus_per_node = fmax(d.cpus_per_node, s->cpus_per_node);
        break;
    }
    if (s->entrypoint_gpus >= 0)
        d.driver_gpus = s->entrypoint_gpus;
    *ret = d;
}

double demand_gpus(const struct demand *d)
{
    return d->nnodes * d->gpus_per_node + d->driver_gpus;
}

double demand_cpus(const struct demand *d)
{
    return d->nnodes * d->cpus_per_node + d->extra_cpus + d->driver_cpus;
}

double demand_memory(const struct demand *d)
{
    return d->nnodes * d->memory_per_node;
}
