/** A version by which everything is dialled as it is, for workers in tests. */
import { MessageChannel } from "node:worker_threads";
import type { Condition } from "#core/condition.ts";
import type { DialTemplate } from "#core/dial-plan.ts";
import type { DecisionData } from "#dataplane/workers/shared/decision-data.ts";
import type { DecisionTables } from "#router/tables/decision-tables.ts";
import { MAIN_LIST } from "#router/tables/decide.ts";

export const PLAIN_WAY: DialTemplate = {
  routingMark: 0,
  interfaceName: "",
  probes: null,
  timeoutMs: 5_000,
  v4: true,
  v6: true,
  loopback: true,
  names: null,
};

/** Rules that lead to the one target, by a listener with the number 0. */
export function decisionData(
  version: number,
  rules: readonly Condition[] = [{ is: "always" }],
): DecisionTables & Pick<DecisionData, "version" | "listeners"> {
  const steps = rules.map((rule, at) => ({ first: at, last: at, table: null, rule }));
  const leads = new Int32Array(new SharedArrayBuffer(rules.length * 4));
  return {
    version,
    rules: { main: { name: "rules", steps, leads, disabled: null }, nested: [] },
    ways: [null, PLAIN_WAY],
    listeners: [{ name: "in", root: MAIN_LIST, fixed: null, destination: null, users: null }],
    ignoresPrograms: false,
    ownPorts: new Set(),
    names: null,
    namedAddresses: null,
    clock: new SharedArrayBuffer(8),
    captures: false,
    sniffed: null,
  };
}

/** Two ends between which a version is posted at once. */
export function decisionPorts(): MessageChannel & Disposable {
  const channel = new MessageChannel();
  return Object.assign(channel, {
    [Symbol.dispose]: () => {
      channel.port1.close();
      channel.port2.close();
    },
  });
}
