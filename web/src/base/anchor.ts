// SPDX-License-Identifier: Apache-2.0
// anchor.ts - what a page keeps in its address and no server needs to read: "#name=<text in base64>".

export function packed(text: string): string {
    const bytes = new TextEncoder().encode(text);
    let out = "";
    for (const b of bytes) out += String.fromCharCode(b);
    return btoa(out).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

/** null: it is no such text. */
export function unpacked(word: string): string | null {
    try {
        const bin = atob(word.replaceAll("-", "+").replaceAll("_", "/"));
        return new TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.from(bin, (c) => c.charCodeAt(0)));
    } catch {
        return null;
    }
}

export function readAnchor(name: string): string | null {
    const word = new URLSearchParams(location.hash.slice(1)).get(name);
    return word ? unpacked(word) : null;
}

/** null takes it away. Replaces the entry of the history. */
export function writeAnchor(name: string, text: string | null) {
    const hash = text === null ? "" : `#${name}=${packed(text)}`;
    history.replaceState(null, "", location.pathname + location.search + hash);
}
