// SPDX-License-Identifier: Apache-2.0
// prefs.ts - language, theme and what else a person chose in this browser. public/first.js reads two of them before the
// first paint.
import { effect, signal } from "@preact/signals";

export type Lang = "en" | "zh";
export type Theme = "light" | "dark" | "system";

export function kept<T>(name: string, dflt: T): T {
    try {
        const text = localStorage.getItem(`argus.${name}`);
        return text === null ? dflt : (JSON.parse(text) as T);
    } catch {
        return dflt;
    }
}

export function keep(name: string, value: unknown) {
    try {
        localStorage.setItem(`argus.${name}`, JSON.stringify(value));
    } catch {
        // A browser that keeps nothing forgets it at the next load.
    }
}

export function forget(name: string) {
    try {
        localStorage.removeItem(`argus.${name}`);
    } catch {
        // As above.
    }
}

function plain(name: string): string | null {
    try {
        return localStorage.getItem(`argus.${name}`);
    } catch {
        return null;
    }
}

function keepPlain(name: string, value: string) {
    try {
        localStorage.setItem(`argus.${name}`, value);
    } catch {
        // As above.
    }
}

const asked = new URLSearchParams(location.search);
const firstLang = asked.get("lang") ?? plain("lang") ?? (/^zh/i.test(navigator.language) ? "zh" : "en");
const firstTheme = asked.get("theme") ?? plain("theme") ?? "system";

export const lang = signal<Lang>(firstLang === "zh" ? "zh" : "en");
export const theme = signal<Theme>(firstTheme === "light" || firstTheme === "dark" ? firstTheme : "system");
/** Single-letter keys (WCAG 2.1.4). */
export const letters = signal<boolean>(kept("letters", true));

const system = matchMedia("(prefers-color-scheme: dark)");
const systemDark = signal(system.matches);
system.addEventListener("change", () => (systemDark.value = system.matches));
/** What is shown: "light" or "dark". */
export const shownTheme = signal<"light" | "dark">("light");

/** Paper is light, whatever the screen is. The moment at which it began, for what says so on the paper; 0: it is none. */
export const printedAt = signal(0);
addEventListener("beforeprint", () => (printedAt.value = Date.now()));
addEventListener("afterprint", () => (printedAt.value = 0));

effect(() => {
    shownTheme.value = theme.value === "system" ? (systemDark.value ? "dark" : "light") : theme.value;
    document.documentElement.dataset.theme = printedAt.value ? "light" : shownTheme.value;
});
effect(() => {
    document.documentElement.lang = lang.value === "zh" ? "zh-CN" : "en";
});

/** What is chosen here is told to who keeps it for other browsers (api/own.ts). */
export const follow = {
    set: (_name: string, _value: unknown) => {},
    /** Was it chosen in this browser, or is it in the address? */
    chosen: () => ({
        lang: asked.has("lang") || plain("lang") !== null,
        theme: asked.has("theme") || plain("theme") !== null,
        letters: plain("letters") !== null,
    }),
};

/** isTold: it came from there. */
export function setLang(to: Lang, isTold = false) {
    lang.value = to;
    keepPlain("lang", to);
    if (!isTold) follow.set("lang", to);
}
export function setTheme(to: Theme, isTold = false) {
    theme.value = to;
    keepPlain("theme", to);
    if (!isTold) follow.set("theme", to);
}
export function setLetters(to: boolean, isTold = false) {
    letters.value = to;
    keep("letters", to);
    if (!isTold) follow.set("letters", to);
}
