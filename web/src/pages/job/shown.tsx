// SPDX-License-Identifier: Apache-2.0
// shown.tsx - which of many charts there are by now, and which of them are in view: a long list grows at its end, and its
// charts are drawn while they are seen.
import { useEffect, useRef, useState } from "preact/hooks";
import { useView } from "../../kit/view";

const PART = 60;
/** A list that is not longer is drawn at once. */
const FEW = 12;

/** found: the names in their order. Another `of` is another list, which begins at its begin. */
export function useShown(found: string[], of: string) {
    const [parts, setParts] = useState({ of, n: 1 });
    const [seen, setSeen] = useState<ReadonlySet<string>>(new Set());
    const end = useRef<HTMLDivElement>(null);
    const shown = found.slice(0, PART * (parts.of === of ? parts.n : 1));
    const isLazy = found.length > FEW;
    const isAtEnd = useView(end, isLazy && shown.length < found.length);
    useEffect(() => {
        if (isAtEnd) setParts((p) => ({ of, n: p.of === of ? p.n + 1 : 2 }));
    }, [isAtEnd, of]);
    return {
        shown,
        isLazy,
        /** Those whose values are needed now. */
        wanted: isLazy ? shown.filter((k) => seen.has(k)) : shown,
        onView: (key: string, isIn: boolean) =>
            setSeen((old) => {
                const next = new Set(old);
                if (isIn) next.add(key);
                else next.delete(key);
                return next;
            }),
        /** Stands behind the charts. */
        end: <div ref={end} class="chart-end" />,
    };
}
