/* SPDX-License-Identifier: Apache-2.0 */
void talk(struct cli *cli)
{
    cli_say(cli, "say_hello");
    cli_say(cli, "say_helo");
}
