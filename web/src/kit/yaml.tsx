// SPDX-License-Identifier: Apache-2.0
// yaml.tsx - a text in YAML to read and write, with problems at their lines. Until the editor is loaded, and on a phone,
// the text is there to read.
import { useEffect, useRef, useState } from "preact/hooks";
import { visible } from "../base/say";
import type { Editing, Spot } from "./editor";
import type { KeyDoc } from "./keydoc";

export type { Spot } from "./editor";
export type { KeyDoc } from "./keydoc";

export function Yaml(p: {
    text: string;
    label: string;
    spots?: Spot[];
    keys?: KeyDoc[];
    /** A line to go to; another object goes there again. */
    goTo?: { line: number } | null;
    onChange: (text: string) => void;
}) {
    const box = useRef<HTMLDivElement>(null);
    const made = useRef<Editing | null>(null);
    const now = useRef(p);
    now.current = p;
    const said = useRef<string[]>([]); // by the editor, and not back yet: it may be ahead of what it gets
    const [there, setThere] = useState(false);
    useEffect(() => {
        let gone = false;
        void import("./editor").then(({ edit }) => {
            if (gone || !box.current) return;
            made.current = edit(box.current, {
                text: now.current.text,
                label: p.label,
                keys: () => now.current.keys ?? [],
                onChange: (text) => {
                    said.current.push(text);
                    now.current.onChange(text);
                },
            });
            made.current.setSpots(now.current.spots ?? []);
            setThere(true);
        });
        return () => {
            gone = true;
            made.current?.destroy();
        };
    }, [p.label]);
    useEffect(() => {
        const own = said.current.indexOf(p.text);
        if (own >= 0) said.current.splice(0, own + 1);
        else made.current?.setText(p.text);
    }, [p.text]);
    const spots = JSON.stringify(p.spots ?? []);
    useEffect(() => made.current?.setSpots(p.spots ?? []), [spots, p.text]);
    useEffect(() => {
        if (p.goTo) made.current?.goTo(p.goTo.line);
    }, [p.goTo, there]);
    return (
        <div class="yaml">
            {!there && <pre>{visible(p.text)}</pre>}
            <div class="yaml-box" ref={box} />
        </div>
    );
}
