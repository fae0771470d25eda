/** The fields that every item of `listeners` has. */
import { Fault, leftOut, maybe, name, parseInteger, scalar, show, text } from "#core/fields.ts";
import { disguiseFields } from "#core/node-fields.ts";
import { parseRanges, type Range } from "#core/ranges.ts";
import { ANY_V4, parseIp } from "#net/address/ip.ts";
import * as z from "zod";
import { mark } from "./sections/general.ts";

/** One listener opens every port of its ranges; more than this is a mistake. */
const MOST_PORTS = 1024;

const MOST_PORT = 65_535;

/** Nothing written is every IPv4 address. */
const listenAddress = () =>
  scalar({ type: "string" }, (source, raw) =>
    source === "" ? ANY_V4 : (parseIp(source) ?? new Fault(`expected an IP address, got ${show(raw)}`)),
  );

/** Empty for a number that is no port: other programs start without the listener. */
const ports = () =>
  scalar({ type: ["string", "integer"] }, (source): readonly number[] | Fault => {
    if (source.trim() === "") return [0];
    const single = parseInteger(source) ?? 0;
    if (single < 0 || single > MOST_PORT) return [];
    const ranges = source.trim() === "*" ? new Fault("expected ports") : parseRanges(source, 0, MOST_PORT);
    return ranges instanceof Fault ? ranges : expand(ranges);
  });

function expand(ranges: readonly Range[]): readonly number[] | Fault {
  const all = new Set<number>();
  for (const { from, to } of ranges) {
    if (to - from >= MOST_PORTS) return new Fault(`expected at most ${MOST_PORTS} ports`);
    for (let at = from; at <= to; at++) all.add(at);
  }
  return all.size > MOST_PORTS ? new Fault(`expected at most ${MOST_PORTS} ports`) : [...all];
}

export const listenerFields = z.object({
  name: name(),
  type: name(),
  listen: listenAddress().default(ANY_V4),
  port: ports().default([0]),
  rule: maybe(text()),
  proxy: maybe(text()),
  "routing-mark": leftOut(mark()).default(0),
  ...disguiseFields,
});
