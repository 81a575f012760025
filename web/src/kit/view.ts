// SPDX-License-Identifier: Apache-2.0
// view.ts - whether an element is on the screen, or nearly: one observer for all of a page.
import { useEffect, useState } from "preact/hooks";

const NEAR = "300px 0px";
const watched = new WeakMap<Element, (isIn: boolean) => void>();
let observer: IntersectionObserver | null = null;

/** isWatched false: nothing is observed, and it is not. */
export function useView(
    of: { current: Element | null },
    isWatched: boolean,
    onView?: (isIn: boolean) => void,
): boolean {
    const [isIn, setIn] = useState(false);
    useEffect(() => {
        const element = of.current;
        if (!isWatched || !element) return;
        observer ??= new IntersectionObserver(
            (all) => {
                for (const one of all) watched.get(one.target)?.(one.isIntersecting);
            },
            { rootMargin: NEAR },
        );
        const mine = observer;
        watched.set(element, (now) => {
            setIn(now);
            onView?.(now);
        });
        mine.observe(element);
        return () => {
            mine.unobserve(element);
            watched.delete(element);
            setIn(false);
            onView?.(false);
        };
    }, [isWatched]);
    return isIn;
}
