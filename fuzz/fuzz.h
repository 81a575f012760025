/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz.h - what a target implements: libFuzzer's entry point, called by replay.c in
 * normal builds. A target gives every byte string to one parser and checks what must hold
 * whatever came in; a false claim aborts. */
#pragma once
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
