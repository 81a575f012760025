// SPDX-License-Identifier: Apache-2.0
// acts.ts - what can be done, for the find box: the acts of what is shown, and those that a page does when its address
// says ?do=NAME.
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { query, setQuery } from "./url";

export interface Act {
    says: string;
    does: () => void;
}
/** Of what is shown now: "Stop the job". */
export const shownActs = signal<Act[]>([]);

export function useActs(acts: (Act | false)[], deps: unknown[]) {
    useEffect(() => {
        const own = acts.filter((a) => a !== false);
        shownActs.value = [...own, ...shownActs.value];
        return () => {
            shownActs.value = shownActs.value.filter((a) => !own.includes(a));
        };
    }, deps);
}

/** ?do=NAME does what the page's button does, once. What one may not do is not among the acts. */
export function useDo(acts: Record<string, (() => void) | false>) {
    const wanted = query.value.get("do");
    useEffect(() => {
        if (wanted === null) return;
        setQuery({ do: null });
        const act = Object.hasOwn(acts, wanted) && acts[wanted];
        if (act) act();
    }, [wanted]);
}
