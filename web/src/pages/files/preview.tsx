// SPDX-License-Identifier: Apache-2.0
// preview.tsx - what is in a file, without the whole of it: the beginning of a text, rows of JSON lines, columns and
// first rows of a parquet file, a picture. A file is never opened as a page: its bytes become text, or a picture of a named kind.
import { useEffect, useState } from "preact/hooks";
import { address, send } from "../../api/client";
import { bytes, num, visible } from "../../base/say";
import { Loading, Refused } from "../../kit/blank";
import { Rows } from "../../kit/rows";
import type { Parquet } from "./parquet";
import { w } from "./words";

const HEAD = 64 << 10;
const PICTURE_MAX = 8 << 20;
const PICTURES: Record<string, string> = {
    png: "image/png",
    jpg: "image/jpeg",
    jpeg: "image/jpeg",
    gif: "image/gif",
    webp: "image/webp",
};

type Seen =
    | { kind: "text"; text: string; cut: boolean }
    | { kind: "rows"; rows: unknown[]; cut: boolean }
    | { kind: "parquet"; read: Parquet }
    | { kind: "picture"; url: string }
    | { kind: "none"; says: string };

async function part(path: string, range: string | undefined, signal: AbortSignal): Promise<Uint8Array> {
    const reply = await send("GET /v1/files/content", { query: { path }, range, signal });
    return new Uint8Array(await reply.arrayBuffer());
}

/** Lines of JSON, if they are: null, if the first is not. */
export function jsonLines(text: string, cut: boolean): unknown[] | null {
    const lines = text.split("\n");
    if (cut) lines.pop();
    const rows: unknown[] = [];
    for (const line of lines.slice(0, 50)) {
        if (!line.trim()) continue;
        try {
            const row: unknown = JSON.parse(line);
            if (!row || typeof row !== "object") return null;
            rows.push(row);
        } catch {
            return rows.length ? rows : null;
        }
    }
    return rows.length ? rows : null;
}

export const looksBinary = (b: Uint8Array) => b.subarray(0, 4096).includes(0);

async function parquet(path: string, size: number, signal: AbortSignal): Promise<Seen> {
    const { readParquet } = await import("./parquet");
    const read = await readParquet(size, (range) => part(path, range, signal));
    return read ? { kind: "parquet", read } : { kind: "none", says: w("no_parquet") };
}

function dataUrl(b: Uint8Array, type: string): Promise<string> {
    return new Promise((done, failed) => {
        const r = new FileReader();
        r.onload = () => done(r.result as string);
        r.onerror = () => failed(r.error ?? new Error("unreadable"));
        r.readAsDataURL(new Blob([b as Uint8Array<ArrayBuffer>], { type }));
    });
}

async function look(path: string, size: number, signal: AbortSignal): Promise<Seen> {
    const end = /\.(\w+)$/.exec(path)?.[1]?.toLowerCase() ?? "";
    if (end === "parquet") return parquet(path, size, signal);
    if (end in PICTURES) {
        if (size > PICTURE_MAX) return { kind: "none", says: w("too_large", bytes(size)) };
        return { kind: "picture", url: await dataUrl(await part(path, undefined, signal), PICTURES[end]!) };
    }
    if (!size) return { kind: "none", says: w("empty_file") };
    const head = await part(path, size > HEAD ? `bytes=0-${HEAD - 1}` : undefined, signal);
    if (looksBinary(head)) return { kind: "none", says: w("binary") };
    const text = new TextDecoder().decode(head);
    const cut = size > HEAD;
    const rows = end === "jsonl" || end === "json" ? jsonLines(text, cut) : null;
    return rows ? { kind: "rows", rows, cut } : { kind: "text", text, cut };
}

function Picture({ url, name }: { url: string; name: string }) {
    const [bad, setBad] = useState(false);
    return bad ? (
        <p class="mid">{w("no_picture")}</p>
    ) : (
        <img class="picture" src={url} alt={name} onError={() => setBad(true)} />
    );
}

export function Preview({ path, size }: { path: string; size: number }) {
    const [seen, setSeen] = useState<Seen | null>(null);
    const [why, setWhy] = useState<unknown>(null);
    useEffect(() => {
        const control = new AbortController();
        setSeen(null);
        setWhy(null);
        look(path, size, control.signal).then(setSeen, (e: unknown) => control.signal.aborted || setWhy(e));
        return () => control.abort();
    }, [path, size]);
    if (why) return <Refused why={why} />;
    if (!seen) return <Loading rows={4} />;
    return (
        <div class="preview">
            {seen.kind === "text" ? (
                <pre class="preview-text" tabIndex={0}>
                    {visible(seen.text)}
                </pre>
            ) : seen.kind === "rows" ? (
                <Rows rows={seen.rows} label={w("rows_of", visible(path))} />
            ) : seen.kind === "parquet" ? (
                <>
                    <p class="strong">{w("n_rows", num(seen.read.rows))}</p>
                    <dl class="kv">
                        {seen.read.columns.map((c) => (
                            <>
                                <dt class="mono">{visible(c.name)}</dt>
                                <dd>{visible(c.type)}</dd>
                            </>
                        ))}
                    </dl>
                    {seen.read.first.length > 0 ? (
                        <Rows rows={seen.read.first} label={w("rows_of", visible(path))} />
                    ) : (
                        seen.read.rows > 0 && <p class="small dim">{w("no_rows")}</p>
                    )}
                </>
            ) : seen.kind === "picture" ? (
                <Picture url={seen.url} name={visible(path)} />
            ) : (
                <p class="mid">{seen.says}</p>
            )}
            {"cut" in seen && seen.cut && <p class="small dim">{w("first_part", bytes(HEAD))}</p>}
        </div>
    );
}

export const contentHref = (path: string) => address("GET /v1/files/content", { query: { path } });
