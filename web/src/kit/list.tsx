// SPDX-License-Identifier: Apache-2.0
// list.tsx - a list of rows of one height, virtual: only rows in sight are in the document, and 10,000 scroll smoothly.
// A row that stays in sight is not drawn again while one scrolls: it is drawn of its props and of the signals it reads.
// Where whole pages of rows fly by, they pass with their first columns alone, and are whole once it stands.
//
// Columns have a rank and go by it when the list is narrow; who chose columns keeps them. Rows have one place in the tab
// order (roving tabindex); j k Enter x act on the row that has the focus. On a phone each row is a card.
import type { ComponentChildren } from "preact";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Cell } from "../base/csv";
import { addKeys } from "../base/keys";
import { lang } from "../base/prefs";
import { go } from "../base/url";
import { t } from "../words/shared";
import { Icon } from "./icons";
import { CopyCsv } from "./parts";

export interface Column<R> {
    key: string;
    title: string;
    /** Pixels; 0: takes what is left. */
    width: number;
    /** The higher, the earlier it goes when there is no room. 0: never. */
    rank: number;
    num?: boolean;
    draw: (row: R) => ComponentChildren;
    /** What it is sorted by; without it its head is no button. */
    sort?: (row: R) => string | number | null;
    csv?: (row: R) => Cell;
}

export interface ListProps<R> {
    label: string;
    rows: R[];
    keyOf: (row: R) => string;
    nameOf: (row: R) => string;
    href: (row: R) => string;
    columns: Column<R>[];
    /** Keys of shown columns; null: as many as fit. */
    shown?: string[] | null;
    sort?: string | null;
    /** The rows are in that order already: they are a part of a longer list that the server sorted. */
    isSorted?: boolean;
    onSort?: (sort: string) => void;
    chosen?: Set<string>;
    onChoose?: (chosen: Set<string>) => void;
    current?: string | null;
    /** Somebody scrolls near the end of the rows. */
    onNearEnd?: () => void;
    card: (row: R) => ComponentChildren;
    foot?: ComponentChildren;
}

const OVER = 8;
/** The window of rows moves by so many at once: not at each pixel that is scrolled. */
const WINDOW_STEP = 4;
const STANDS_MS = 90;
const NEAR_END = 3; // times what is in sight
const LEAST_FLEX = 200;

/** "-ended_at": by ended_at, the largest first. Nothing known goes last either way. */
export function sorted<R>(rows: R[], columns: Column<R>[], sort: string | null | undefined): R[] {
    const down = sort?.startsWith("-");
    const by = columns.find((c) => c.key === sort?.replace("-", ""))?.sort;
    if (!by) return rows;
    return rows
        .map((row, i) => ({ row, i, v: by(row) }))
        .sort((a, b) => {
            if (a.v === null || b.v === null) return a.v === b.v ? a.i - b.i : a.v === null ? 1 : -1;
            const c = a.v < b.v ? -1 : a.v > b.v ? 1 : 0;
            return c ? (down ? -c : c) : a.i - b.i;
        })
        .map((x) => x.row);
}

export function fitting<R>(columns: Column<R>[], width: number, shown: string[] | null | undefined): Column<R>[] {
    if (shown) return columns.filter((c) => c.rank === 0 || shown.includes(c.key));
    let fit = [...columns];
    const need = () => fit.reduce((sum, c) => sum + (c.width || LEAST_FLEX), 40);
    while (need() > width) {
        const least = fit.reduce((a, b) => (b.rank > a.rank ? b : a));
        if (least.rank === 0) break;
        fit = fit.filter((c) => c !== least);
    }
    return fit;
}

interface RowActs {
    focus: (i: number) => void;
    key: (e: KeyboardEvent, i: number) => void;
    choose: (key: string) => void;
}

/** One row. It has no state and reads a signal, so that it is drawn again for a changed prop or signal alone. */
function ListRow<R>(p: {
    of: ListProps<R>;
    row: R;
    i: number;
    top: number;
    columns: Column<R>[];
    isTab: boolean;
    isChosen: boolean;
    isBare: boolean;
    acts: RowActs;
}) {
    void lang.value;
    const { of, row, i, acts } = p;
    const key = of.keyOf(row);
    return (
        <div
            class="vrow"
            role="row"
            data-row={i}
            aria-rowindex={i + 2}
            aria-selected={p.isChosen}
            tabIndex={p.isTab ? 0 : -1}
            style={{ top: `${p.top}px` }}
            onFocus={() => acts.focus(i)}
            onKeyDown={(e) => acts.key(e, i)}
            onClick={(e) => (e.target as Element).closest("input, a, button") || go(of.href(row))}
        >
            {of.onChoose && (
                <span role="gridcell">
                    <input
                        class="check"
                        type="checkbox"
                        tabIndex={-1}
                        aria-label={t("choose_row", of.nameOf(row))}
                        checked={p.isChosen}
                        onChange={() => acts.choose(key)}
                    />
                </span>
            )}
            {p.columns.map((c) => (
                <span role="gridcell" class={c.num ? "num" : undefined}>
                    {p.isBare && c.rank > 0 ? null : c.draw(row)}
                </span>
            ))}
        </div>
    );
}

export function List<R>(p: ListProps<R>) {
    const box = useRef<HTMLDivElement>(null);
    const outer = useRef<HTMLDivElement>(null);
    const [width, setWidth] = useState(1000);
    const [view, setView] = useState({ from: 0, to: 40, isBare: false });
    const stands = useRef(0);
    const [at, setAt] = useState(0);
    const now = useRef(0); // as `at`, for keys that come faster than the page is drawn
    const rowHeight = useRef(36);
    const rows = useMemo(
        () => (p.isSorted ? p.rows : sorted(p.rows, p.columns, p.sort)),
        [p.rows, p.columns, p.sort, p.isSorted],
    );
    const columns = useMemo(() => fitting(p.columns, width, p.shown), [p.columns, width, p.shown]);
    const grid = [
        p.onChoose ? "38px" : "",
        ...columns.map((c) => (c.width ? `${c.width}px` : "minmax(120px, 1fr)")),
    ].join(" ");
    const narrow = width < 520;
    const acts = useRef<RowActs | null>(null);
    const stable = useMemo<RowActs>(
        () => ({
            focus: (i) => acts.current?.focus(i),
            key: (e, i) => acts.current?.key(e, i),
            choose: (key) => acts.current?.choose(key),
        }),
        [],
    );

    const look = useCallback(() => {
        const el = box.current;
        if (!el) return;
        const step = (x: number) => Math.floor(x / WINDOW_STEP) * WINDOW_STEP;
        const from = Math.max(0, step(el.scrollTop / rowHeight.current - OVER));
        const to = step((el.scrollTop + el.clientHeight) / rowHeight.current + OVER + WINDOW_STEP);
        const focused = document.activeElement;
        const row = el.contains(focused) ? focused?.closest<HTMLElement>("[data-row]")?.dataset.row : undefined;
        if (row !== undefined && (Number(row) < from || Number(row) >= to)) (focused as HTMLElement).blur(); // it leaves
        setView((v) => {
            if (v.from === from && v.to === to) return v;
            const flies = Math.abs(v.from - from) > el.clientHeight / rowHeight.current;
            if (flies || v.isBare) {
                clearTimeout(stands.current);
                stands.current = setTimeout(
                    () => setView((now) => ({ ...now, isBare: false })),
                    STANDS_MS,
                ) as unknown as number;
            }
            return { from, to, isBare: flies };
        });
    }, []);
    useEffect(() => () => clearTimeout(stands.current), []);
    useLayoutEffect(() => {
        const el = outer.current;
        if (!el) return;
        const seen = new ResizeObserver(() => {
            rowHeight.current = parseInt(getComputedStyle(document.documentElement).getPropertyValue("--row")) || 36;
            setWidth(el.clientWidth);
            look();
        });
        seen.observe(el);
        return () => seen.disconnect();
    }, [look]);
    useEffect(look, [rows.length, look, narrow]);

    const focusRow = (i: number) => {
        const to = Math.max(0, Math.min(rows.length - 1, i));
        now.current = to;
        setAt(to);
        const el = box.current;
        if (!el) return;
        const top = to * rowHeight.current;
        if (top < el.scrollTop) el.scrollTop = top;
        else if (top + rowHeight.current > el.scrollTop + el.clientHeight)
            el.scrollTop = top + rowHeight.current - el.clientHeight;
        look();
        const row = () => el.querySelector<HTMLElement>(`[data-row="${to}"]`);
        if (row()) row()!.focus();
        else requestAnimationFrame(() => row()?.focus()); // it is drawn first
    };
    const choose = (key: string) => {
        const next = new Set(p.chosen);
        if (!next.delete(key)) next.add(key);
        p.onChoose?.(next);
    };
    const inside = () => !!box.current?.contains(document.activeElement);
    useEffect(
        () =>
            addKeys([
                { keys: "j", says: () => t("k_rows"), does: () => focusRow(now.current + (inside() ? 1 : 0)) },
                { keys: "k", says: () => t("k_rows"), does: () => focusRow(now.current - (inside() ? 1 : 0)) },
                ...(p.onChoose
                    ? [
                          {
                              keys: "x",
                              says: () => t("k_pick"),
                              does: () => {
                                  const row = rows[now.current];
                                  if (row && inside()) choose(p.keyOf(row));
                              },
                          },
                      ]
                    : []),
            ]),
        [rows, p.chosen],
    );
    const onRowKey = (e: KeyboardEvent, i: number) => {
        if (e.target !== e.currentTarget) return;
        const steps: Record<string, number> = {
            ArrowDown: 1,
            ArrowUp: -1,
            PageDown: 15,
            PageUp: -15,
            Home: -i,
            End: rows.length - 1 - i,
        };
        const step = steps[e.key];
        if (step !== undefined) focusRow(i + step);
        else if (e.key === "Enter") go(p.href(rows[i]!));
        else return;
        e.preventDefault();
    };
    acts.current = {
        focus: (i) => {
            now.current = i;
            setAt(i);
        },
        key: onRowKey,
        choose,
    };

    if (narrow)
        return (
            <div ref={outer}>
                <ul class="cards" aria-label={p.label}>
                    {rows.slice(0, 200).map((row) => (
                        <li key={p.keyOf(row)}>
                            <a href={p.href(row)}>{p.card(row)}</a>
                        </li>
                    ))}
                </ul>
                {p.foot}
            </div>
        );
    const to = Math.min(rows.length, view.to);
    const slots = Math.ceil((view.to - view.from + WINDOW_STEP) / 32) * 32;
    const all = rows.length > 0 && p.chosen?.size === rows.length;
    return (
        <div class="panel jlist" ref={outer} style={{ "--columns": grid }}>
            <div role="grid" aria-label={p.label} aria-rowcount={rows.length + 1} aria-multiselectable={!!p.onChoose}>
                <div role="rowgroup">
                    <div class="vhead" role="row">
                        {p.onChoose && (
                            <span role="columnheader">
                                <input
                                    class="check"
                                    type="checkbox"
                                    aria-label={t("choose_all")}
                                    checked={all}
                                    onChange={() => p.onChoose?.(all ? new Set() : new Set(rows.map(p.keyOf)))}
                                />
                            </span>
                        )}
                        {columns.map((c) => {
                            const on = p.sort?.replace("-", "") === c.key;
                            const down = p.sort?.startsWith("-");
                            return (
                                <span
                                    role={c.title ? "columnheader" : "gridcell"}
                                    class={c.num ? "num" : undefined}
                                    aria-sort={on ? (down ? "descending" : "ascending") : undefined}
                                >
                                    {c.sort && p.onSort ? (
                                        <button
                                            type="button"
                                            onClick={() => p.onSort?.(on && !down ? `-${c.key}` : on ? "" : c.key)}
                                        >
                                            {c.title}
                                            {on && <Icon name={down ? "down" : "up"} />}
                                        </button>
                                    ) : (
                                        c.title
                                    )}
                                </span>
                            );
                        })}
                    </div>
                </div>
                <div
                    class="vlist"
                    role="rowgroup"
                    ref={box}
                    onScroll={(e) => {
                        const el = e.currentTarget;
                        look();
                        if (el.scrollHeight - el.scrollTop < (NEAR_END + 1) * el.clientHeight) p.onNearEnd?.();
                    }}
                    style={{ height: `min(${rows.length * rowHeight.current}px, calc(100vh - 270px))` }}
                >
                    <div class="pad" role="presentation" style={{ height: `${rows.length * rowHeight.current}px` }}>
                        {rows.slice(view.from, to).map((row, n) => {
                            const i = view.from + n;
                            const key = p.keyOf(row);
                            return (
                                <ListRow
                                    key={i % slots} // elements of rows that left are used again
                                    of={p}
                                    row={row}
                                    i={i}
                                    top={i * rowHeight.current}
                                    columns={columns}
                                    isTab={i === Math.min(at, rows.length - 1)}
                                    isBare={view.isBare}
                                    isChosen={p.onChoose ? !!p.chosen?.has(key) : p.current === key}
                                    acts={stable}
                                />
                            );
                        })}
                    </div>
                </div>
            </div>
            {p.foot}
        </div>
    );
}

/** Which columns, as a menu of boxes. */
export function ColumnMenu<R>(p: {
    columns: Column<R>[];
    shown: string[] | null;
    onChange: (shown: string[] | null) => void;
}) {
    const on = new Set(p.shown ?? p.columns.map((c) => c.key));
    return (
        <details class="menu">
            <summary class="btn">
                <Icon name="columns" />
                {t("columns")}
                <span class="dim">
                    {on.size} / {p.columns.length}
                </span>
            </summary>
            <div class="menu-body">
                {p.columns.map((c) => (
                    <label>
                        <input
                            type="checkbox"
                            class="check"
                            disabled={c.rank === 0}
                            checked={on.has(c.key)}
                            onChange={() => {
                                const next = new Set(on);
                                if (!next.delete(c.key)) next.add(c.key);
                                p.onChange(
                                    next.size === p.columns.length
                                        ? null
                                        : p.columns.map((x) => x.key).filter((k) => next.has(k)),
                                );
                            }}
                        />
                        {c.title}
                    </label>
                ))}
            </div>
        </details>
    );
}

export const ListCsv = <R,>({ rows, columns }: { rows: R[]; columns: Column<R>[] }) => {
    const cols = columns.filter((c) => c.csv);
    return <CopyCsv head={cols.map((c) => c.key)} rows={() => rows.map((r) => cols.map((c) => c.csv!(r)))} />;
};
