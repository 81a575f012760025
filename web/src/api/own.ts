// SPDX-License-Identifier: Apache-2.0
// own.ts - what a person set and finds again in every browser: saved views and columns, kept by argusd; language, theme
// and keys too, for a browser in which none were chosen yet.
import { effect, signal } from "@preact/signals";
import { follow, forget, kept, letters, setLang, setLetters, setTheme, type Lang, type Theme } from "../base/prefs";
import { toast } from "../kit/parts";
import { call, Refusal, session } from "./client";

/** null: not known yet, or nobody is logged in. */
const own = signal<Record<string, unknown> | null>(null);

async function put(name: string, value: unknown) {
    const before = own.value;
    own.value = { ...before, [name]: value };
    try {
        await call("PATCH /v1/me/settings", { body: { settings: { [name]: value } } });
    } catch (e) {
        own.value = before;
        if (e instanceof Refusal && e.status !== 401) toast(e.detail);
    }
}

/** A setting that follows the person. Until the first change it is what this browser kept in earlier versions. */
export function ownSetting<T>(name: string, dflt: T): T {
    const value = own.value?.[name];
    return value === undefined ? kept(name, dflt) : (value as T);
}

export function setOwn(name: string, value: unknown) {
    forget(name);
    void put(name, value);
}

/** What this browser has no word of comes from elsewhere; what was chosen here stays. */
function take(settings: Record<string, unknown>) {
    const here = follow.chosen();
    if (!here.lang && (settings.lang === "en" || settings.lang === "zh")) setLang(settings.lang as Lang, true);
    if (!here.theme && ["light", "dark", "system"].includes(settings.theme as string))
        setTheme(settings.theme as Theme, true);
    if (!here.letters && typeof settings.letters === "boolean" && settings.letters !== letters.value)
        setLetters(settings.letters, true);
}

let whose = "";
effect(() => {
    const s = session.value;
    if (!s) {
        own.value = null;
        whose = "";
        return;
    }
    if (whose === s.id) return;
    whose = s.id;
    call("GET /v1/me/settings").then(
        (page) => {
            if (whose !== s.id) return;
            own.value = page.settings;
            take(page.settings);
        },
        () => {
            // Without an answer this browser's own stay; the shell says that there is no connection.
        },
    );
});
follow.set = (name, value) => {
    if (session.value) void put(name, value);
};
