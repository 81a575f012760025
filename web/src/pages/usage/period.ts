// SPDX-License-Identifier: Apache-2.0
// period.ts - the time that the page is about, the one before it of the same length and, of a day, the one a
// week before: "7d", or a month "2026-10", UTC.

export interface Period {
    /** As the address and `argus report` say it. */
    word: string;
    from: string;
    to?: string;
    step: string;
    /** null: older than what is kept. */
    before: { from: string; to: string } | null;
    /** The same hours a week ago, of a day alone: the time before a week is that already. null: not told. */
    weekBefore: { from: string; to: string } | null;
}

const DAYS = { "1d": "1h", "7d": "6h", "30d": "1d", "90d": "1d" } as const;
export type Days = keyof typeof DAYS;
export const KEPT_MONTHS = 12;

/** Filters of /jobs: the jobs that held slots at some moment of that time, whenever they were submitted. */
export const ranIn = (p: Pick<Period, "from" | "to">): Record<string, string | undefined> => ({
    ran_since: p.from,
    ran_until: p.to,
});

/** The first moment of that month, UTC, which Date counts on over the years. */
const firstOf = (year: number, month: number) => new Date(Date.UTC(year, month, 1)).toISOString().slice(0, 10);

/** "2026-10", newest first, beginning with the month of `now`. */
export function monthsUntil(now: number, n = KEPT_MONTHS): string[] {
    const d = new Date(now);
    return Array.from({ length: n }, (_, i) => firstOf(d.getUTCFullYear(), d.getUTCMonth() - i).slice(0, 7));
}

export function periodOf(asked: string | null, now: number): Period {
    const month = /^(\d{4})-(\d{2})$/.exec(asked ?? "");
    if (month && monthsUntil(now).includes(asked!)) {
        const [year, m] = [Number(month[1]), Number(month[2]) - 1];
        const start = (k: number) => `${firstOf(year, m + k)}T00:00:00Z`;
        const isNow = asked === monthsUntil(now, 1)[0];
        return {
            word: asked!,
            from: start(0),
            to: isNow ? undefined : start(1),
            step: "1d",
            before: { from: start(-1), to: start(0) },
            weekBefore: null,
        };
    }
    const word = Object.hasOwn(DAYS, asked ?? "") ? (asked as Days) : "1d";
    const days = parseInt(word, 10);
    return {
        word,
        from: word,
        step: DAYS[word],
        before: { from: `${days * 2}d`, to: word },
        weekBefore: days === 1 ? { from: "8d", to: "7d" } : null,
    };
}
