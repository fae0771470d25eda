/**
 * Connection URIs of PostgreSQL as libpq has them (documentation, 34.1.1.2), with the parameters that weir honours.
 * What is wrong is answered as a sentence, in which there is never a part of the password.
 */

const TLS_MODES = ["verify-full", "verify-ca", "disable"] as const;
export type TlsMode = (typeof TLS_MODES)[number];

export interface PostgresServer {
  /** A name, an address without brackets, or the absolute path of a folder with a socket. */
  readonly host: string;
  readonly port: number;
}

export interface PostgresUri {
  /** In the order in which they are tried. */
  readonly servers: readonly PostgresServer[];
  readonly user: string;
  /** "": none. */
  readonly password: string;
  readonly database: string;
  readonly tls: TlsMode;
  /** Only a server that takes writes will do; replicas are passed by. */
  readonly needsPrimary: boolean;
  readonly connectTimeoutMs: number;
}

const MOST_CHARACTERS = 4_096;
const MOST_SERVERS = 16;
const DEFAULT_PORT = 5_432;
const DEFAULT_TIMEOUT_S = 3;
const FORM = "postgres://USER:PASSWORD@HOST[:PORT][,HOST…]/DATABASE[?sslmode=verify-full]";

type Parameters = Pick<PostgresUri, "tls" | "needsPrimary" | "connectTimeoutMs"> & { readonly host: string };

/** A text says what is wrong. */
export function parsePostgresUri(source: string): PostgresUri | string {
  if (source.length > MOST_CHARACTERS) return `is longer than ${MOST_CHARACTERS} characters`;
  const parts = /^postgres(?:ql)?:\/\/(?:([^@/?#]*)@)?([^@/?#]*)(?:\/([^?#/]*))?(?:\?([^#]*))?$/.exec(source);
  if (parts === null)
    return `expected ${FORM}; in user and password @ : / ? # are written %40 %3A %2F %3F %23`;
  const [, login = "", authority = "", path = "", query = ""] = parts;
  const colon = login.indexOf(":");
  const user = decoded(colon < 0 ? login : login.slice(0, colon));
  const password = decoded(colon < 0 ? "" : login.slice(colon + 1));
  const database = decoded(path);
  if (user === null || password === null || database === null)
    return "has a % that is not followed by two hexadecimal digits; a % itself is written %25";
  if (user === "") return `names no user: expected ${FORM}`;
  const read = parametersOf(query);
  if (typeof read === "string") return read;
  const { host, ...parameters } = read;
  const servers = serversOf(host === "" ? authority : hostsBehind(host, authority));
  if (typeof servers === "string") return servers;
  const remote = servers.find((server) => !isHere(server.host));
  if (parameters.tls === "disable" && remote !== undefined)
    return `sslmode: disable sends the password in clear to ${remote.host}; verify-full would be right (disable is for this machine)`;
  return { servers, user, password, database: database === "" ? user : database, ...parameters };
}

/** How messages call it. */
export function nameOf({ host, port }: PostgresServer): string {
  if (host.startsWith("/")) return host;
  return `${host.includes(":") ? `[${host}]` : host}:${port}`;
}

function isHere(host: string): boolean {
  return host.startsWith("/") || host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host);
}

function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

/** `?host=/run/postgresql` stands for the host, with the port of the authority. */
function hostsBehind(host: string, authority: string): string {
  return authority.startsWith(":") ? `${host}${authority}` : host;
}

function serversOf(text: string): readonly PostgresServer[] | string {
  const names = text.split(",");
  if (names.length > MOST_SERVERS) return `names more than ${MOST_SERVERS} servers`;
  const servers: PostgresServer[] = [];
  for (const name of names) {
    const [, bracketed, plain = "", digits] =
      /^(?:\[([0-9A-Fa-f:.]+)\]|([^:[\]]*))(?::(\d{1,5}))?$/.exec(name) ?? [];
    const host = bracketed ?? plain;
    const port = digits === undefined ? DEFAULT_PORT : Number(digits);
    if (host === "") return `a server has no host: expected ${FORM}`;
    if (port < 1 || port > 65_535) return `a server's port must be from 1 to 65535, got ${port}`;
    servers.push({ host, port });
  }
  return servers;
}

/** Bounds of `connect_timeout`, in seconds. */
const [SHORTEST_S, LONGEST_S] = [1, 60];

function parametersOf(query: string): Parameters | string {
  let [tls, host, needsPrimary, seconds] = ["verify-full" as TlsMode, "", true, DEFAULT_TIMEOUT_S];
  for (const [key, value] of new URLSearchParams(query)) {
    if (key === "sslmode") {
      const mode = TLS_MODES.find((known) => known === value);
      if (mode === undefined)
        return `sslmode: expected one of ${TLS_MODES.join(", ")}; what else libpq knows does not verify the server`;
      tls = mode;
    } else if (key === "target_session_attrs") {
      if (value !== "any" && value !== "read-write" && value !== "primary")
        return "target_session_attrs: expected read-write, primary or any";
      needsPrimary = value !== "any";
    } else if (key === "connect_timeout") {
      seconds = Number(value);
      if (!(seconds >= SHORTEST_S && seconds <= LONGEST_S))
        return `connect_timeout: expected seconds from ${SHORTEST_S} to ${LONGEST_S}`;
    } else if (key === "host") {
      if (!value.startsWith("/")) return "host: expected the absolute path of a folder with a socket";
      host = value;
    } else if (key !== "application_name")
      return `${key.slice(0, 40)}: weir does not know this parameter; known: sslmode, target_session_attrs, connect_timeout, host, application_name`;
  }
  return { tls, host, needsPrimary, connectTimeoutMs: seconds * 1_000 };
}
