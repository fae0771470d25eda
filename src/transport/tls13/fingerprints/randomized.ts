/** A hello of no browser, made from Chrome's parts: another one for each start of the program. */
import { randomInt } from "node:crypto";
import { CHROME_120, CHROME_133 } from "./chrome.ts";
import type { ExtensionTemplate, HelloTemplate, Value } from "./template.ts";

/** Extensions that servers can do without. */
const OPTIONAL = new Set([5, 18, 23, 27, 35, 65281]);
/** TLS 1.3 suites stay in front: some of the others go. */
const KEPT_SUITES = 4;

export function randomizedTemplate(withAlpn: boolean): HelloTemplate {
  const from = randomInt(2) === 0 ? CHROME_133 : CHROME_120;
  return {
    name: "randomized",
    since: from.since,
    suites: [...from.suites.slice(0, KEPT_SUITES), ...some(from.suites.slice(KEPT_SUITES))],
    extensions: from.extensions.filter((one) => stays(one, withAlpn)),
    isShuffled: true,
  };
}

/** One at least, so that a server of TLS 1.2 would find something. */
function some(suites: readonly Value[]): Value[] {
  const [first = 0xc02b, ...others] = suites;
  return [first, ...others.filter(() => randomInt(3) > 0)];
}

function stays(one: ExtensionTemplate, withAlpn: boolean): boolean {
  if (one.kind === "protocols") return withAlpn;
  if (one.kind === "settings") return withAlpn && randomInt(2) === 0;
  if (one.kind === "ech") return randomInt(2) === 0;
  const type = one.kind === "fixed" || one.kind === "list" ? one.type : -1;
  return !OPTIONAL.has(type) || randomInt(2) === 0;
}
