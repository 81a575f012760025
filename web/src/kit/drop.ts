// SPDX-License-Identifier: Apache-2.0
// drop.ts - files that are dragged from the desktop over a part of a page and dropped there.
import { useState } from "preact/hooks";
import "./drop.css";

/** The files of a drop. A folder is told as a file that cannot be read, so it is left out. */
export function filesOf(dropped: DataTransfer): File[] {
    const out: File[] = [];
    for (const item of dropped.items) {
        if (item.kind !== "file" || item.webkitGetAsEntry()?.isDirectory) continue;
        const file = item.getAsFile();
        if (file) out.push(file);
    }
    return out;
}

/** over: something is dragged over the part; on: the handlers of its element. */
export function useDrop(may: boolean, take: (files: File[]) => void) {
    const [over, setOver] = useState(false);
    return {
        over: over && may,
        on: {
            // Where none is taken a file must not be opened in place of the page either.
            onDragOver: (e: DragEvent) => {
                if (e.defaultPrevented || !e.dataTransfer?.types.includes("Files")) return;
                e.preventDefault();
                if (may) setOver(true);
                else e.dataTransfer.dropEffect = "none";
            },
            // Also told of each child that the pointer leaves for another.
            onDragLeave: (e: DragEvent) => {
                if (!(e.currentTarget as Node).contains(e.relatedTarget as Node | null)) setOver(false);
            },
            onDrop: (e: DragEvent) => {
                setOver(false);
                if (e.defaultPrevented || !e.dataTransfer?.types.includes("Files")) return;
                e.preventDefault();
                const files = may ? filesOf(e.dataTransfer) : [];
                if (files.length) take(files);
            },
        },
    };
}
