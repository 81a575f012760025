// SPDX-License-Identifier: Apache-2.0
// bar.tsx - what an account holds of its GPUs: used within its guarantee, borrowed beyond it, a mark where the guarantee
// ends, and the whole length is the ceiling.
import type { Limits, Usage } from "../../made/api";

export interface Parts {
    /** Of the whole length, 0 to 1. */
    sure: number;
    borrowed: number;
    /** Where the guarantee ends; null: there is none. */
    mark: number | null;
}

/** most: GPUs that are the whole length where there is no ceiling. */
export function partsOf(quota: Limits, usage: Usage, most: number): Parts {
    const whole = Math.max(quota.gpus_ceiling ?? most, usage.gpus, quota.gpus_guaranteed ?? 0, 1e-9);
    // Without a guarantee there is nothing that it is beyond of.
    const borrowed = quota.gpus_guaranteed === null ? 0 : Math.min(usage.gpus_borrowed, usage.gpus);
    return {
        sure: (usage.gpus - borrowed) / whole,
        borrowed: borrowed / whole,
        mark: quota.gpus_guaranteed === null ? null : Math.min(1, quota.gpus_guaranteed / whole),
    };
}

export function Bar({ of, says }: { of: Parts; says: string }) {
    return (
        <span class="quotabar" role="img" aria-label={says}>
            <i class="used" style={{ width: `${of.sure * 100}%` }} />
            <i class="borrowed" style={{ width: `${of.borrowed * 100}%` }} />
            {of.mark !== null && of.mark > 0 && <b style={{ left: `${of.mark * 100}%` }} />}
        </span>
    );
}
