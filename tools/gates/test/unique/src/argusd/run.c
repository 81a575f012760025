/* SPDX-License-Identifier: Apache-2.0 */
void run_all(void)
{
}

/* Two programs may have it. */
void load_all(void)
{
}

static void run_some(void)
{
}
