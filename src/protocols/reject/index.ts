/** `type: reject`, and the built-ins that lead nowhere: REJECT, REJECT-DROP, PASS, PASS-RULE. */
import { setTimeout as delay } from "node:timers/promises";
import * as z from "zod";
import { DialError } from "#core/errors.ts";
import { BOTH_NETWORKS } from "#core/outbound.ts";
import type { DialContext, Outbound } from "#core/outbound.ts";
import { outboundSide } from "#core/protocol.ts";
import type { Protocol } from "#core/protocol.ts";
import type { DatagramFlow } from "#core/session.ts";

const HOLD_MS = 60_000;
/** Connections that one REJECT-DROP holds open at a time; beyond, they are closed at once. */
const MAX_HELD = 4096;

/** Refuses at once: the client sees a closed connection, datagrams are dropped. */
export function rejectOutbound(name: string): Outbound {
  const refuse = () => Promise.reject(new DialError("rejected", `rejected by ${name}`));
  return leaf(name, "Reject", { rejects: true, connect: refuse, associate: refuse });
}

/** Lets the client wait for nothing, so that it does not try again at once; datagrams vanish. */
export function rejectDropOutbound(name: string, holdMs = HOLD_MS): Outbound {
  let held = 0;
  const connect = async (_: unknown, { signal }: DialContext): Promise<never> => {
    if (held < MAX_HELD) {
      held++;
      // An abort is the client leaving: nothing is left to hold.
      await delay(holdMs, undefined, { signal }).catch(() => {});
      held--;
    }
    throw new DialError("dropped", `dropped by ${name}`);
  };
  return leaf(name, "RejectDrop", {
    rejects: true,
    connect,
    associate: () => Promise.resolve(new BlackHole()),
  });
}

/**
 * PASS (`rule`) and PASS-RULE (`line`): matching continues behind the rule that names them, so they are never dialled.
 */
export function passOutbound(name: string, passes: "rule" | "line"): Outbound {
  const refuse = () =>
    Promise.reject(new DialError("unsupported", `${name} only has a meaning as the target of a rule`));
  return leaf(name, passes === "rule" ? "Pass" : "PassRule", { passes, connect: refuse, associate: refuse });
}

type Parts = Pick<Outbound, "connect" | "associate" | "rejects" | "passes">;

function leaf(name: string, type: string, parts: Parts): Outbound {
  return { name, type, networks: BOTH_NETWORKS, ...parts, async [Symbol.asyncDispose]() {} };
}

class BlackHole implements DatagramFlow {
  readonly #end = Promise.withResolvers<void>();
  readonly closed = this.#end.promise;

  send(): void {}

  receive(): void {}

  [Symbol.asyncDispose](): Promise<void> {
    this.#end.resolve();
    return this.closed;
  }
}

export const reject: Protocol = {
  type: "reject",
  outbound: outboundSide("Reject", z.object({}), (_, { name }) => Promise.resolve(rejectOutbound(name))),
};
