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
  /** Its listeners' users can be managed while they run: their inbound is a `ManagedInbound`. */
  readonly users?: UserSupport;
}

/** A user as the file has it. */
export interface WrittenUser {
  /** Blank where the file names none. */
  readonly name: string;
  readonly credential: string;
  readonly flow: string;
}

/** Where a client finds the listener. */
export interface PublicAddress {
  /** Name or address without brackets. */
  readonly host: string;
  readonly port: number;
}

/** What managing users needs to know of a protocol. `options` are what the inbound's schema puts out. */
export interface UserSupport {
  /** For people: `VLESS`. */
  readonly label: string;
  /** What the credential is called in files and in the API. */
  readonly credential: "uuid" | "password";
  /** What a user's flow may be besides nothing. */
  readonly flows: readonly string[];
  makeCredential(): string;
  /** Two texts with the same identity are one credential to the listener; null: this is none. */
  identify(credential: string): string | null;
  written(options: object): readonly WrittenUser[];
  /** The same options without users. */
  emptied(options: object): object;
  /** Null where no link would work. `name` is what the client shows. */
  shareLink(
    options: object,
    place: PublicAddress,
    user: { readonly name: string; readonly credential: string; readonly flow: string },
  ): string | null;
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
