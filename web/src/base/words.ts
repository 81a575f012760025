// SPDX-License-Identifier: Apache-2.0
// words.ts - sentences of the pages in English and Chinese. A page has its own table beside it and asks it by
// `const t = words({...})`; a sentence of the server (reasons, findings, alerts) comes from the server in the language
// that the request asked for, and is never kept here.
import { lang } from "./prefs";

/** English, Chinese. Both or the types refuse. */
export type Words = Record<string, readonly [string, string]>;

const HOLE = /\{(\d)(?:\|([^|}]*)\|([^}]*))?\}/g;

/** A text with its arguments; "Stop {0} {0|job|jobs}" knows one of them from several. */
export const fill = (text: string, args: readonly (string | number)[]) =>
    text.replace(HOLE, (_, i: string, one?: string, more?: string) => {
        const of = String(args[Number(i)] ?? "");
        return more === undefined ? of : of === "1" ? one! : more;
    });

/** t("key", arg…): {0}, {1} … are the arguments, {0|one|more} is a word by its argument. */
export function words<W extends Words>(table: W) {
    return (key: keyof W & string, ...args: (string | number)[]) =>
        fill(table[key]![lang.value === "zh" ? 1 : 0], args);
}

export const pick = (en: string, zh: string) => (lang.value === "zh" ? zh : en);
