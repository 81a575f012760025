/* SPDX-License-Identifier: Apache-2.0 */
/* later.h - inside of this layer: a callback from the loop instead of from the call that knows
 * already. */
#pragma once
#include <uv.h>

struct later;
/* fire(arg) once, from the loop; then the handle is gone. */
struct later *later_new(uv_loop_t *loop, void (*fire)(void *arg), void *arg);
void later_free(struct later *l); /* it never fires; NULL is fine */
