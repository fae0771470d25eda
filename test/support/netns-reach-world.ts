/** A row with services on the router and the origin, and what asks for them: who reaches what. */
import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Netns } from "./netns.ts";
import type { Ask } from "./netns-reach.ts";
import { openRow, talkTo, type Row, type Talk } from "./netns-row.ts";

const here = dirname(fileURLToPath(import.meta.url));
const program = (file: string) => [
  process.execPath,
  "--disable-warning=ExperimentalWarning",
  join(here, file),
];

/** The port of every service. */
export const SERVICE = 8080;
/** The ways that lead through a proxy which the client knows. */
export const BY = ["http", "connect", "socks4a", "socks5", "udp"] as const;

export interface World extends AsyncDisposable {
  readonly row: Row;
  /** Which of these reached what they asked for. */
  ask(from: Netns, asks: readonly Ask[]): Promise<readonly string[]>;
}

export async function openWorld(label: string, open = openRow): Promise<World> {
  await using undo = new AsyncDisposableStack();
  const row = undo.use(await open(label));
  await row.router.ip("address add 169.254.1.1/16 dev lo", "address add 10.9.9.1/24 dev up0");
  await row.origin.ip("address add 10.9.9.2/24 dev down0");
  for (const netns of [row.router, row.origin]) {
    const services = talkTo(netns, program("netns-services.ts"), undo);
    assert.equal(await services.nextLine(), "ready");
  }
  const talks = new Map<Netns, Talk>();
  for (const netns of [row.router, row.client])
    talks.set(netns, talkTo(netns, program("netns-reach.ts"), undo));
  const owned = undo.move();
  return {
    row,
    async ask(from, asks) {
      const talk = talks.get(from) as Talk;
      talk.say(JSON.stringify(asks));
      const reached = JSON.parse(await talk.nextLine()) as boolean[];
      return asks.flatMap(({ by, host, port, proxy }, at) =>
        reached[at] === true ? [`${by} ${proxy[1]} ${host}:${port}`] : [],
      );
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

export const every = (
  proxy: Ask["proxy"],
  hosts: readonly string[],
  port = SERVICE,
  ways: readonly Ask["by"][] = BY,
): Ask[] => hosts.flatMap((host) => ways.map((by): Ask => ({ by, proxy, host, port })));
export const textsOf = (asks: readonly Ask[]): string[] =>
  asks.map(({ by, proxy, host, port }) => `${by} ${proxy[1]} ${host}:${port}`);
