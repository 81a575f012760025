/* SPDX-License-Identifier: Apache-2.0 */
/* tools.h - the Python programs that travel inside argusd and run as jobs on workers. */
#pragma once
#include "base/err.h"

/* Blocking. Below argus/lib of the shared root; how many were replaced. */
must_check int tools_place(const char *root, struct err *err);
