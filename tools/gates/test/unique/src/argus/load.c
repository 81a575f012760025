/* SPDX-License-Identifier: Apache-2.0 */
void load_all(void)
{
}

void run_some(void)
{
}
