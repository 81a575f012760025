/* SPDX-License-Identifier: Apache-2.0 */
/* nvml.h - the driver's own library, opened at run time: what each GPU does now.
 *
 * There is no header and no library of NVIDIA in the build: types are written here as the library's
 * binary interface has them, functions are looked up by name, and one that an older driver lacks is
 * a figure that is not told. Any call may hang for ever or crash, as drivers do: only argus-gpus
 * uses this, in a child of its own. */
#pragma once
#include "base/err.h"
#include "core/figure/gpu_card.h"

struct nvml;

/* beside: a directory whose libnvidia-ml.so.1 comes first, NULL for none. -ENOENT: there is no
 * library; -ENODEV: no driver, or no GPU. */
must_check int nvml_open(const char *beside, struct nvml **ret, struct err *err);
void nvml_close(struct nvml *n);

/* How each GPU is now, and its mean use since the last call (of the first: over the last 15 s). */
void nvml_read(struct nvml *n, struct gpu_sample *ret);
/* Waits so long, and takes note of errors (Xid) that the driver tells meanwhile: they are in the
 * next sample, for which it then waits no longer than a second. */
void nvml_wait(struct nvml *n, usec_t span);
