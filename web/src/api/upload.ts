// SPDX-License-Identifier: Apache-2.0
// upload.ts - a file to the server, in pieces, each put where the one before ended. What was cut off goes on: after a
// lost connection by itself, after a reload when the same file is chosen again for the same place.
import { kept, keep } from "../base/prefs";
import { call, Refusal } from "./client";

const PIECE = 4 << 20;
const PAUSES = [1, 2, 4, 8, 15];

const sleep = (seconds: number, signal: AbortSignal) =>
    new Promise<void>((done) => {
        const timer = setTimeout(done, seconds * 1000);
        signal.addEventListener("abort", () => (clearTimeout(timer), done()));
    });

/** The same file for the same place. */
const nameOf = (file: File, to: string) => `${to} ${file.name} ${file.size} ${file.lastModified}`;

function remember(name: string, id: string | null) {
    const all = kept<Record<string, string>>("uploads", {});
    if (id) all[name] = id;
    else delete all[name];
    keep("uploads", all);
}

async function begin(file: File, name: string, signal: AbortSignal): Promise<{ id: string; offset: number }> {
    const old = kept<Record<string, string>>("uploads", {})[name];
    if (old)
        try {
            const u = await call("GET /v1/uploads/{id}", { path: { id: old }, signal });
            if (u.state !== "failed" && u.bytes === file.size) return u;
        } catch (e) {
            if (!(e instanceof Refusal) || e.status !== 404) throw e;
        }
    const made = await call("POST /v1/uploads", { body: { name: file.name, bytes: file.size }, signal });
    remember(name, made.id);
    return made;
}

/** The bytes are on the server when it returns; the upload's id. */
export async function sendBytes(file: File, to: string, told: (sent: number) => void, signal: AbortSignal) {
    const name = nameOf(file, to);
    const u = await begin(file, name, signal);
    let at = u.offset;
    let failed = 0;
    told(at);
    while (at < file.size || file.size === 0) {
        try {
            const reply = await call("PUT /v1/uploads/{id}", {
                path: { id: u.id },
                query: { offset: at },
                raw: file.slice(at, at + PIECE),
                signal,
            });
            at = reply.offset;
            failed = 0;
            told(at);
            if (reply.state === "complete") break;
        } catch (e) {
            if (!(e instanceof Refusal) || (e.status !== 0 && e.status !== 409 && e.status < 500)) throw e;
            if (failed >= 20) throw e;
            await sleep(PAUSES[Math.min(failed++, PAUSES.length - 1)]!, signal);
            if (signal.aborted) throw e;
            const now = await call("GET /v1/uploads/{id}", { path: { id: u.id }, signal }).catch(() => null);
            if (now) at = now.offset;
        }
    }
    remember(name, null);
    return u.id;
}

/** A file at its place below the shared root. to: what a cut upload is found again by; the place itself, if not given. */
export async function putFile(
    file: File,
    path: string,
    replace: boolean,
    told: (sent: number) => void,
    signal: AbortSignal,
    to = path,
) {
    const upload = await sendBytes(file, to, told, signal);
    return call("POST /v1/files", { body: { path, upload, replace, parents: true }, signal });
}
