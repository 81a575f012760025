/* SPDX-License-Identifier: Apache-2.0 */
void run_all(void)
{
}
