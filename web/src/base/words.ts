// SPDX-License-Identifier: Apache-2.0
// words.ts - sentences of the pages in English and Chinese. A page has its own table beside it and asks it by
// `const t = words({...})`; a sentence of the server (reasons, findings, alerts) comes from the server in the language
// that the request asked for, and is never kept here.
import { lang } from "./prefs";

/** English, Chinese. Both or the types refuse. */
export type Words = Record<string, readonly [string, string]>;

const fill = (text: string, args: readonly (string | number)[]) =>
    text.replace(/\{(\d)\}/g, (_, i: string) => String(args[Number(i)] ?? ""));

/** t("key", arg…): {0}, {1} … are the arguments. */
export function words<W extends Words>(table: W) {
    return (key: keyof W & string, ...args: (string | number)[]) =>
        fill(table[key]![lang.value === "zh" ? 1 : 0], args);
}

export const pick = (en: string, zh: string) => (lang.value === "zh" ? zh : en);
