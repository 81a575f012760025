// SPDX-License-Identifier: Apache-2.0
// cut.tsx - what is said where a list does not show all that there is.
import { num } from "../base/say";
import { words } from "../base/words";

const w = words({
    first: ["The first {0} of {1} are shown.", "共 {1} 个，仅显示前 {0} 个。"],
    some: ["The first {0} are shown; there are more.", "仅显示前 {0} 个，后面还有。"],
});

/** total: undefined while it is not known. */
const cutSays = (shown: number, total: number | undefined) =>
    total !== undefined && total > shown ? w("first", num(shown), num(total)) : w("some", num(shown));

/** Nothing where nothing is cut. */
export const Cut = (p: { isCut: boolean; shown: number; total: number | undefined }) =>
    p.isCut ? (
        <p class="note-row small mid cut-says" role="note">
            {cutSays(p.shown, p.total)}
        </p>
    ) : null;
