/** Connections to the fleet's database: which server, verified how, and what is said where it cannot be had. */
import type { ConnectionOptions, PeerCertificate } from "node:tls";
import { checkServerIdentity } from "node:tls";
import { Client, type ClientConfig } from "pg";
import { nameOf, type PostgresServer, type PostgresUri } from "#lib/postgres-uri.ts";
import { FleetError, reasonOf } from "./errors.ts";

export interface DatabaseOptions {
  readonly uri: PostgresUri;
  /** PEM of the authorities that the server's certificate must lead to; null: those of the runtime. */
  readonly ca: string | null;
  /** What the server's list of connections shows, `weir fra-1`. */
  readonly name: string;
  /** Of every statement, answered or not. */
  readonly statementTimeoutMs: number;
}

/** The first server of the URI that answers and fits. Rejects with `FleetError`, which names every server and why not. */
export async function connect(options: DatabaseOptions): Promise<Client> {
  const faults: string[] = [];
  for (const server of options.uri.servers) {
    const client = new Client(configOf(options, server));
    client.on("error", () => {}); // who uses the connection listens to `end`
    try {
      await client.connect();
      if (!options.uri.needsPrimary || (await takesWrites(client))) return client;
      faults.push(`${nameOf(server)}: a replica that takes no writes`);
    } catch (error) {
      faults.push(`${nameOf(server)}: ${reasonOf(error)}`);
    }
    abandon(client);
  }
  throw new FleetError(faults.join("; "));
}

function configOf(
  { uri, ca, name, statementTimeoutMs }: DatabaseOptions,
  server: PostgresServer,
): ClientConfig {
  return {
    host: server.host,
    port: server.port,
    user: uri.user,
    // A function is not printed with the configuration, and no file of the home directory is asked instead.
    password: () => uri.password,
    database: uri.database,
    application_name: name.slice(0, 63),
    connectionTimeoutMillis: uri.connectTimeoutMs,
    statement_timeout: statementTimeoutMs,
    query_timeout: statementTimeoutMs + 500,
    keepAlive: true,
    ssl: uri.tls === "disable" || server.host.startsWith("/") ? false : tlsOf(uri, ca, server.host),
  };
}

/** Above what the server is set to, so that a server that goes silent is noticed here. */
function tlsOf(uri: PostgresUri, ca: string | null, host: string): ConnectionOptions {
  return {
    ...(ca === null ? {} : { ca }),
    minVersion: "TLSv1.2",
    rejectUnauthorized: true,
    checkServerIdentity: (_name: string, certificate: PeerCertificate) =>
      uri.tls === "verify-ca" ? undefined : checkServerIdentity(host, certificate),
  };
}

async function takesWrites(client: Client): Promise<boolean> {
  const { rows } = await client.query<{ transaction_read_only: string }>("SHOW transaction_read_only");
  return rows[0]?.transaction_read_only === "off";
}

/** What a server that may be silent has to take the end of the protocol. */
const LAST_REPLY_MS = 300;

/** Ends a connection that may be in the middle of something, and that may lead nowhere. */
export function abandon(client: Client): void {
  void client.end().catch(() => {});
  setTimeout(() => client.connection.stream.destroy(), LAST_REPLY_MS).unref();
}
