/** Fake addresses from one process of weir to the next: what is given out is known to both, and only one gives out more. */
import * as z from "zod";
import type { AllocateElsewhere } from "#dns/journaled-pool.ts";
import type { Dns } from "#dns/dns.ts";
import type { FakePoolState } from "#dns/fake-pool.ts";
import { atOnce } from "#lib/steps.ts";
import { parseIp } from "#net/address/ip.ts";
import type { HandedState, InheritedSockets } from "#net/listen/inherited-sockets.ts";
import type { Ip } from "#core/session.ts";

const FAMILIES = [
  ["v4", "fake-ip 4"],
  ["v6", "fake-ip 6"],
] as const;

/** Of a pool, as text; names that were not used for the longest time stay behind. */
const MOST_BYTES = 6 << 20;

const written = z.object({
  range: z.string(),
  offset: z.number(),
  cycle: z.boolean(),
  pairs: z.array(z.tuple([z.string(), z.string()])),
});

/** From now on new addresses come from the other process. Answers with what it has to know. */
export function giveFakes(dns: Dns | null, elsewhere: AllocateElsewhere): readonly HandedState[] {
  const state = dns?.fakeIp?.giveTo(elsewhere) ?? null;
  return FAMILIES.flatMap(([family, key]) => {
    const pool = state?.[family] ?? null;
    return pool === null ? [] : [{ key, bytes: encode(pool) }];
  });
}

/** What the process before has given out, in one turn of the event loop. Throws for what no process has written. */
export function takeFakes(dns: Dns | null, inherited: InheritedSockets): void {
  const [v4 = null, v6 = null] = FAMILIES.map(([, key]) => decode(inherited.takeState(key)));
  if (dns?.fakeIp) atOnce(dns.fakeIp.become({ v4, v6 }));
}

function encode({ range, offset, cycle, pairs }: FakePoolState): Uint8Array {
  const newest: (readonly [string, Ip])[] = [];
  let room = MOST_BYTES;
  for (const pair of [...pairs].toReversed()) {
    room -= JSON.stringify(pair).length + 1;
    if (room < 0) break;
    newest.push(pair);
  }
  return Buffer.from(JSON.stringify({ range, offset, cycle, pairs: newest.toReversed() }));
}

function decode(bytes: Uint8Array | null): FakePoolState | null {
  if (bytes === null) return null;
  const { pairs, ...rest } = written.parse(JSON.parse(new TextDecoder().decode(bytes)));
  return {
    ...rest,
    pairs: pairs.flatMap(([host, text]) => {
      const ip = parseIp(text);
      return ip === null ? [] : [[host, ip] as const];
    }),
  };
}
