// SPDX-License-Identifier: Apache-2.0
// shipped.ts - the pages of docs/sop, as they were when argusd was built; the build puts them into a chunk of this page.
import { sopOf, type Sop } from "./sop";

const files = import.meta.glob<string>("../../../../docs/sop/*.md", { query: "?raw", import: "default", eager: true });

/** "node-on": its text in English, and in Chinese where there is one. */
export const TEXTS: Record<string, { en: string; zh: string | null }> = {};
for (const [path, text] of Object.entries(files)) {
    const [, name, zh] = /([^/]+?)(\.zh)?\.md$/.exec(path)!;
    const of = (TEXTS[name!] ??= { en: "", zh: null });
    if (zh) of.zh = text;
    else of.en = text;
}

export interface Shipped {
    name: string;
    /** The language it is shown in. */
    lang: "en" | "zh";
    sop: Sop;
}

/** null: no such page is shipped. */
export function shipped(name: string, lang: "en" | "zh"): Shipped | null {
    if (!Object.hasOwn(TEXTS, name)) return null;
    const { en, zh } = TEXTS[name]!;
    return lang === "zh" && zh ? { name, lang, sop: sopOf(zh) } : { name, lang: "en", sop: sopOf(en) };
}

export const allShipped = (lang: "en" | "zh"): Shipped[] =>
    Object.keys(TEXTS)
        .sort()
        .map((name) => shipped(name, lang)!);
