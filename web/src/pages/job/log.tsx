// SPDX-License-Identifier: Apache-2.0
// log.tsx - the log of an attempt: its end at once, what comes after as it comes, earlier lines on demand, a search that
// the server does. Lines are text: ANSI colours are read (lines.ts), everything else is shown and never run.
import { useEffect, useRef, useState } from "preact/hooks";
import { address, send } from "../../api/client";
import { onBack } from "../../api/live";
import { useAsk } from "../../api/use";
import { addKeys } from "../../base/keys";
import type { LogFiles, LogHits } from "../../made/api";
import { bytes, visible } from "../../base/say";
import { query, setQuery } from "../../base/url";
import { Refused } from "../../kit/blank";
import { Icon } from "../../kit/icons";
import { Panel, shell, Cli } from "../../kit/parts";
import { followLog } from "./follow";
import { looksBad, pieces, splitLines } from "./lines";
import { w } from "./words";

const LINES_MAX = 5000;
const AROUND = 64 << 10; // bytes before a line that one goes to
const CHUNK = 256 << 10;
interface Row {
    at: number;
    text: string;
    /** Of a hit in another log than the one that is shown: which. */
    from?: string;
}
type LogFile = LogFiles["files"][number];

/** "rank 3 · gpu-01 · worker.out" */
const fileSays = (f: { rank: number | null; node: string | null; name?: string; actor?: string | null }) =>
    [f.rank === null ? "" : `rank ${f.rank}`, f.node ?? "", f.actor ?? "", f.name ?? ""]
        .filter(Boolean)
        .map(visible)
        .join(" · ");

/** ?from=worker:FILE is one log, ?from=all all of them while one searches. */
function placeOf(from: string): { source?: string; file?: string } {
    const cut = from.indexOf(":");
    return cut < 0 ? (from ? { source: from } : {}) : { source: from.slice(0, cut), file: from.slice(cut + 1) };
}

function Sources({ files, from, set }: { files: LogFile[]; from: string; set: (from: string) => void }) {
    const of = (source: LogFile["source"]) =>
        files.filter((f) => f.source === source).sort((a, b) => (a.rank ?? 1e9) - (b.rank ?? 1e9));
    const known = !from || from === "all" || files.some((f) => `${f.source}:${f.file}` === from);
    const group = (source: LogFile["source"], says: string) =>
        of(source).length > 0 && (
            <optgroup label={says}>
                {of(source).map((f) => (
                    <option value={`${source}:${f.file}`}>
                        {fileSays(f)} ({bytes(f.bytes)})
                    </option>
                ))}
            </optgroup>
        );
    return (
        <select class="field" aria-label={w("log_of")} value={from} onChange={(e) => set(e.currentTarget.value)}>
            <option value="">{w("driver")}</option>
            <option value="all">{w("log_all")}</option>
            {!known && <option value={from}>{visible(from)}</option>}
            {group("worker", w("log_workers"))}
            {group("scene", w("log_scene"))}
        </select>
    );
}

const Line = ({ row, needle, mark }: { row: Row; needle: RegExp | null; mark: "" | "first" | "here" }) => (
    <li class={`${looksBad(row.text) ? "err" : ""} ${mark}`} id={`L${row.at}`}>
        {row.from && <span class="log-from dim cut">{row.from}</span>}
        <pre>
            {pieces(row.text, needle).map((p) =>
                p.hit ? <mark>{p.text}</mark> : p.tone ? <span class={`ansi-${p.tone}`}>{p.text}</span> : p.text,
            )}
        </pre>
    </li>
);

function needleOf(text: string): RegExp | null {
    try {
        return text ? new RegExp(text, "gi") : null;
    } catch {
        return null;
    }
}

/** ?line=OFFSET: the lines about it; null where the address names none, or while they come. */
function useSpot(id: string, attempt: number, place: { source?: string; file?: string }): Row[] | null {
    const line = query.value.get("line") ?? "";
    const at = /^\d{1,15}$/.test(line) ? Number(line) : null;
    const [rows, setRows] = useState<Row[] | null>(null);
    useEffect(() => {
        setRows(null);
        if (at === null) return;
        const control = new AbortController();
        const begin = Math.max(0, at - AROUND);
        send("GET /v1/jobs/{id}/logs", {
            path: { id },
            query: { attempt, offset: begin, limit: CHUNK, ...place },
            signal: control.signal,
        })
            .then(async (reply) => {
                const { lines } = splitLines(new Uint8Array(await reply.arrayBuffer()), begin);
                setRows(begin > 0 ? lines.slice(1) : lines);
            })
            .catch(() => undefined); // its end is shown then
        return () => control.abort();
    }, [id, attempt, at, place.source, place.file]);
    useEffect(() => {
        if (rows) document.getElementById(`L${at}`)?.scrollIntoView({ block: "center" });
    }, [rows]);
    return rows;
}

/** In the log, at that line. */
export const goToLine = (offset: number, from: string | null) => setQuery({ line: String(offset), from, log: null });

export function Log({
    id,
    attempt,
    live,
    firstError,
}: {
    id: string;
    attempt: number;
    live: boolean;
    firstError: number | null;
}) {
    const [rows, setRows] = useState<Row[]>([]);
    const [size, setSize] = useState(0);
    const [start, setStart] = useState(0);
    const [why, setWhy] = useState<unknown>(null);
    const [round, again] = useState(0);
    const [following, setFollowing] = useState(true);
    const [unseen, setUnseen] = useState(0);
    const [wrapped, setWrapped] = useState(true);
    const box = useRef<HTMLDivElement>(null);
    const keep = useRef({ following: true, rest: new Uint8Array(0) as Uint8Array, at: 0 });
    const grep = query.value.get("log") ?? "";
    const needle = needleOf(grep);
    const [asked, setAsked] = useState(grep);
    useEffect(() => {
        const timer = setTimeout(() => setAsked(grep), 400);
        return () => clearTimeout(timer);
    }, [grep]);
    const from = query.value.get("from") ?? "";
    const place = placeOf(from);
    const isAll = from === "all";
    const files = useAsk(
        "GET /v1/jobs/{id}/logs/files",
        { path: { id }, query: { attempt } },
        live ? { topics: ["jobs"], about: (x) => x === id } : {},
    ).data?.files;
    const hits = useAsk(asked ? "GET /v1/jobs/{id}/logs" : null, {
        path: { id },
        query: { grep: asked, attempt, limit: 200, ...place },
    });
    const found = hits.data as unknown as LogHits | undefined;

    const setFollow = (on: boolean) => {
        keep.current.following = on;
        setFollowing(on);
        if (on) {
            setUnseen(0);
            requestAnimationFrame(() => box.current?.scrollTo({ top: box.current.scrollHeight }));
        }
    };
    const spot = useSpot(id, attempt, place);
    const nth = useRef(-1);
    useEffect(() => {
        nth.current = -1;
    }, [asked]);
    const hit = (step: number) => {
        const all = box.current?.querySelectorAll("mark") ?? [];
        if (!all.length) return;
        nth.current = (nth.current + step + all.length) % all.length;
        all.forEach((m, i) => m.classList.toggle("now", i === nth.current));
        all[nth.current]?.scrollIntoView({ block: "center" });
    };
    useEffect(
        () =>
            addKeys([
                {
                    keys: "f",
                    says: () => w("k_follow"),
                    does: () => {
                        setQuery({ line: null });
                        setFollow(!keep.current.following);
                    },
                },
                ...(asked
                    ? [
                          { keys: "n", says: () => w("k_hit"), does: () => hit(1) },
                          { keys: "N", says: () => w("k_hit"), does: () => hit(nth.current < 0 ? 0 : -1) },
                      ]
                    : []),
                ...(firstError === null
                    ? []
                    : [{ keys: "e", says: () => w("k_first"), does: () => goToLine(firstError, null) }]),
            ]),
        [asked, firstError],
    );

    useEffect(() => {
        const control = new AbortController();
        setRows([]);
        setWhy(null);
        const add = (chunk: Uint8Array, at: number, isFirst: boolean) => {
            const k = keep.current;
            const joined = new Uint8Array(k.rest.length + chunk.length);
            joined.set(k.rest);
            joined.set(chunk, k.rest.length);
            const from = isFirst ? at : k.at;
            const cut = splitLines(joined, from);
            k.rest = cut.rest;
            k.at = cut.at;
            if (!cut.lines.length) return;
            setRows((old) => [...(isFirst ? [] : old), ...cut.lines].slice(-LINES_MAX));
            setSize(at + chunk.length);
            if (!k.following) setUnseen((n) => n + cut.lines.length);
        };
        const run = async () => {
            if (isAll) return;
            const tail = await send("GET /v1/jobs/{id}/logs", {
                path: { id },
                query: { attempt, tail: 500, ...place },
                signal: control.signal,
            });
            const at = Number(tail.headers.get("Argus-Log-Offset") ?? 0);
            const body = new Uint8Array(await tail.arrayBuffer());
            keep.current.rest = new Uint8Array(0);
            keep.current.at = at;
            setStart(at);
            setSize(at + body.length);
            add(body, at, true);
            if (!live) {
                if (keep.current.rest.length) add(new TextEncoder().encode("\n"), at + body.length, false);
                return;
            }
            const stop = followLog({
                url: (offset) =>
                    address("GET /v1/jobs/{id}/logs", {
                        path: { id },
                        query: { follow: true, attempt, offset, ...place },
                    }),
                attempt,
                from: at + body.length,
                hear: (bytes, from) => add(bytes, from, false),
                replaced: (from) => {
                    keep.current.rest = new Uint8Array(0);
                    keep.current.at = from;
                },
            });
            if (control.signal.aborted) stop();
            control.signal.addEventListener("abort", stop);
        };
        run().catch((e: Error) => e.name !== "AbortError" && setWhy(e));
        return () => control.abort();
    }, [id, attempt, live, from, round]);
    const failed = useRef(false);
    failed.current = why !== null;
    useEffect(() => onBack(() => failed.current && again((n) => n + 1)), []);
    useEffect(() => {
        if (keep.current.following && !asked && !spot) box.current?.scrollTo({ top: box.current.scrollHeight });
    }, [rows, asked, spot]);

    const earlier = async () => {
        const begin = Math.max(0, start - CHUNK);
        const reply = await send("GET /v1/jobs/{id}/logs", {
            path: { id },
            query: { attempt, offset: begin, limit: start - begin, ...place },
        });
        const cut = splitLines(new Uint8Array(await reply.arrayBuffer()), begin);
        const lines = begin > 0 ? cut.lines.slice(1) : cut.lines;
        setStart(lines[0]?.at ?? begin);
        setRows((old) => [...lines, ...old].slice(0, LINES_MAX));
        setFollow(false);
    };
    const shown: Row[] = asked
        ? (found?.hits ?? []).map((h) => ({
              at: h.offset,
              text: h.text ?? "",
              from: isAll ? fileSays({ ...h, name: h.file ?? w("driver") }) : undefined,
          }))
        : (spot ?? rows);
    const here = Number(query.value.get("line") ?? -1);
    const markOf = (at: number) =>
        spot && at === here ? "here" : !from && firstError !== null && at === firstError ? "first" : "";
    const href = address("GET /v1/jobs/{id}/logs", { path: { id }, query: { attempt, ...(isAll ? {} : place) } });
    const ofFile = place.file ? ` --source ${place.source} --file ${shell(place.file)}` : isAll ? " --source all" : "";
    return (
        <Panel
            id="log"
            title={w("s_log")}
            bare
            end={
                <>
                    <Cli
                        line={`argus logs ${live && !isAll ? "-f " : ""}${shell(id)}${ofFile}${asked ? ` --grep ${shell(asked)}` : ""}`}
                    />
                    <button
                        type="button"
                        class="btn icon"
                        aria-pressed={wrapped}
                        aria-label={w("wrap")}
                        title={w("wrap")}
                        onClick={() => setWrapped(!wrapped)}
                    >
                        <Icon name="wrap" />
                    </button>
                    <a
                        class="btn icon act"
                        href={href}
                        download={`${id}-${attempt}.log`}
                        aria-label={w("download")}
                        title={w("download")}
                    >
                        <Icon name="download" />
                    </a>
                </>
            }
        >
            <div class="logbar">
                {(files?.length || from) && (
                    <Sources files={files ?? []} from={from} set={(to) => setQuery({ from: to })} />
                )}
                <label class={`search ${grep && !needle ? "wrong" : ""}`}>
                    <Icon name="search" />
                    <input
                        type="search"
                        placeholder={w("grep")}
                        aria-label={w("grep")}
                        value={grep}
                        onInput={(e) => setQuery({ log: e.currentTarget.value })}
                    />
                </label>
                {asked && found && (
                    <span class="dim">{w(found.next_cursor ? "hits_more" : "hits", found.hits.length)}</span>
                )}
                {hits.why && <span class="c-bad said">{visible(hits.why.detail)}</span>}
                <span class="grow" />
                {spot && !asked && (
                    <button type="button" class="btn bare" onClick={() => setQuery({ line: null })}>
                        <Icon name="down" />
                        {w("to_end")}
                    </button>
                )}
                {live && !asked && !isAll && !spot && (
                    <button
                        type="button"
                        class="btn bare"
                        aria-pressed={following}
                        onClick={() => setFollow(!following)}
                    >
                        <Icon name={following ? "down" : "held"} />
                        {following ? w("follow") : `${w("paused")}${unseen ? ` · ${w("new_lines", unseen)}` : ""}`}
                    </button>
                )}
            </div>
            {why ? (
                <Refused why={why} />
            ) : (
                <div
                    class={`log ${wrapped ? "wrapped" : ""}`}
                    ref={box}
                    tabIndex={0}
                    role="region"
                    aria-label={w("s_log")}
                    onScroll={(e) => {
                        const el = e.currentTarget;
                        const end = el.scrollTop + el.clientHeight >= el.scrollHeight - 24;
                        if (end !== keep.current.following && !asked && !spot)
                            end ? setFollow(true) : ((keep.current.following = false), setFollowing(false));
                    }}
                >
                    {!asked && !spot && start > 0 && (
                        <button type="button" class="more" onClick={() => void earlier()}>
                            <Icon name="up" />
                            {w("earlier")}
                        </button>
                    )}
                    {shown.length ? (
                        <ol>
                            {shown.map((r) => (
                                <Line key={`${r.from ?? ""}${r.at}`} row={r} needle={needle} mark={markOf(r.at)} />
                            ))}
                        </ol>
                    ) : (
                        !asked && <p class="log-none dim">{w(isAll ? "log_search" : "log_empty")}</p>
                    )}
                </div>
            )}
            <div class="tail">
                <span>{w("log_from", bytes(size), rows.length)}</span>
                <span class="grow" />
                <kbd>f</kbd>
            </div>
        </Panel>
    );
}
