/* SPDX-License-Identifier: Apache-2.0 */
#include "core/a.h"

int main(void)
{
    return a_for_tests();
}
