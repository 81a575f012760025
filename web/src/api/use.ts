// SPDX-License-Identifier: Apache-2.0
// use.ts - a component's view of a route: asked when it is shown and when its query changes, asked again when something
// that it is about changed (live.ts), at most every 250 ms. What was there stays until the new answer is there. A change
// ends no answer that is on its way, or a slow one would never come while things change: it is asked for after it.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { Routes } from "../made/api";
import { lang } from "../base/prefs";
import { call, isAway, Refusal, session, type Ask, type Route } from "./client";
import { onBack, onChange, type Topic } from "./live";

export interface Asked<T> {
    data: T | undefined;
    why: Refusal | undefined;
    loading: boolean;
    again: () => void;
}

export interface Live {
    topics?: Topic[];
    /** Is this change about what is shown? All are, if not given. */
    about?: (id: string) => boolean;
    /** Milliseconds: for what changes without a word (curves, GPU use). */
    every?: number;
}

const SOON = 250;
/** After an answer that says "not yet": of an argusd that has just started. */
const LATER = 1000;
/** So long an answer may be on its way until a change asks for another one. */
const PATIENCE = 30_000;

interface Flight {
    control: AbortController;
    since: number;
    /** Something changed meanwhile. */
    anew: boolean;
}

/** route null: nothing is asked. */
export function useAsk<R extends Route>(route: R | null, ask: Ask<R> = {}, live: Live = {}): Asked<Routes[R]["reply"]> {
    const [state, setState] = useState<{ key: string; data?: Routes[R]["reply"]; why?: Refusal }>({ key: "" });
    const key = route ? `${route} ${JSON.stringify(ask)} ${lang.value} ${session.value?.id ?? ""}` : "";
    const now = useRef({ key, ask, live });
    now.current = { key, ask, live };
    const timer = useRef(0);
    const flying = useRef<Flight | null>(null);

    const fire = () => {
        timer.current = 0;
        const f = flying.current;
        if (f && performance.now() - f.since < PATIENCE) f.anew = true;
        else void load();
    };
    const load = useCallback(async () => {
        if (!route) return;
        flying.current?.control.abort();
        const control = new AbortController();
        const { signal } = control;
        const mine = now.current.key;
        const flight: Flight = (flying.current = { control, since: performance.now(), anew: false });
        try {
            const data = await call(route, { ...now.current.ask, signal });
            if (!signal.aborted) setState({ key: mine, data });
        } catch (e) {
            if (signal.aborted || !(e instanceof Refusal)) return;
            // Without a connection the last data stay; the shell says since when they are old.
            setState((old) => (isAway(e) && old.key === mine && old.data !== undefined ? old : { key: mine, why: e }));
            if (isAway(e) && e.status) timer.current ||= setTimeout(fire, LATER) as unknown as number;
        } finally {
            if (flying.current === flight) flying.current = null;
            if (flight.anew && !signal.aborted) soon();
        }
    }, [route]);
    const soon = useCallback(() => {
        timer.current ||= setTimeout(fire, SOON) as unknown as number;
    }, [load]);

    useEffect(() => {
        void load();
        return () => {
            flying.current?.control.abort();
            clearTimeout(timer.current);
            timer.current = 0;
        };
    }, [key, load]);
    useEffect(() => {
        const off = (now.current.live.topics ?? []).map((topic) =>
            onChange(topic, (ids) => {
                const about = now.current.live.about;
                if (!ids || !about || ids.some(about)) soon();
            }),
        );
        return () => off.forEach((f) => f());
    }, [soon, live.topics?.join()]);
    useEffect(
        () =>
            onBack(() => {
                // What is on its way is so on the connection that broke: nobody waits for it.
                if (flying.current) flying.current.since = -Infinity;
                soon();
            }),
        [soon],
    );
    useEffect(() => {
        if (!live.every) return;
        const each = setInterval(() => document.hidden || soon(), live.every);
        return () => clearInterval(each);
    }, [soon, live.every]);

    const same = state.key === key;
    return {
        data: same ? state.data : undefined,
        why: same ? state.why : undefined,
        loading: !!route && !same,
        again: () => void load(),
    };
}
