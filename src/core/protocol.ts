import type { z } from "zod";
import type { Inbound, InboundEnv } from "./inbound.ts";
import type { Outbound, OutboundEnv } from "./outbound.ts";

/**
 * One direction of a protocol: the shape of its options and the way to open it. The schema's output must be plain
 * data, because a reload compares it to see what did not change. Common fields (name, listen, port, rule, proxy;
 * name, interface-name, routing-mark, ip-version, dialer-proxy) are read by the configuration, not here.
 */
export interface Side<Options, Env, Made> {
  readonly schema: z.ZodObject;
  open(options: Options, env: Env): Promise<Made>;
}

export interface Protocol {
  /** As in files: `socks5`. */
  readonly type: string;
  readonly inbound?: Side<never, InboundEnv, Inbound>;
  readonly outbound?: OutboundSide<never>;
}

export interface OutboundSide<Options> extends Side<Options, OutboundEnv, Outbound> {
  /** API spelling: `Socks5`. */
  readonly apiType: string;
}

/** Ties a schema to the function that opens it, so that the options are typed by the schema. */
export function inboundSide<S extends z.ZodObject>(
  schema: S,
  open: (options: z.output<S>, env: InboundEnv) => Promise<Inbound>,
): Side<never, InboundEnv, Inbound> {
  return { schema, open };
}

export function outboundSide<S extends z.ZodObject>(
  apiType: string,
  schema: S,
  open: (options: z.output<S>, env: OutboundEnv) => Promise<Outbound>,
): OutboundSide<never> {
  return { apiType, schema, open };
}
