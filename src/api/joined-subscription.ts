/** One address for several users: who was in several listeners of another program had one for all (docs/import.md). */
import type { SubscriptionLink, SubscriptionView, UserAdmin } from "#core/users.ts";
import { linksOf } from "./subscription-formats.ts";

/** Further ones are not looked for. */
const MOST_TOKENS = 32;

/** Of those of the tokens that have a user; null: none has. */
export function joinedSubscription(
  tokens: readonly string[],
  admin: UserAdmin | null,
): SubscriptionView | null {
  const [first, ...others] = tokens.slice(0, MOST_TOKENS).flatMap((each) => admin?.subscription(each) ?? []);
  return first === undefined ? null : joined(first, others);
}

/** Bytes are added up, without a total where one of them has none; the first end counts. */
function joined(first: SubscriptionView, others: readonly SubscriptionView[]): SubscriptionView {
  if (others.length === 0) return first;
  const all = [first, ...others];
  const sum = (of: (view: SubscriptionView) => number): number =>
    all.reduce((total, view) => total + of(view), 0);
  const ends = all.flatMap(({ expiresAtMs }) => (expiresAtMs === null ? [] : [expiresAtMs]));
  const names = new Set<string>(linksOf(first).map(nameOf));
  return {
    ...first,
    further: [...(first.further ?? []), ...others.flatMap(linksOf).map((each) => renamed(each, names))],
    uploadBytes: sum(({ uploadBytes }) => uploadBytes),
    downloadBytes: sum(({ downloadBytes }) => downloadBytes),
    totalBytes: all.every(({ totalBytes }) => totalBytes > 0) ? sum(({ totalBytes }) => totalBytes) : 0,
    expiresAtMs: ends.length === 0 ? null : Math.min(...ends),
  };
}

function nameOf({ node }: SubscriptionLink): string {
  const name = node?.["name"];
  return typeof name === "string" ? name : "";
}

/** Profiles tell nodes apart by their names. */
function renamed(one: SubscriptionLink, taken: Set<string>): SubscriptionLink {
  const { link, node, mihomo, singBox } = one;
  const wanted = nameOf(one);
  let name = wanted;
  for (let number = 2; taken.has(name); number++) name = `${wanted} ${number}`;
  taken.add(name);
  return {
    link,
    node: node === null ? null : { ...node, name },
    mihomo: mihomo === null ? null : { ...mihomo, name },
    singBox: singBox === null ? null : { ...singBox, tag: name },
  };
}
