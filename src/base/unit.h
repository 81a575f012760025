/* SPDX-License-Identifier: Apache-2.0 */
/* unit.h - what every unit test includes: cmocka and the four headers that it
 * wants before itself, in an order that no formatter may change. */
#pragma once
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
