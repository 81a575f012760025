// SPDX-License-Identifier: Apache-2.0
// drawn.ts - in which order the lines of a plot are drawn, whatever the order in which they are told. Pure: plot.ts itself
// wants a browser.
import type { Line } from "./plot";

/** The place of each line in the order in which they are drawn: thin ones lie beneath all others. */
export function drawnAt(lines: Pick<Line, "isThin">[]): number[] {
    const thin = lines.filter((l) => l.isThin).length;
    let under = 0;
    let over = thin;
    return lines.map((l) => (l.isThin ? under++ : over++));
}
