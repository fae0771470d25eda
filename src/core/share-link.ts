/** Nodes as clients exchange them: share links, and the forms that other clients' profiles have. */

/** A node as the ecosystem's YAML has it. */
export type LinkNode = Record<string, unknown>;

/** A link taken apart; what the parts mean is up to the protocol. */
export interface Link {
  /** In lower case. */
  readonly scheme: string;
  /** Everything before query and name: what the forms that are base64 as a whole are made of. */
  readonly body: string;
  /** As written in the link. */
  readonly rawUser: string;
  /** Percent-escapes undone. */
  readonly user: string;
  readonly host: string;
  /** Null: the link has none; of a list the first. */
  readonly port: number | null;
  /** `443,5000-6000`, between which a client hops; null: there is one port or none. */
  readonly ports: string | null;
  /** Keys in lower case. */
  readonly query: ReadonlyMap<string, string>;
  readonly name: string;
}

/** How the links of one protocol are read and written. */
export interface LinkForm {
  /** Without `://`; the first one is written. */
  readonly schemes: readonly string[];
  /** Throws `ConfigError`, which never shows the link: it holds a secret. */
  read(link: Link): LinkNode;
  /** `node` has been read by the protocol's schema or comes from `read`. */
  write(node: LinkNode): string;
  /** The nodes of a document in a form of the protocol's own; null where the text is none. */
  readDocument?(text: string): readonly LinkNode[] | null;
}

/** A listener as its clients see it. */
export interface ListenerContext {
  readonly name: string;
  readonly server: string;
  readonly port: number;
  /** The name in the listener's certificate; null: it has none, or no certificate. */
  readonly serverName: string | null;
  /** The users of plain listeners that have none of their own. */
  readonly accounts: readonly { readonly username: string; readonly password: string }[];
}

/** A node as an outbound in a profile of sing-box, under sing-box's names. */
export type SingBoxOutbound = Readonly<Record<string, unknown>> & { readonly tag: string };

/** One link in the forms that profiles are made of; null where a form cannot hold it. */
export interface ClientForms {
  readonly node: Readonly<LinkNode> | null;
  /** The same, where mihomo has it. */
  readonly mihomo: Readonly<LinkNode> | null;
  readonly singBox: SingBoxOutbound | null;
}
