// SPDX-License-Identifier: Apache-2.0
// log.tsx - the log of an attempt: its end at once, what comes after as it comes, a window over the rest that moves with
// the scrollbar (window.ts), a search that the server does. Lines are text: ANSI colours are read (lines.ts), everything
// else is shown and never run. Each line has an address: ?line=OFFSET.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { address, call, send } from "../../api/client";
import { onBack } from "../../api/live";
import { useAsk } from "../../api/use";
import { addKeys } from "../../base/keys";
import type { LogFiles, LogHits, LogMerged } from "../../made/api";
import { bytes, visible } from "../../base/say";
import { query, setQuery } from "../../base/url";
import { Refused } from "../../kit/blank";
import { Icon } from "../../kit/icons";
import { Panel, shell, Cli } from "../../kit/parts";
import type { LogPlace } from "./evidence";
import { followLog } from "./follow";
import { looksBad, pieces, splitLines } from "./lines";
import { followMerged, fromOf, mergedRows, pauseUnseen } from "./merged";
import { before, behind, EMPTY, share, type Row, type Window } from "./window";
import { w } from "./words";

const AROUND = 64 << 10; // bytes before a line that one goes to
const CHUNK = 256 << 10;
const NEAR = 600; // pixels from an end of the window at which more is asked for
const GUTTER = 20; // pixels of a line's begin that are its address
type LogFile = LogFiles["files"][number];

/** "rank 3 · gpu-01 · worker.out" */
const fileSays = (f: { rank: number | null; node: string | null; name?: string; actor?: string | null }) =>
    [f.rank === null ? "" : `rank ${f.rank}`, f.node ?? "", f.actor ?? "", f.name ?? ""]
        .filter(Boolean)
        .map(visible)
        .join(" · ");
const sourceSays = (s: { rank: number | null; node: string | null; actor?: string | null; file: string | null }) =>
    fileSays({ ...s, name: s.file ?? w("driver") });

/** ?from=worker:FILE is one log, ?from=all those of the driver and all workers as one. */
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

const Line = (p: { row: Row; needle: RegExp | null; mark: "" | "first" | "here"; isNamed: boolean }) => {
    const { row, needle, mark } = p;
    return (
        <li class={`${looksBad(row.text) ? "err" : ""} ${mark}`} id={`L${row.at}`}>
            {row.from && p.isNamed && <span class="log-from dim cut">{row.from}</span>}
            <pre>
                {pieces(row.text, needle).map((p) =>
                    p.hit ? <mark>{p.text}</mark> : p.tone ? <span class={`ansi-${p.tone}`}>{p.text}</span> : p.text,
                )}
            </pre>
        </li>
    );
};

function needleOf(text: string): RegExp | null {
    try {
        return text ? new RegExp(text, "gi") : null;
    } catch {
        return null;
    }
}

/** ?line=OFFSET; null where the address names none. */
function lineOf(q: URLSearchParams): number | null {
    const line = q.get("line") ?? "";
    return /^\d{1,15}$/.test(line) ? Number(line) : null;
}

/** A line that is in sight stays where it is while lines come and go above it. */
function useAnchor(box: { current: HTMLDivElement | null }, rows: Row[]) {
    const held = useRef<{ id: string; by: number } | null>(null);
    useLayoutEffect(() => {
        const li = held.current && document.getElementById(held.current.id);
        if (li && box.current) box.current.scrollTop = li.offsetTop - held.current!.by;
        held.current = null;
    }, [rows]);
    return () => {
        const el = box.current;
        const li = [...(el?.querySelectorAll("li") ?? [])].find((x) => x.offsetTop + x.offsetHeight > el!.scrollTop);
        held.current = el && li ? { id: li.id, by: li.offsetTop - el.scrollTop } : null;
    };
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
    firstError: LogPlace | null;
}) {
    const [win, setWin] = useState<Window>(EMPTY);
    const rows = win.rows;
    const [size, setSize] = useState(0);
    const [why, setWhy] = useState<unknown>(null);
    const [round, again] = useState(0);
    const [following, setFollowing] = useState(true);
    const [unseen, setUnseen] = useState(0);
    const [wrapped, setWrapped] = useState(true);
    const [merged, setMerged] = useState({ logs: 0, left: 0 });
    const box = useRef<HTMLDivElement>(null);
    const keep = useRef({
        following: true,
        rest: new Uint8Array(0) as Uint8Array,
        at: 0,
        size: 0,
        busy: false,
        turn: 0,
    });
    const here = useRef(win);
    here.current = win;
    const hold = useAnchor(box, rows);
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
    const at = lineOf(query.value);
    const spot = at !== null && !asked && !isAll;
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
                    : [
                          {
                              keys: "e",
                              says: () => w("k_first"),
                              does: () => goToLine(firstError.offset, firstError.from),
                          },
                      ]),
            ]),
        [asked, firstError?.offset, firstError?.from],
    );

    /** Bytes of the log as lines; what stands behind its last newline is kept while it may go on. */
    const taken = (bytes: Uint8Array, from: number, isWhole: boolean) => {
        const cut = splitLines(bytes, from);
        const k = keep.current;
        k.rest = cut.rest;
        k.at = cut.at;
        if (isWhole && cut.rest.length) cut.lines.push(...splitLines(Uint8Array.from([...cut.rest, 10]), cut.at).lines);
        return cut.lines;
    };
    const part = async (q: { offset?: number; tail?: number; limit?: number }, signal?: AbortSignal) => {
        const reply = await send("GET /v1/jobs/{id}/logs", {
            path: { id },
            query: { attempt, ...q, ...place },
            signal,
        });
        const bytes = new Uint8Array(await reply.arrayBuffer());
        const offset = Number(reply.headers.get("Argus-Log-Offset") ?? q.offset ?? 0);
        const k = keep.current;
        k.size = Math.max(k.size, Number(reply.headers.get("Argus-Log-Size") ?? 0), offset + bytes.length);
        setSize(k.size);
        return { bytes, offset, end: offset + bytes.length };
    };
    /** Its end, or what lies about a line. */
    const load = async (line: number | null, signal?: AbortSignal) => {
        const begin = line === null ? 0 : Math.max(0, line - AROUND);
        const turn = ++keep.current.turn; // lines that were asked for before belong to another window
        const p = await part(line === null ? { tail: 500 } : { offset: begin, limit: CHUNK }, signal);
        if (turn !== keep.current.turn) return;
        const isEnd = p.end >= keep.current.size;
        const lines = taken(p.bytes, p.offset, isEnd && !live);
        const first = line !== null && begin > 0 ? lines.slice(1) : lines; // it begins within a line
        setWin({ rows: first, start: first[0]?.at ?? p.offset, end: isEnd ? p.end : keep.current.at, isEnd });
        if (line !== null)
            requestAnimationFrame(() => document.getElementById(`L${line}`)?.scrollIntoView({ block: "center" }));
    };
    const run = async (more: () => Promise<void>) => {
        if (keep.current.busy) return;
        keep.current.busy = true;
        await more().catch(() => undefined); // it is asked for again at the next scroll
        keep.current.busy = false;
    };
    const earlier = () =>
        run(async () => {
            const w = here.current;
            const turn = keep.current.turn;
            const begin = Math.max(0, w.start - CHUNK);
            const p = await part({ offset: begin, limit: w.start - begin });
            if (turn !== keep.current.turn) return;
            const lines = splitLines(p.bytes, begin).lines;
            const whole = begin > 0 ? lines.slice(1) : lines;
            hold();
            setWin((now) => before(now, whole, whole[0]?.at ?? begin));
        });
    const later = () =>
        run(async () => {
            const w = here.current;
            const turn = keep.current.turn;
            const p = await part({ offset: w.end, limit: CHUNK });
            if (turn !== keep.current.turn) return;
            const isEnd = p.end >= keep.current.size;
            const lines = taken(p.bytes, w.end, isEnd && !live);
            hold();
            setWin((now) => behind(now, lines, isEnd ? p.end : keep.current.at, isEnd));
        });

    const begun = useRef(false);
    useEffect(() => {
        const control = new AbortController();
        Object.assign(keep.current, { rest: new Uint8Array(0), at: 0, size: 0 });
        begun.current = false;
        setWin(EMPTY);
        setWhy(null);
        const grown = (lines: Row[], end: number) => {
            if (lines.length) setWin((now) => behind(now, lines, end, true));
            if (!keep.current.following) setUnseen((n) => n + lines.length);
        };
        const hear = (chunk: Uint8Array, from: number) => {
            const k = keep.current;
            k.size = Math.max(k.size, from + chunk.length);
            setSize(k.size);
            if (!here.current.isEnd || from !== k.at + k.rest.length) return; // it is read when one comes there
            const joined = new Uint8Array(k.rest.length + chunk.length);
            joined.set(k.rest);
            joined.set(chunk, k.rest.length);
            grown(taken(joined, k.at, false), from + chunk.length);
        };
        const hearMerged = (page: LogMerged) => {
            const k = keep.current;
            const lines = mergedRows(page, k.at, sourceSays);
            k.at += lines.length;
            setMerged({ logs: page.sources.length, left: page.left_out });
            grown(lines, k.at);
        };
        const begin = async () => {
            if (isAll)
                return followMerged({
                    ask: (cursor) =>
                        call("GET /v1/jobs/{id}/logs/merged", {
                            path: { id },
                            query: { attempt, cursor },
                            signal: control.signal,
                        }),
                    hear: hearMerged,
                    live,
                    pause: () => pauseUnseen(control.signal),
                    signal: control.signal,
                });
            await load(at, control.signal);
            begun.current = true;
            if (!live) return;
            const stop = followLog({
                url: (offset) =>
                    address("GET /v1/jobs/{id}/logs", {
                        path: { id },
                        query: { follow: true, attempt, offset, ...place },
                    }),
                attempt,
                from: keep.current.size,
                hear,
                replaced: (from) => Object.assign(keep.current, { rest: new Uint8Array(0), at: from, size: from }),
            });
            if (control.signal.aborted) stop();
            control.signal.addEventListener("abort", stop);
        };
        begin().catch((e: Error) => e.name !== "AbortError" && setWhy(e));
        return () => control.abort();
    }, [id, attempt, live, from, round]);
    useEffect(() => {
        if (!begun.current) return; // it is loaded so
        if (at !== null && here.current.rows.some((r) => r.at === at))
            document.getElementById(`L${at}`)?.scrollIntoView({ block: "center" });
        else if (at !== null || !here.current.isEnd) void load(at).catch(setWhy);
    }, [at]);
    const failed = useRef(false);
    failed.current = why !== null;
    useEffect(() => onBack(() => failed.current && again((n) => n + 1)), []);
    // Before anything is drawn: a scroll between would say that somebody has left the end.
    useLayoutEffect(() => {
        if (keep.current.following && !asked && !spot) box.current?.scrollTo({ top: box.current.scrollHeight });
    }, [rows, asked, spot]);

    const shown: Row[] = asked
        ? (found?.hits ?? []).map((h) => ({
              at: h.offset,
              text: h.text ?? "",
              of: fromOf(h),
              from: isAll ? sourceSays(h) : undefined,
          }))
        : rows;
    const markOf = (of: number) =>
        spot && of === at ? "here" : firstError?.offset === of && from === (firstError.from ?? "") ? "first" : "";
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
                        line={`argus logs ${live && !(isAll && asked) ? "-f " : ""}${shell(id)}${ofFile}${asked ? ` --grep ${shell(asked)}` : ""}`}
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
                {(spot || !win.isEnd) && !asked && (
                    <button
                        type="button"
                        class="btn bare"
                        onClick={() => (spot ? setQuery({ line: null }) : void load(null).catch(setWhy))}
                    >
                        <Icon name="down" />
                        {w("to_end")}
                    </button>
                )}
                {live && !asked && !spot && win.isEnd && (
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
                        const left = el.scrollHeight - el.clientHeight - el.scrollTop;
                        if (asked) return;
                        if (el.scrollTop < NEAR && win.start > 0 && !isAll) void earlier();
                        else if (left < NEAR && !win.isEnd) void later();
                        const end = left <= 24 && win.isEnd;
                        if (end !== keep.current.following && !spot)
                            end ? setFollow(true) : ((keep.current.following = false), setFollowing(false));
                    }}
                >
                    {!asked && !isAll && win.start > 0 && (
                        <button type="button" class="more" onClick={() => void earlier()}>
                            <Icon name="up" />
                            {w("earlier")}
                        </button>
                    )}
                    {shown.length ? (
                        <ol
                            title={w("line_link")}
                            onClick={(e) => {
                                const li = (e.target as Element).closest("li");
                                if (!li || e.clientX - li.getBoundingClientRect().left > GUTTER) return;
                                const row = shown.find((r) => `L${r.at}` === li.id);
                                if (row) goToLine(row.offset ?? row.at, isAll ? (row.of ?? null) : from || null);
                            }}
                        >
                            {shown.map((r, i) => (
                                <Line
                                    key={`${r.from ?? ""}${r.at}`}
                                    row={r}
                                    needle={needle}
                                    mark={markOf(r.at)}
                                    isNamed={!!asked || shown[i - 1]?.from !== r.from}
                                />
                            ))}
                        </ol>
                    ) : (
                        !asked && <p class="log-none dim">{w("log_empty")}</p>
                    )}
                </div>
            )}
            <div class="tail">
                <span>{isAll ? w("log_merged", merged.logs) : w("log_from", bytes(size), rows.length)}</span>
                {isAll && merged.left > 0 && <span class="dim">{w("log_left", merged.left)}</span>}
                {!asked && !isAll && size > 0 && (win.start > 0 || !win.isEnd) && (
                    <span class="dim">{w("log_at", Math.floor(100 * share(win, size)))}</span>
                )}
                <span class="grow" />
                <kbd>f</kbd>
            </div>
        </Panel>
    );
}
