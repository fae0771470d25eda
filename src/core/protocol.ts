import type { z } from "zod";
import type { Inbound, InboundEnv } from "./inbound.ts";
import type { Descriptions } from "./key-descriptions.ts";
import type { Outbound, OutboundEnv } from "./outbound.ts";
import type { LinkForm, LinkNode, ListenerContext, SingBoxOutbound } from "./share-link.ts";

/**
 * One direction of a protocol: the shape of its options and the way to open it. The schema's output must be plain
 * data, because a reload compares it to see what did not change. Common fields (name, listen, port, rule, proxy;
 * name, interface-name, routing-mark, ip-version, dialer-proxy) are read by the configuration, not here.
 */
export interface Side<Options, Env, Made> {
  readonly schema: z.ZodObject;
  /** Outbounds and groups that options name. Absent: none. */
  readonly named?: (options: object) => readonly NamedOutbound[];
  open(options: Options, env: Env): Promise<Made>;
}

/** A name of an outbound or a group, and the keys below the listener or node where it stands. */
export interface NamedOutbound {
  readonly path: readonly string[];
  readonly name: string;
}

/** All that the program knows of a protocol; what needs it elsewhere asks the registry. */
export interface Protocol {
  /** As in files: `socks5`. */
  readonly type: string;
  readonly inbound?: Side<never, InboundEnv, Inbound>;
  readonly outbound?: OutboundSide<never>;
  /** Why a listener with these options cannot go to another process of weir in an upgrade; null, or absent: it can. */
  readonly staysWithProcess?: (options: object) => string | null;
  /** Its listeners' users can be managed while they run: their inbound is a `ManagedInbound`. */
  readonly users?: UserSupport;
  /** What its sessions are called in IN-TYPE rules, in capitals. Absent: the type itself. */
  readonly inboundTypes?: readonly string[];
  /** Its nodes as share links. Absent: they have none. */
  readonly links?: LinkForm;
  /**
   * The nodes that clients of a listener need, one a user. Absent: the listener has no such clients. Throws
   * `UnusableError`, which names the keys, where a client that knows its link alone would not agree with the listener.
   */
  readonly listenerNodes?: (options: object, listener: ListenerContext) => readonly LinkNode[];
  /** Does mihomo have such a node? Absent: it has all. */
  readonly isOfMihomo?: (node: LinkNode) => boolean;
  /** A node for a profile of sing-box; null where it has no such outbound. */
  readonly singBox?: (node: LinkNode) => SingBoxOutbound | null;
  /** What the keys that only it has mean, for editors and the manual. */
  readonly descriptions?: Descriptions;
  /** Keys that `weir generate` makes for it. */
  readonly keyMaterial?: KeyMaterial;
}

/** What sessions of these protocols' listeners are called in rules. */
export function inboundTypesOf(protocols: readonly Protocol[]): ReadonlySet<string> {
  return new Set(
    protocols.flatMap(({ type, inbound, inboundTypes = [type.toUpperCase()] }) =>
      inbound === undefined ? [] : inboundTypes,
    ),
  );
}

/** Fresh keys for both ends of a protocol. */
export interface KeyMaterial {
  /** What `weir generate` calls it. */
  readonly kind: string;
  /** Forms that the keys may have; the first is the default. */
  readonly forms: readonly string[];
  /** What has to be said besides, as the usage calls it; absent: nothing. */
  readonly argument?: string;
  /**
   * Lines of YAML for both ends; those of the listener are secret. `form`: one of `forms`, or the argument. Throws
   * `ConfigError` where the argument will not do.
   */
  make(form: string): string;
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

/** A user as a link has it; the flow may be empty. */
export interface LinkedUser {
  /** What the client shows. */
  readonly name: string;
  readonly credential: string;
  readonly flow: string;
}

/** What managing users needs to know of a protocol. `options` are what the inbound's schema puts out. */
export interface UserSupport<Options extends object = object> {
  /** As people write the protocol's name: `SOCKS5`. */
  readonly label: string;
  /** What its connections lie on. */
  readonly network: "tcp" | "udp";
  /** Not among those that the contract of the admin API names: it is listed beside them. */
  readonly isAdditional: boolean;
  /** What the credential is called in files and in the API. */
  readonly credential: "uuid" | "password";
  /** What a user's flow may be besides nothing. */
  readonly flows: readonly string[];
  makeCredential(): string;
  /** Two texts with the same identity are one credential to the listener; null: this is none. */
  identify(credential: string): string | null;
  /** The credential that a listener makes of a text that is none by itself; null: it makes none. Absent: never. */
  readonly derive?: (text: string) => string | null;
  written(options: Options): readonly WrittenUser[];
  /** The same options without users. */
  emptied(options: Options): object;
  /** Null where no link would work. */
  shareLink(options: Options, context: PublicAddress, user: LinkedUser): string | null;
  /** Leads nowhere, and takes as long to work on as a link of a user: made use of where there is no such user. */
  readonly decoyLink: string;
}

export interface OutboundSide<Options> extends Side<Options, OutboundEnv, Outbound> {
  /** API spelling: `Socks5`. */
  readonly apiType: string;
}

/** Ties a schema to the function that opens it, so that the options are typed by the schema. */
export function inboundSide<S extends z.ZodObject>(
  schema: S,
  open: (options: z.output<S>, env: InboundEnv) => Promise<Inbound>,
  named: (options: object) => readonly NamedOutbound[] = () => [],
): Side<never, InboundEnv, Inbound> {
  return { schema, open, named };
}

export function outboundSide<S extends z.ZodObject>(
  apiType: string,
  schema: S,
  open: (options: z.output<S>, env: OutboundEnv) => Promise<Outbound>,
): OutboundSide<never> {
  return { apiType, schema, open };
}
